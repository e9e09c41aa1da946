/** Units of work on a store: begin, take part, commit. Taking back is in `rollback.ts`. */
import type { Awaitable } from '../../jsonrpc/message.ts'
import { type Entry, type Op, put, remove, type Store, storeLimits } from '../../stores/store.ts'
import type { Audit } from '../audit/audit.ts'
import type { Clock } from '../clock.ts'
import { leftOf, quotaExhausted } from '../occupancy.ts'
import { problem } from '../problem.ts'
import type { JournalCapacity } from './journal.ts'
import type { ProcessLeases } from './process-leases.ts'
import {
  type CompensationCall,
  isEnded,
  readStep,
  readUnit,
  type Step,
  type StepFailure,
  stepKey,
  stepsPrefix,
  type Unit,
  type UnitGrant,
  unfinishedKey,
  unitBeginKey,
  unitKey,
} from './unit.ts'

interface UnitsOptions {
  readonly store: Store
  readonly clock: Clock
  readonly runners: ProcessLeases
  /** How long an ended unit, and its id, are remembered. Default one day. */
  readonly retentionMs?: number
  /** Units at once, of one owner. Default 100. */
  readonly perOwner?: number
  /** Where units and their steps count against the share of whoever began them. Without it nothing counts. */
  readonly capacity?: JournalCapacity
  /** Steps of one unit. Default, and at most, 900: its end is one commit. */
  readonly steps?: number
  readonly audit?: Audit | undefined
  /** What must still hold when something is written into an open unit; throws where it does not any more. */
  readonly holds?: (owner: string, unit: Unit) => Promise<readonly Op[]>
}

interface BeginOptions {
  readonly timeoutMs: number
  readonly description?: string
  readonly irreversible?: boolean
  /** Whose share it counts against. Default: its owner's. */
  readonly account?: string
  /** The grant that let it in. */
  readonly grant?: UnitGrant | undefined
}

/** A step that wants to take part. */
interface StepWanted {
  /** Default: its order. */
  readonly id?: string
  readonly target: string
  readonly key: string
  readonly inverse: CompensationCall | undefined
  readonly authority?: unknown
  /** The grant that let it in. */
  readonly grant?: UnitGrant | undefined
  readonly correlation?: string | undefined
}

/** A unit with its steps. */
export interface UnitReport {
  readonly unit: Unit
  /** In the order in which they began. */
  readonly steps: readonly Step[]
}

const TRIES = 50
/** Longer than between a count and the write that relies on it. */
const turnMs = 60_000

/** The units of work of a store: begins them, takes in their steps, commits them. */
export class Units {
  readonly store: Store
  readonly clock: Clock
  readonly runners: ProcessLeases
  readonly audit: Audit | undefined
  readonly retentionMs: number
  readonly #perOwner: number
  readonly #steps: number
  readonly #capacity: JournalCapacity | undefined
  readonly #holds: (owner: string, unit: Unit) => Promise<readonly Op[]>

  constructor(options: UnitsOptions) {
    this.store = options.store
    this.clock = options.clock
    this.runners = options.runners
    this.audit = options.audit
    this.retentionMs = options.retentionMs ?? 86_400_000
    this.#perOwner = options.perOwner ?? 100
    this.#capacity = options.capacity
    this.#steps = Math.min(options.steps ?? 900, 900)
    this.#holds = options.holds ?? (async () => [])
  }

  async begin(owner: string, id: string, options: BeginOptions): Promise<Unit> {
    const now = this.clock.now()
    const { timeoutMs, description, irreversible = false, grant, account = owner } = options
    const said = {
      ...(description === undefined ? {} : { description }),
      ...(grant === undefined ? {} : { grants: [grant] }),
      ...(account === owner ? {} : { account }),
    }
    const unit: Unit = { id, status: 'open', ...said, begunAt: now, activeAt: now, timeoutMs, irreversible, steps: 0 }
    const text = JSON.stringify(unit)
    const ops = [put(unitKey(owner, id), text, { ifAbsent: true }), put(unfinishedKey(owner, id), account)]
    await this.#capacity?.admit(account, text.length)
    // Each time somebody begins, so whoever does not in the end finds that there are too many.
    for (let attempt = 0; attempt < this.#perOwner + TRIES; attempt++) {
      const begun = await this.store.commit([...ops, await this.#turn(owner, account)])
      if (begun.ok) {
        this.#capacity?.taken(account, unitKey(owner, id), text.length)
        return unit
      }
      if (begun.index === 0)
        throw problem('TRANSACTION_CONFLICT', 'A transaction with this id already exists or existed', {
          suggestion: 'Begin the transaction with a new id',
        })
    }
    throw problem('SERVER_UNAVAILABLE', 'Too many transactions begin at the same time', { retryAfter: 100 })
  }

  /** There is room for one more. Of those who have counted at the same time one alone can write this; the others count again. */
  async #turn(owner: string, account: string): Promise<Op> {
    const key = unitBeginKey(owner)
    const last = await this.store.get(key)
    const open = await this.store.scan(unfinishedKey(owner, ''))
    // Those who are not known have one owner, and an account for each network.
    const mine = open.filter(({ value }) => value === account || value === '')
    const crowded = mine.length < open.length && leftOf(storeLimits.page, open.length, mine.length) === 0
    if (mine.length >= this.#perOwner || crowded)
      throw quotaExhausted(
        `open transactions (${mine.length})`,
        await this.#soonestEnd(owner, mine),
        'Commit or roll back one of them first',
      )
    return put(key, '', { ...(last === undefined ? { ifAbsent: true } : { ifVersion: last.version }), ttl: turnMs })
  }

  /** After so long the first of them is rolled back, if nobody touches it. */
  async #soonestEnd(owner: string, open: readonly Entry[]): Promise<number | undefined> {
    const first = open[0]?.key.slice(unfinishedKey(owner, '').length)
    const entry = first === undefined ? undefined : await this.store.get(unitKey(owner, first))
    if (entry === undefined) return undefined
    const { activeAt, timeoutMs } = readUnit(entry.value)
    return activeAt + timeoutMs - this.clock.now()
  }

  /** Undefined where there is none, or none that is remembered. */
  async get(owner: string, id: string): Promise<UnitReport | undefined> {
    const entry = await this.store.get(unitKey(owner, id))
    return entry === undefined ? undefined : { unit: readUnit(entry.value), steps: await this.stepsOf(owner, id) }
  }

  async stepsOf(owner: string, id: string): Promise<Step[]> {
    const steps: Step[] = []
    for (let after: string | undefined; ; ) {
      const page = await this.store.scan(stepsPrefix(owner, id), after === undefined ? {} : { after })
      steps.push(...page.map(entry => readStep(entry.value)))
      after = page.at(-1)?.key
      if (page.length === 0) return steps
    }
  }

  /** Writes the record of a step, before its effect. Refuses where the unit is unknown or takes no more. */
  async enrol(owner: string, id: string, wanted: StepWanted): Promise<Enrolment> {
    const unit = await this.change(owner, id, (unit, entry) => this.#enrolling(owner, unit, entry, wanted))
    const step = this.#stepOf(unit, wanted)
    this.#capacity?.taken(unit.account ?? owner, stepKey(owner, id, step.order), JSON.stringify(step).length)
    return enrolment(this, owner, unit, step)
  }

  /** Goes on with a step that was put off, here or elsewhere: from now on it runs here. */
  async resume(owner: string, id: string, order: number): Promise<Enrolment> {
    const found = await this.get(owner, id)
    const entry = await this.store.get(stepKey(owner, id, order))
    if (found === undefined || entry === undefined) throw unknownUnit()
    const step: Step = { ...readStep(entry.value), runner: this.runners.id }
    if (found.unit.status !== 'open' || step.status !== 'running') throw unitEndedError(found.unit)
    if (!(await this.store.commit([put(entry.key, JSON.stringify(step), { ifVersion: entry.version })])).ok)
      throw problem('TRANSACTION_CONFLICT', `Another call is already running step ${step.id}`, {
        category: 'transient',
        suggestion: 'Wait until that call has ended',
      })
    return enrolment(this, owner, found.unit, step)
  }

  async #enrolling(owner: string, unit: Unit, entry: Entry, wanted: StepWanted): Promise<UnitChange> {
    if (unit.status !== 'open') throw unitEndedError(unit)
    if (wanted.inverse === undefined && !unit.irreversible)
      throw problem(
        'TRANSACTION_CONFLICT',
        `${wanted.target} has no compensation, and the transaction does not allow such steps`,
        {
          category: 'invalid_input',
          suggestion: 'Call it outside the transaction, or begin one that allows steps without compensation',
        },
      )
    if (unit.steps >= this.#steps)
      throw problem('TRANSACTION_CONFLICT', `The transaction already has ${unit.steps} steps (the limit)`, {
        suggestion: 'Commit it, and begin another one',
      })
    const grants = grantsOf(unit, wanted.grant)
    const after: Unit = { ...unit, steps: unit.steps + 1, activeAt: this.clock.now(), ...(grants.length > 0 && { grants }) }
    const held = await this.#holds(owner, unit)
    const step = this.#stepOf(after, wanted)
    // The unit's version holds against another that begins meanwhile. What had no effect may be tried again under its id.
    if ((await this.stepsOf(owner, unit.id)).some(({ id, status }) => id === step.id && status !== 'failed'))
      throw problem('TRANSACTION_CONFLICT', 'The transaction already has a step with this id', {
        category: 'invalid_input',
        suggestion: 'Give each step a different id, or none',
      })
    const text = JSON.stringify(step)
    await this.#capacity?.admit(unit.account ?? owner, text.length)
    const write = put(stepKey(owner, unit.id, after.steps), text, { ifAbsent: true })
    return { unit: after, ops: [put(entry.key, JSON.stringify(after), { ifVersion: entry.version }), write, ...held] }
  }

  #stepOf(unit: Unit, { id, target, key, inverse, authority, correlation }: StepWanted): Step {
    return {
      id: id ?? String(unit.steps),
      order: unit.steps,
      target,
      status: 'running',
      runner: this.runners.id,
      key,
      ...(inverse !== undefined && { inverse }),
      ...(authority !== undefined && { authority }),
      ...(correlation !== undefined && { correlation }),
    }
  }

  /** Ends it well. Said again, it gives the same. */
  async commit(owner: string, id: string): Promise<UnitReport> {
    const steps = await this.stepsOf(owner, id)
    const unit = await this.change(owner, id, async (unit, entry) => {
      if (unit.status === 'committed') return undefined
      if (unit.status !== 'open') throw unitEndedError(unit)
      const open = steps.find(step => step.status === 'running' || step.status === 'indeterminate')
      if (open !== undefined || unit.steps !== steps.length)
        throw problem('TRANSACTION_CONFLICT', `Step ${open?.id ?? unit.steps} is ${open?.status ?? 'running'}`, {
          category: open?.status === 'indeterminate' ? 'permanent' : 'transient',
          suggestion: open?.status === 'indeterminate' ? 'Roll the transaction back' : 'Commit when every step has ended',
        })
      const after: Unit = { ...unit, status: 'committed', activeAt: this.clock.now() }
      return { unit: after, ops: [...this.ending(owner, after, steps, entry), ...(await this.#holds(owner, unit))] }
    })
    return { unit, steps }
  }

  /** What is written when a unit ends: from then on it is remembered for a while, with its steps. */
  ending(owner: string, unit: Unit, steps: readonly Step[], { key, version }: Entry): readonly Op[] {
    const ttl = this.retentionMs
    return [
      put(key, JSON.stringify(unit), { ifVersion: version, ttl }),
      remove(unfinishedKey(owner, unit.id)),
      ...steps.map(step => put(stepKey(owner, unit.id, step.order), JSON.stringify(step), { ttl })),
      ...this.#ended(owner, unit, steps),
    ]
  }

  #ended(owner: string, { id, status, reason }: Unit, steps: readonly Step[]): readonly Op[] {
    if (this.audit === undefined) return []
    const more = { reason, steps: steps.length }
    return [this.audit.line({ event: 'transaction_ended', owner, target: id, outcome: status, more })]
  }

  /** Replaces a unit by what `make` makes of it, together with other writes, however many others do so at once. */
  async change(owner: string, id: string, make: (unit: Unit, entry: Entry) => Awaitable<UnitChange | undefined>): Promise<Unit> {
    for (let attempt = 0; attempt < TRIES; attempt++) {
      const entry = await this.store.get(unitKey(owner, id))
      if (entry === undefined) throw unknownUnit()
      const unit = readUnit(entry.value)
      const made = await make(unit, entry)
      if (made === undefined) return unit
      if ((await this.store.commit(made.ops)).ok) return made.unit
    }
    throw problem('TRANSACTION_CONFLICT', 'Too many steps begin at the same time', { category: 'transient', retryAfter: 100 })
  }
}

/** A unit as it becomes, and the writes that make it so. */
interface UnitChange {
  readonly unit: Unit
  readonly ops: readonly Op[]
}

/** Each is looked at again and again while the unit is open. */
const MOST_GRANTS = 16

function grantsOf({ grants = [] }: Unit, grant: UnitGrant | undefined): readonly UnitGrant[] {
  if (grant === undefined || grants.some(({ id }) => id === grant.id)) return grants
  if (grants.length < MOST_GRANTS) return [...grants, grant]
  throw problem('TRANSACTION_CONFLICT', `The transaction uses more than ${MOST_GRANTS} grants (the limit)`, {
    suggestion: 'Split it into smaller transactions',
  })
}

/** The refusal of what concerns a unit that is not known. */
export function unknownUnit(): Error {
  return problem('RESOURCE_NOT_FOUND', 'No transaction has this id', { suggestion: 'Begin a transaction first' })
}

/** The refusal of what concerns a unit that has ended, or is being rolled back. */
export function unitEndedError(unit: Unit): Error {
  const how = isEnded(unit) ? `is ${unit.status}` : 'is being rolled back'
  return problem('TRANSACTION_CONFLICT', `The transaction ${how} and accepts no more steps`, { suggestion: 'Begin a new one' })
}

// A step that takes part in a unit, while it runs: how it ended is written once, by whoever ran it.

/** A step that takes part in a unit, until its end is written down. */
export interface Enrolment {
  /** As it was written before its effect. */
  readonly step: Step
  /** When its unit was begun: tells it from others that had the same id before. */
  readonly begunAt: number
  /** Something is about to be written beside its effect, under names of its own. Throws where the step is given up already. */
  wrote(what: object): Promise<void>
  /** Done; the inverse with what the result gave for it. False: it was given up and taken back, as far as that could be known then. */
  done(parameters: Readonly<Record<string, unknown>> | undefined): Promise<boolean>
  /** Refused or failed without an effect: nothing to take back. */
  failed(failure: StepFailure): Promise<boolean>
  /** Begun, and nobody here can say how it ends. */
  lost(): Promise<boolean>
}

function enrolment(units: Units, owner: string, unit: Unit, begun: Step): Enrolment {
  let step = begun
  const key = stepKey(owner, unit.id, begun.order)
  const end = async (change: Partial<Step>): Promise<boolean> => {
    const entry = await units.store.get(key)
    // A rollback that could not wait has written its own end: that one stands.
    if (entry === undefined || readStep(entry.value).status !== 'running') return false
    const after: Step = { ...step, ...change }
    const write: Op = put(key, JSON.stringify(after), { ifVersion: entry.version })
    const { ok } = await units.store.commit([write, ...stepAuditLine(units, 'step_ended', owner, unit, after)])
    if (ok) await touch(units, owner, unit.id)
    return ok
  }
  return {
    begunAt: unit.begunAt,
    get step() {
      return step
    },
    wrote: async what => {
      const entry = await units.store.get(key)
      const after: Step = { ...step, wrote: { ...step.wrote, ...what } }
      const running = entry !== undefined && readStep(entry.value).status === 'running'
      const write = put(key, JSON.stringify(after), { ifVersion: entry?.version ?? 0 })
      if (!running || !(await units.store.commit([write])).ok)
        throw problem('TRANSACTION_CONFLICT', 'The transaction was rolled back while this step ran', {
          suggestion: 'Begin a new one',
        })
      step = after
    },
    done: parameters => {
      const { inverse } = step
      if (inverse === undefined) return end({ status: 'irreversible' })
      return end({ status: 'ok', inverse: parameters === undefined ? inverse : { ...inverse, parameters } })
    },
    failed: failure => end({ status: 'failed', failure }),
    lost: () => end({ status: 'indeterminate' }),
  }
}

/** The line of the audit log that tells what became of a step. */
export function stepAuditLine(
  { audit }: Units,
  event: 'step_ended' | 'step_undone',
  owner: string,
  { id }: Unit,
  { id: step, target: tool, status: outcome, correlation, failure }: Step,
): readonly Op[] {
  if (audit === undefined) return []
  return [audit.line({ event, correlation, owner, target: id, outcome, more: { step, tool, code: failure?.code } })]
}

/** The wait for the next step counts from the end of this one. */
async function touch(units: Units, owner: string, id: string): Promise<void> {
  await units.change(owner, id, (unit, entry) => {
    if (unit.status !== 'open') return undefined
    const after: Unit = { ...unit, activeAt: units.clock.now() }
    return { unit: after, ops: [put(entry.key, JSON.stringify(after), { ifVersion: entry.version })] }
  })
}
