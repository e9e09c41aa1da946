/**
 * Rolling a unit back: whoever holds its lease takes back what was done and writes down each outcome, so that after a crash
 * another goes on at the first step without one.
 */
import { check, type Op, put, remove } from '../../stores/store.ts'
import { problem } from '../problem.ts'
import {
  isEnded,
  leaseKey,
  readStep,
  readUnit,
  type Step,
  type StepFailure,
  stepKey,
  stuckKey,
  stuckPrefix,
  type UndoOutcome,
  type Unit,
  unfinishedPrefix,
  unitKey,
  unwind,
} from './unit.ts'
import { stepAuditLine, type UnitReport, type Units, unitEndedError } from './units.ts'

/** Options of rolling back. */
export interface RollbackOptions {
  readonly units: Units
  /** Runs the inverse of a step. A step whose end is unknown may have no parameters for it: find out by its key, or fail. */
  compensate(owner: string, unit: Unit, step: Step): Promise<UndoOutcome>
  /** Further writes that go with a step's being taken back; or why a part of it stays. */
  undone?(owner: string, step: Step, unit: Unit): Promise<UndoneParts>
  /** Further writes that go with the end of the rollback. */
  ended?(owner: string, unit: Unit): Promise<readonly Op[]>
  /** Resolves when this process no longer runs the step, or the wait for that is over. */
  settled?(owner: string, unit: Unit, step: Step): Promise<void>
  /** Default 6 s. */
  readonly leaseMs?: number
}

/** What is written together with the end of a step that was undone. */
export interface UndoneParts {
  readonly ops: readonly Op[]
  /** Its effect was taken back, but not all that it wrote beside it. */
  readonly stays?: StepFailure | undefined
}

/**
 * Gives the final report, also where the unit was rolled back before. Undefined: another process is at it, or it is not `due`
 * any more.
 */
export async function rollback(
  options: RollbackOptions,
  owner: string,
  id: string,
  reason: string,
  due?: (unit: Unit) => boolean,
): Promise<UnitReport | undefined> {
  const { units } = options
  const unit = await units.change(owner, id, (unit, entry) => {
    if (unit.status === 'committed') throw unitEndedError(unit)
    if (unit.status !== 'open' || due?.(unit) === false) return undefined
    const after: Unit = { ...unit, status: 'rolling_back', reason, activeAt: units.clock.now() }
    return { unit: after, ops: [put(entry.key, JSON.stringify(after), { ifVersion: entry.version })] }
  })
  if (isEnded(unit)) return units.get(owner, id)
  if (unit.status === 'open') return undefined
  const lease = await Lease.take(options, owner, id)
  if (lease === undefined) return undefined
  try {
    return await takeBack(options, owner, unit, lease)
  } catch (error) {
    // Whoever has it now goes on from the last outcome that was written.
    if (error instanceof LostLease) return undefined
    throw error
  } finally {
    await lease.release()
  }
}

async function takeBack(options: RollbackOptions, owner: string, unit: Unit, lease: Lease): Promise<UnitReport> {
  const { units } = options
  const open = (await units.stepsOf(owner, unit.id)).filter(step => step.status === 'running')
  await Promise.all(open.map(step => options.settled?.(owner, unit, step)))
  const steps = new Map((await units.stepsOf(owner, unit.id)).map(step => [step.order, step]))
  await unwind([...steps.values()], {
    undo: step => undo(options, owner, unit, step),
    pause: attempt => new Promise(resolve => void units.clock.setTimeout(resolve, 100 * 2 ** attempt)),
    async record(step, outcome) {
      if (outcome.status === 'nothing') return
      const parts = outcome.status === 'undone' ? await options.undone?.(owner, step, unit) : undefined
      const after = outcomeOf(step, parts?.stays === undefined ? outcome : { status: 'failed', ...parts.stays })
      await lease.commit([
        put(stepKey(owner, unit.id, step.order), JSON.stringify(after)),
        ...(parts?.ops ?? []),
        ...stepAuditLine(units, 'step_undone', owner, unit, after),
      ])
      steps.set(step.order, after)
    },
  })
  return end(options, owner, unit, [...steps.values()], lease)
}

/** Done before, or without effect: nothing. Otherwise the inverse runs. */
function undo(options: RollbackOptions, owner: string, unit: Unit, step: Step): Promise<UndoOutcome> {
  if (step.status === 'failed' || step.status === 'compensated' || step.status === 'compensation_failed')
    return Promise.resolve({ status: 'nothing' })
  if (step.inverse === undefined)
    return Promise.resolve({
      status: 'failed',
      code: 'UNSUPPORTED',
      message: `${step.target} cannot be undone: it has no compensation`,
    })
  return options.compensate(owner, unit, step)
}

function outcomeOf({ failure: _, ...step }: Step, outcome: Exclude<UndoOutcome, { status: 'nothing' }>): Step {
  if (outcome.status === 'undone') return { ...step, status: 'compensated' }
  return { ...step, status: 'compensation_failed', failure: { code: outcome.code, message: outcome.message } }
}

function statusOf(steps: readonly Step[]): 'rolled_back' | 'partially_rolled_back' {
  return steps.some(step => step.status === 'compensation_failed') ? 'partially_rolled_back' : 'rolled_back'
}

async function end(
  options: RollbackOptions,
  owner: string,
  unit: Unit,
  steps: readonly Step[],
  lease: Lease,
): Promise<UnitReport> {
  const { units } = options
  const status = statusOf(steps)
  const entry = await units.store.get(unitKey(owner, unit.id))
  if (entry === undefined) throw problem('RESOURCE_NOT_FOUND', 'The transaction expired while it was rolled back')
  const after: Unit = { ...readUnit(entry.value), status, activeAt: units.clock.now() }
  const look = status === 'partially_rolled_back' ? [put(stuckKey(owner, unit.id), '', { ttl: units.retentionMs })] : []
  const told = (await options.ended?.(owner, after)) ?? []
  await lease.commit([...units.ending(owner, after, steps, entry), ...look, ...told])
  return { unit: after, steps }
}

/** A step had its effect after its unit was rolled back without it, and that was taken back then, or not: the report is put right. */
export async function amend(
  units: Units,
  owner: string,
  id: string,
  order: number,
  outcome: UndoOutcome,
  also: readonly Op[] = [],
): Promise<void> {
  if (outcome.status === 'nothing') return
  await units.change(owner, id, async (unit, entry) => {
    const steps = await units.stepsOf(owner, id)
    const step = steps.find(each => each.order === order)
    if (step === undefined || !isEnded(unit) || unit.status === 'committed') return undefined
    const after = outcomeOf(step, outcome)
    const now = steps.map(each => (each === step ? after : each))
    const status = statusOf(now)
    const look = status === 'rolled_back' ? remove(stuckKey(owner, id)) : put(stuckKey(owner, id), '', { ttl: units.retentionMs })
    const told = stepAuditLine(units, 'step_undone', owner, unit, after)
    return { unit: { ...unit, status }, ops: [...units.ending(owner, { ...unit, status }, now, entry), look, ...told, ...also] }
  })
}

/** Another took over because this process was silent for too long, or what goes with a step changed meanwhile: to be looked at anew. */
class LostLease extends Error {}

/** The right to roll one unit back. Every write under it checks that it is still held. */
class Lease {
  readonly #options: RollbackOptions
  readonly #key: string
  readonly #ms: number
  #version: number
  #timer: (() => void) | undefined
  #turn: Promise<unknown> = Promise.resolve()

  constructor(options: RollbackOptions, key: string, ms: number, version: number) {
    this.#options = options
    this.#key = key
    this.#ms = ms
    this.#version = version
    this.#plan()
  }

  static async take(options: RollbackOptions, owner: string, id: string): Promise<Lease | undefined> {
    const key = leaseKey(owner, id)
    const ms = options.leaseMs ?? 6_000
    const { store, runners } = options.units
    const taken = await store.commit([put(key, runners.id, { ifAbsent: true, ttl: ms })])
    return taken.ok ? new Lease(options, key, ms, taken.results[0]?.version ?? 0) : undefined
  }

  async commit(ops: readonly Op[]): Promise<void> {
    const { store } = this.#options.units
    const held = await this.#inTurn(() => store.commit([check(this.#key, this.#version), ...ops]))
    if (!held.ok) throw new LostLease()
  }

  async release(): Promise<void> {
    this.#timer?.()
    await this.#inTurn(() => this.#options.units.store.commit([remove(this.#key, this.#version)]))
  }

  /** A renewal changes the version that a write checks, so the two never overlap. */
  #inTurn<T>(write: () => Promise<T>): Promise<T> {
    const turn = this.#turn.then(write)
    this.#turn = turn.catch(() => {})
    return turn
  }

  #plan(): void {
    const { clock } = this.#options.units
    this.#timer = clock.setTimeout(() => void this.#renew().catch(() => {}), this.#ms / 3, true)
  }

  async #renew(): Promise<void> {
    const { store, runners } = this.#options.units
    const held = await this.#inTurn(() => store.commit([put(this.#key, runners.id, { ifVersion: this.#version, ttl: this.#ms })]))
    // Lost: the next write under it is refused, which ends this rollback here.
    if (!held.ok) return
    this.#version = held.results[0]?.version ?? 0
    this.#plan()
  }
}

/**
 * Units that need somebody: whose rollback nobody is at, that nobody has touched for too long, or that are `over` for another
 * reason, which it gives.
 */
export async function findUnattendedUnits(
  units: Units,
  over?: (owner: string, unit: Unit) => Promise<string | undefined>,
): Promise<readonly NeglectedUnit[]> {
  const found: NeglectedUnit[] = []
  for await (const each of listedUnits(units, unfinishedPrefix)) {
    const { owner, unit } = each
    const idle = unit.status === 'open' && isIdle(unit, units.clock.now())
    const free = unit.status === 'rolling_back' && (await units.store.get(leaseKey(owner, unit.id))) === undefined
    const reason = unit.status === 'open' && !idle ? await over?.(owner, unit) : undefined
    if (idle || free || reason !== undefined) found.push({ ...each, over: reason })
  }
  return found
}

/** Nobody has touched it for as long as its timeout. */
export function isIdle({ activeAt, timeoutMs }: Unit, now: number): boolean {
  return activeAt + timeoutMs <= now
}

/** Units that could not be taken back whole, as long as they are remembered, and those that still are being taken back. */
export async function findStuckUnits(units: Units, most = 1000): Promise<readonly OwnedUnit[]> {
  const found: OwnedUnit[] = []
  for (const prefix of [stuckPrefix, unfinishedPrefix])
    for await (const each of listedUnits(units, prefix)) {
      if (found.length >= most) return found
      if (each.unit.status !== 'open') found.push(each)
    }
  return found
}

interface NeglectedUnit extends OwnedUnit {
  /** Why it is over; undefined where it was only left. */
  readonly over: string | undefined
}

/** A unit with its owner. */
export interface OwnedUnit {
  readonly owner: string
  readonly unit: Unit
}

/** The units that an index names; of one owner where the prefix is within that owner's part. */
export async function* listedUnits(units: Units, prefix: string): AsyncGenerator<OwnedUnit, void, undefined> {
  const index = prefix.indexOf('/') + 1
  for (let after: string | undefined; ; ) {
    const page = await units.store.scan(prefix, after === undefined ? {} : { after })
    for (const { key } of page) {
      const [owner = '', ...rest] = key.slice(index).split('/')
      const entry = await units.store.get(unitKey(owner, rest.join('/')))
      if (entry !== undefined) yield { owner, unit: readUnit(entry.value) }
    }
    after = page.at(-1)?.key
    if (page.length === 0) return
  }
}

/** A step of a process that is gone, or that could not be waited for, has an unknown end. */
export async function abandon(units: Units, owner: string, unit: Unit, step: Step): Promise<void> {
  const key = stepKey(owner, unit.id, step.order)
  const entry = await units.store.get(key)
  if (entry === undefined) return
  const found = readStep(entry.value)
  if (found.status !== 'running') return
  await units.store.commit([put(key, JSON.stringify({ ...found, status: 'indeterminate' }), { ifVersion: entry.version })])
}
