/** Whether a step of a commit holds for what is there: one rule for the drivers that decide it here. */
import type { Conflict, Entry, Op } from './store.ts'

/** What stands in the way of a `put` or `delete`. */
export function obstacle(
  op: Op<unknown> & { op: 'put' | 'delete' },
  found: Pick<Entry, 'version'> | undefined,
): Conflict['reason'] | undefined {
  if (op.op === 'put' && op.ifAbsent && found !== undefined) return 'present'
  if (op.ifVersion === undefined || found?.version === op.ifVersion) return undefined
  return found === undefined ? 'absent' : 'version'
}

/** The sum of an `add`, or what stands in its way. */
export function sumOf({ by, min, max }: Op<unknown> & { op: 'add' }, found: Entry | undefined): number | Conflict['reason'] {
  const before = found === undefined ? 0 : Number(found.value)
  // A number that `add` would write otherwise is not one of its own.
  if (!Number.isSafeInteger(before) || (found !== undefined && String(before) !== found.value)) return 'number'
  const sum = before + by
  // An infinite bound is none, and is lost on the way to some drivers.
  if (!Number.isSafeInteger(sum) || sum < (min ?? Number.NEGATIVE_INFINITY) || sum > (max ?? Number.POSITIVE_INFINITY))
    return 'range'
  return sum
}
