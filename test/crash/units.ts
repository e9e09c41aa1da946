/** Units of work, of a server or of a saga: what must hold when they are over. */
import { type Aftermath, broken, double, type Finding, lost } from './operation.ts'

export interface EndedStep {
  /** What it makes. */
  readonly id: string
  /** As it is recorded; undefined where it never began. */
  readonly status: string | undefined
  /** How its making is seen; what is forged may be so more than once. Default: made. */
  readonly effect?: 'make' | 'forge'
}

export interface EndedUnit {
  readonly id: string
  readonly status: string
  /** What its caller was told; undefined where nothing reached the caller. */
  readonly told: string | undefined
  readonly steps: readonly EndedStep[]
  /** Whether it is listed for somebody to look at. */
  readonly listed: boolean
}

const ends: ReadonlySet<string> = new Set(['committed', 'rolled_back', 'partially_rolled_back'])

export function isOver(status: string): boolean {
  return ends.has(status)
}

export function judgeUnit(unit: EndedUnit, { seen }: Pick<Aftermath, 'seen'>): Finding[] {
  const { id, status, told, steps, listed } = unit
  const findings: Finding[] = []
  if (!isOver(status)) findings.push(broken(`${id} is ${status} for ever`))
  if (told !== undefined && told !== status) findings.push(lost(`${id} was told to be ${told}, and is ${status}`))
  if (listed !== (status === 'partially_rolled_back'))
    findings.push(broken(`${id} is ${status}, and ${listed ? '' : 'not '}listed as stuck`))
  for (const step of steps) {
    const { effect = 'make' } = step
    const made = seen.times(effect, step.id)
    const unmade = seen.times('unmake', step.id)
    if (made > 1 && effect === 'make') findings.push(double(`${step.id} was made ${made} times`))
    if (status === 'committed') {
      if (made === 0) findings.push(lost(`${step.id} was committed and never made`))
      if (unmade > 0) findings.push(lost(`${step.id} was committed and taken back`))
    } else if (made > 0 && unmade === 0 && step.status !== 'compensation_failed')
      findings.push(lost(`${step.id} was made, and not taken back with ${id}, which is ${status}; it is ${step.status}`))
  }
  return [...findings, ...inReverse(unit, seen)]
}

/** What was done last is taken back first. */
function inReverse({ id, steps }: EndedUnit, seen: Aftermath['seen']): Finding[] {
  const undone = steps.map(step => seen.first('unmake', step.id)).filter(line => line !== undefined)
  return undone.every((line, index) => index === 0 || line < (undone[index - 1] ?? 0))
    ? []
    : [broken(`${id} was taken back in another order than the reverse`)]
}
