/** A step that takes part in a unit, while it runs: how it ended is written once, by whoever ran it. */
import { put } from '../../stores/ops.ts'
import type { Op } from '../../stores/store.ts'
import { readStep, type Step, type StepFailure, stepKey, type Unit } from './unit.ts'
import type { Units } from './units.ts'

export interface Enrolment {
  readonly step: Step
  /** Done; the inverse with what the result gave for it. False: it was given up and taken back, as far as that could be known then. */
  done(parameters: Readonly<Record<string, unknown>> | undefined): Promise<boolean>
  /** Refused or failed without an effect: nothing to take back. */
  failed(failure: StepFailure): Promise<boolean>
  /** Begun, and nobody here can say how it ends. */
  lost(): Promise<boolean>
}

export function enrolment(units: Units, owner: string, unit: Unit, step: Step): Enrolment {
  const end = async (change: Partial<Step>): Promise<boolean> => {
    const key = stepKey(owner, unit.id, step.order)
    const entry = await units.store.get(key)
    // A rollback that could not wait has written its own end: that one stands.
    if (entry === undefined || readStep(entry.value).status !== 'running') return false
    const write: Op = put(key, JSON.stringify({ ...step, ...change }), { ifVersion: entry.version })
    const { ok } = await units.store.commit([write])
    if (ok) await touch(units, owner, unit.id)
    return ok
  }
  return {
    step,
    done: parameters => {
      const { inverse } = step
      if (inverse === undefined) return end({ status: 'irreversible' })
      return end({ status: 'ok', inverse: parameters === undefined ? inverse : { ...inverse, parameters } })
    },
    failed: failure => end({ status: 'failed', failure }),
    lost: () => end({ status: 'indeterminate' }),
  }
}

/** The wait for the next step counts from the end of this one. */
async function touch(units: Units, owner: string, id: string): Promise<void> {
  await units.change(owner, id, (unit, entry) => {
    if (unit.status !== 'open') return undefined
    const after: Unit = { ...unit, activeAt: units.clock.now() }
    return { unit: after, ops: [put(entry.key, JSON.stringify(after), { ifVersion: entry.version })] }
  })
}
