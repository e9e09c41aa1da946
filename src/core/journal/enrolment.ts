/** A step that takes part in a unit, while it runs: how it ended is written once, by whoever ran it. */
import { type Op, put } from '../../stores/store.ts'
import { problem } from '../problem.ts'
import { readStep, type Step, type StepFailure, stepKey, type Unit } from './unit.ts'
import type { Units } from './units.ts'

export interface Enrolment {
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

export function enrolment(units: Units, owner: string, unit: Unit, begun: Step): Enrolment {
  let step = begun
  const key = stepKey(owner, unit.id, begun.order)
  const end = async (change: Partial<Step>): Promise<boolean> => {
    const entry = await units.store.get(key)
    // A rollback that could not wait has written its own end: that one stands.
    if (entry === undefined || readStep(entry.value).status !== 'running') return false
    const after: Step = { ...step, ...change }
    const write: Op = put(key, JSON.stringify(after), { ifVersion: entry.version })
    const { ok } = await units.store.commit([write, ...auditOf(units, 'step_ended', owner, unit, after)])
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
        throw problem('TRANSACTION_CONFLICT', 'The transaction is over: it was rolled back while this step ran')
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
export function auditOf(
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
