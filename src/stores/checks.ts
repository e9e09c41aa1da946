/** What every driver refuses before it begins, and which condition of a step does not hold, so that all drivers refuse alike. */
import { type Conflict, type Entry, type Op, StoreError, storeLimits } from './store.ts'

const encoder = new TextEncoder()

/** Keys and the names of logs: text that every driver keeps as it is, and sorts alike. */
export function checkKey(key: string, what = 'key'): void {
  if (key === '') throw new StoreError('input', `The ${what} is empty: give it a name`)
  checkText(key, what)
  // Cheap first: no character takes more than three bytes per unit.
  if (key.length * 3 > storeLimits.keyBytes && encoder.encode(key).length > storeLimits.keyBytes)
    throw new StoreError('input', `The ${what} is longer than ${storeLimits.keyBytes} bytes: shorten it, or keep a digest of it`)
}

/** The steps of a commit whose values are text. */
export function checkOps(ops: readonly Op[]): void {
  checkSteps(ops)
  for (const op of ops) if ('value' in op) checkValue(op.value)
}

/** The steps of a commit, whatever their values are. */
export function checkSteps(ops: readonly Op<unknown>[]): void {
  if (ops.length > storeLimits.ops)
    throw new StoreError('input', `A commit of ${ops.length} steps is above the limit of ${storeLimits.ops}: make several`)
  for (const op of ops) checkStep(op)
}

function checkStep(op: Op<unknown>): void {
  checkKey('log' in op ? op.log : op.key, 'log' in op ? 'log' : 'key')
  if ('ttl' in op && op.ttl !== undefined && !(op.ttl > 0 && op.ttl <= Number.MAX_SAFE_INTEGER / 4))
    throw new StoreError('input', `A time to live of ${op.ttl} ms: give milliseconds above 0, or leave it out to keep the entry`)
  if (op.op === 'add' && !Number.isSafeInteger(op.by)) throw new StoreError('input', `Counting by ${op.by}: give a whole number`)
  if (op.op === 'put' && op.ifAbsent && op.ifVersion !== undefined)
    throw new StoreError('input', 'A put that is to find the key absent cannot name its version: give one of the two')
}

function checkValue(value: string): void {
  checkText(value, 'value')
  const { valueBytes } = storeLimits
  if (value.length > valueBytes || (value.length * 3 > valueBytes && encoder.encode(value).length > valueBytes))
    throw new StoreError('input', `The value is larger than ${valueBytes} bytes: keep it as a blob and its digest here`)
}

/** Databases keep no NUL in text, and lone surrogates have no UTF-8. JSON text has neither. */
function checkText(text: string, what: string): void {
  if (!text.isWellFormed() || text.includes('\0'))
    throw new StoreError('input', `The ${what} has a NUL or half a surrogate pair, which no store can keep: write it as JSON`)
}

/** How many to give: what was asked for, within the limit. */
export function pageSize(limit: number | undefined): number {
  if (limit === undefined) return storeLimits.page
  if (!(Number.isSafeInteger(limit) && limit > 0))
    throw new StoreError('input', `A limit of ${limit}: give a whole number above 0`)
  return Math.min(limit, storeLimits.page)
}

// Whether a step of a commit holds for what is there: one rule for the drivers that decide it here.

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
