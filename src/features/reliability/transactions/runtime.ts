/** The runtime of transactions: rollback, compensation, and the sweep that ends abandoned ones. Loaded with the first transaction. */
import type { Journal } from '../../../core/journal/journal.ts'
import {
  abandon,
  amend,
  findUnattendedUnits,
  isIdle,
  type RollbackOptions,
  rollback,
  type UndoneParts,
} from '../../../core/journal/rollback.ts'
import { isEnded, type Step, type UndoOutcome, type Unit } from '../../../core/journal/unit.ts'
import { type UnitReport, Units, unknownUnit } from '../../../core/journal/units.ts'
import type { Trace } from '../../../core/log.ts'
import { problem } from '../../../core/problem.ts'
import type { Exchange } from '../../../engine/exchange.ts'
import { check, type Op } from '../../../stores/store.ts'
import { costPort } from '../cost/messages.ts'
import { eventsPort } from '../events/messages.ts'
import { compensate } from './compensate.ts'
import { stepName } from './messages.ts'
import { rolledBackEvent, type TransactionsParts } from './server.ts'
import { wireRolledBack } from './wire.ts'

/** How long a rollback waits for a step that is still running. */
const settleMs = 10_000
/** How long it waits for a step that became a task; compensated earlier, it would take effect afterwards. */
const taskMs = 300_000
/** How long a caller waits for a rollback in another process. */
const joinMs = 30_000
// How often other processes are checked, and how often the sweep runs.
const lookMs = 250
const sweepMs = 500
/** The sweep may use at most this share of the time (1/20). */
const restFactor = 20
/** Limit of concurrent rollbacks started by a sweep. */
const together = 16

/** The transactions of a server. */
export class TransactionsRuntime {
  readonly units: Units
  readonly #journal: Journal
  readonly #parts: TransactionsParts
  readonly #rollback: RollbackOptions
  /** The running steps of this process. */
  readonly #running = new Map<string, RunningStep>()
  // Rollbacks in progress in this process.
  readonly #rolling = new Map<string, Promise<UnitReport>>()
  #timer: (() => void) | undefined = undefined
  #closed = false

  constructor(parts: TransactionsParts, journal: Journal) {
    const { clock, retentionMs, perOwner, steps } = parts
    const { store, runners, audit, capacity } = journal
    this.#parts = parts
    this.#journal = journal
    this.units = new Units({
      store,
      clock,
      runners,
      audit,
      capacity,
      retentionMs,
      ...(perOwner === undefined ? {} : { perOwner }),
      ...(steps === undefined ? {} : { steps }),
      holds: (owner, unit) => this.#holds(owner, unit),
    })
    this.#rollback = {
      units: this.units,
      compensate: (owner, unit, step) => this.compensate(owner, unit.id, step),
      undone: (owner, step, unit) => this.#undone(owner, step, unit),
      settled: (owner, unit, step) => this.#settled(owner, unit, step),
      ended: (owner, { id, status, reason }) => {
        const payload = { transaction_id: id, status, ...(reason === undefined ? {} : { reason }) }
        return parts.port(eventsPort).announcing(rolledBackEvent, payload, owner)
      },
    }
  }

  get trace(): Trace {
    return this.#parts.trace
  }

  /** Registers a running step; returns the function that settles it. `workAfterAnswer`: what the handler still does. */
  begun(owner: string, transaction: string, order: number, exchange: Exchange): (workAfterAnswer?: PromiseLike<unknown>) => void {
    const place = `${owner}/${transaction}/${order}`
    const { promise, resolve } = Promise.withResolvers<void>()
    const step: RunningStep = { exchange, over: promise, unseen: false, waited: false }
    this.#running.set(place, step)
    const over = (): void => {
      if (this.#running.get(place) === step) this.#running.delete(place)
      resolve()
    }
    return workAfterAnswer => {
      step.unseen = workAfterAnswer !== undefined
      if (workAfterAnswer === undefined) over()
      else workAfterAnswer.then(over, over)
    }
  }

  /** Stops a step; undefined if it does not run here. */
  #stop(owner: string, transaction: string, order: number): RunningStep | undefined {
    const step = this.#running.get(`${owner}/${transaction}/${order}`)
    step?.exchange.stop('The transaction is being rolled back')
    return step
  }

  /** Runs the compensation of a step, after its handler has stopped. */
  async compensate(owner: string, transaction: string, step: Step): Promise<UndoOutcome> {
    // A handler that is still running could undo its own compensation.
    const lingering = this.#stop(owner, transaction, step.order)
    if (lingering === undefined || (await this.#ends(lingering))) return compensate(this.#parts, owner, transaction, step)
    if (lingering.unseen)
      lingering.over
        .then(() => this.compensateLate(owner, transaction, step))
        .catch(error => this.trace('late-step-stays', { transaction, step: step.id, error }))
    if (!isTask(lingering)) return compensate(this.#parts, owner, transaction, step)
    const message = 'The step was stopped but has not ended yet. It is undone after it ends'
    return { status: 'failed', code: 'OPERATION_TIMEOUT', message }
  }

  /** A step took effect after its rollback: it is compensated once the rollback is over. */
  async compensateLate(owner: string, transaction: string, step: Step): Promise<void> {
    await this.rollBack(owner, transaction, 'A step of the transaction ended late').catch(() => undefined)
    // Under its own key, because the earlier attempt came before the effect.
    const outcome = await compensate(this.#parts, owner, transaction, { ...step, id: `${step.id}/late` })
    if (outcome.status === 'failed')
      this.trace('late-step-stays', { transaction, step: step.id, correlationId: step.correlation, ...outcome })
    const also = outcome.status === 'undone' ? await this.#undoneLate(owner, transaction, step) : []
    await amend(this.units, owner, transaction, step.order, outcome, also)
  }

  /** What is committed with a late compensation, unless it was committed before. */
  async #undoneLate(owner: string, transaction: string, step: Step): Promise<readonly Op[]> {
    const found = await this.units.get(owner, transaction)
    const now = found?.steps[step.order - 1]
    if (found === undefined || now === undefined || now.status === 'compensated') return []
    return (await this.#undone(owner, now, found.unit)).ops
  }

  /** The report for a client, which cannot wait long; the rollback continues without it. */
  async rolledBack(owner: string, id: string, reason: string): Promise<UnitReport> {
    const rolling = this.rollBack(owner, id, reason)
    const report = await this.#within(rolling, joinMs)
    if (report !== undefined) return report
    rolling.catch(error => this.trace('rollback-failed', { id, error }))
    throw problem(
      'SERVER_UNAVAILABLE',
      'A step of the transaction is still running. The transaction is rolled back as soon as the step ends',
      {
        retryAfter: 1000,
        suggestion: 'Request the report again',
      },
    )
  }

  /** Rolls back, or joins the rollback in progress; takes over if its process has gone. */
  rollBack(owner: string, id: string, reason: string, due?: (unit: Unit) => boolean): Promise<UnitReport> {
    const place = `${owner}/${id}`
    const running = this.#rolling.get(place)
    if (running !== undefined) return due === undefined ? this.#afterwards(running, owner, id, reason) : running
    const rolling = this.#persist(owner, id, reason, due).finally(() => this.#rolling.delete(place))
    this.#rolling.set(place, rolling)
    return rolling
  }

  /** A caller that insists does not get the answer of a rollback that was not due. */
  async #afterwards(running: Promise<UnitReport>, owner: string, id: string, reason: string): Promise<UnitReport> {
    const report = await running
    return report.unit.status === 'open' ? this.rollBack(owner, id, reason) : report
  }

  // Retries until this process or another has finished the rollback.
  async #persist(owner: string, id: string, reason: string, due?: (unit: Unit) => boolean): Promise<UnitReport> {
    const before = await this.units.get(owner, id)
    if (before === undefined) throw unknownUnit()
    if (isEnded(before.unit) && before.unit.status !== 'committed') return before
    const until = this.#parts.clock.now() + joinMs
    for (;;) {
      const report = await rollback(this.#rollback, owner, id, reason, due)
      if (report !== undefined) return this.#announced(report)
      const now = await this.units.get(owner, id)
      if (now?.unit.status === 'open') return now
      if (this.#parts.clock.now() >= until)
        throw problem('SERVER_UNAVAILABLE', 'Another process is still rolling back the transaction', { retryAfter: 1000 })
      await this.#pause(lookMs)
    }
  }

  // Reports the rollback; an error in the author's callback is only traced.
  #announced(report: UnitReport): UnitReport {
    const { id, status, reason } = report.unit
    const { onRolledBack, trace } = this.#parts
    trace(rolledBackEvent, { id, status, reason })
    try {
      onRolledBack?.(wireRolledBack(report))
    } catch (error) {
      trace('on-rolled-back-failed', error)
    }
    return report
  }

  /** Starts the periodic sweep for idle and abandoned transactions. */
  sweep(): void {
    this.#plan(sweepMs)
  }

  // Runs the sweep at once.
  #sweepNow(): void {
    this.#timer?.()
    this.#timer = undefined
    this.#plan(0)
  }

  close(): void {
    this.#closed = true
    this.#timer?.()
  }

  #plan(ms: number): void {
    if (this.#closed || this.#timer !== undefined) return
    this.#timer = this.#parts.clock.setTimeout(() => void this.#tick(), ms, true)
  }

  // One pass of the sweep.
  async #tick(): Promise<void> {
    const { clock, trace } = this.#parts
    const began = clock.now()
    try {
      for (const { owner, unit, over } of await findUnattendedUnits(this.units, (owner, unit) => this.#lapsed(owner, unit))) {
        if (this.#rolling.size >= together || this.#closed) break
        const reason = unit.reason ?? over ?? `The transaction timed out: it had no call for ${unit.timeoutMs / 1000} s`
        // An ended grant stays ended; an idle transaction may have been used since.
        const due = over === undefined ? (now: Unit) => isIdle(now, clock.now()) : undefined
        const rolling = this.rollBack(owner, unit.id, reason, due)
        rolling.catch(error => this.#closed || trace('rollback-failed', { id: unit.id, error }))
      }
    } catch (error) {
      if (!this.#closed) trace('sweep-failed', error)
    }
    this.#timer = undefined
    this.#plan(Math.max(sweepMs, restFactor * (clock.now() - began)))
  }

  /** Marks the key of a compensated step as undone, and reverts what it wrote beside its effect. */
  async #undone(owner: string, step: Step, unit: Unit): Promise<UndoneParts> {
    const mark = step.key === '' ? undefined : await this.#journal.claims.undo(owner, step.key)
    const beside = step.wrote === undefined ? undefined : await this.#parts.revert(step.wrote)
    // A step that is not completely reverted is not refunded.
    const also = beside?.stays === undefined ? await this.#takenBack(owner, step, unit) : []
    const ops = [...(mark === undefined ? [] : [mark]), ...(beside?.ops ?? []), ...also]
    return beside?.stays === undefined ? { ops } : { ops, stays: beside.stays }
  }

  /** What the step has cost is refunded, and its events are taken back. */
  async #takenBack(owner: string, { order }: Step, { id, begunAt }: Unit): Promise<readonly Op[]> {
    const { port } = this.#parts
    const [refunds, told] = await Promise.all([
      port(costPort).undone(`${owner}/${stepName(order, id)}`),
      port(eventsPort).undo(`${owner}/${id}/${begunAt}/${order}`),
    ])
    return [...refunds, ...told]
  }

  /** Why a transaction ended because of a grant. */
  async #lapsed(owner: string, { grants = [] }: Unit): Promise<string | undefined> {
    if (grants.length === 0) return undefined
    const [book, { lapseText }] = await Promise.all([this.#parts.grants(), import('../../../core/grant/ends.ts')])
    for (const { id, expires } of grants) {
      const life = await book.lifeOf(owner, id, expires)
      if ('over' in life) return lapseText(life.over)
    }
    return undefined
  }

  // Conditions that make a commit fail if a grant has ended.
  async #holds(owner: string, { id, grants = [] }: Unit): Promise<readonly Op[]> {
    if (grants.length === 0) return []
    const book = await this.#parts.grants()
    const lives = await Promise.all(grants.map(grant => book.lifeOf(owner, grant.id)))
    if (lives.every(life => 'until' in life)) return lives.map(({ record }) => check(record.key, record.version))
    this.#sweepNow()
    throw problem(
      'TRANSACTION_CONFLICT',
      'A grant that the transaction depends on has ended, so the transaction is rolled back',
      {
        suggestion: 'Obtain the right again, and begin a new transaction',
        details: { transaction_id: id },
      },
    )
  }

  /** Waits for a running step, here or elsewhere, and then gives it up. */
  async #settled(owner: string, unit: Unit, step: Step): Promise<void> {
    const { clock } = this.#parts
    const here = this.#stop(owner, unit.id, step.order)
    if (here !== undefined) await this.#ends(here)
    else if (step.runner !== this.#journal.runners.id)
      await this.#gone(owner, unit, step, clock.now() + (saysTask(step) ? taskMs : settleMs))
    await abandon(this.units, owner, unit, step)
  }

  // Waits until the other process has settled the step or has died.
  async #gone(owner: string, unit: Unit, step: Step, until: number): Promise<void> {
    const { clock } = this.#parts
    while (clock.now() < until && (await this.#journal.runners.isAlive(step.runner))) {
      const now = (await this.units.stepsOf(owner, unit.id))[step.order - 1]
      if (now?.status !== 'running') return
      await this.#pause(lookMs)
    }
  }

  /** Whether the step ends in time; it is waited for only once. */
  async #ends(step: RunningStep): Promise<boolean> {
    if (step.waited && isTask(step)) return false
    const ended = await this.#within(
      step.over.then(() => true),
      isTask(step) ? taskMs : settleMs,
    )
    step.waited = ended === undefined
    return ended === true
  }

  /** What the work gives; undefined if it takes longer. */
  #within<T>(work: Promise<T>, ms: number): Promise<T | undefined> {
    const { promise: late, resolve } = Promise.withResolvers<undefined>()
    const cancel = this.#parts.clock.setTimeout(() => resolve(undefined), ms, true)
    return Promise.race([work, late]).finally(cancel)
  }

  #pause(ms: number): Promise<void> {
    return new Promise(resolve => void this.#parts.clock.setTimeout(resolve, ms, true))
  }
}

function isTask({ exchange }: RunningStep): boolean {
  return exchange.detached
}

/** Whether the record says that the step became a task. */
function saysTask({ wrote }: Step): boolean {
  return wrote !== undefined && 'task' in wrote
}

/** A step that runs in this process, so that a rollback can stop it and wait. */
interface RunningStep {
  readonly exchange: Exchange
  /** Resolves when the handler has ended and the record is written. */
  readonly over: Promise<void>
  /** The record already says that the outcome is unknown, so nobody else notices its end. */
  unseen: boolean
  /** It has been waited for. */
  waited: boolean
}
