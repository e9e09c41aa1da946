/** What every driver refuses before it begins, and which condition of a step does not hold, so that all drivers refuse alike. */
import { type Conflict, type Entry, type Op, StoreError, storeLimits } from './store.ts'

const encoder = new TextEncoder()

/** Keys and the names of logs: text that every driver keeps as it is, and sorts alike. */
export function checkKey(key: string, what = 'key'): void {
  if (key === '') throw new StoreError('input', `The ${what} is empty: give it a name`)
  checkText(key, what)
  // Cheap first: no character takes more than three bytes per unit.
  if (key.length * 3 > storeLimits.keyBytes && encoder.encode(key).length > storeLimits.keyBytes)
    throw new StoreError('input', `The ${what} is longer than ${storeLimits.keyBytes} bytes: shorten it, or use its digest`)
}

/** The steps of a commit whose values are text. */
export function checkOps(ops: readonly Op[]): void {
  checkSteps(ops)
  for (const op of ops) if ('value' in op) checkValue(op.value)
}

/** The steps of a commit, whatever their values are. */
export function checkSteps(ops: readonly Op<unknown>[]): void {
  if (ops.length > storeLimits.ops)
    throw new StoreError(
      'input',
      `The commit has ${ops.length} operations; the limit is ${storeLimits.ops}. Split it into several commits`,
    )
  for (const op of ops) checkStep(op)
}

function checkStep(op: Op<unknown>): void {
  checkKey('log' in op ? op.log : op.key, 'log' in op ? 'log' : 'key')
  if ('ttl' in op && op.ttl !== undefined && !(op.ttl > 0 && op.ttl <= Number.MAX_SAFE_INTEGER / 4))
    throw new StoreError('input', `ttl is ${op.ttl}: give milliseconds above 0, or omit it to keep the entry`)
  if (op.op === 'add' && !Number.isSafeInteger(op.by)) throw new StoreError('input', `by is ${op.by}: give a whole number`)
  if (op.op === 'put' && op.ifAbsent && op.ifVersion !== undefined)
    throw new StoreError('input', 'ifAbsent and ifVersion exclude each other: give one of them')
}

function checkValue(value: string): void {
  checkText(value, 'value')
  const { valueBytes } = storeLimits
  if (value.length > valueBytes || (value.length * 3 > valueBytes && encoder.encode(value).length > valueBytes))
    throw new StoreError('input', `The value is larger than ${valueBytes} bytes: store it as a blob, and its digest here`)
}

/** Databases keep no NUL in text, and lone surrogates have no UTF-8. JSON text has neither. */
function checkText(text: string, what: string): void {
  if (!text.isWellFormed() || text.includes('\0'))
    throw new StoreError(
      'input',
      `The ${what} has a NUL character or an unpaired surrogate, which stores cannot hold: encode it as JSON`,
    )
}

/** How many to give: what was asked for, within the limit. */
export function pageSize(limit: number | undefined): number {
  if (limit === undefined) return storeLimits.page
  if (!(Number.isSafeInteger(limit) && limit > 0)) throw new StoreError('input', `limit is ${limit}: give a whole number above 0`)
  return Math.min(limit, storeLimits.page)
}

// Whether a step of a commit holds for what is there: one rule for the drivers that decide it here.

/** What stands in the way of a `put` or `delete`. */
export function unmetCondition(
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

// The order of keys: that of their UTF-8 bytes, which is the order of code points and not that of JavaScript's strings.

/** Negative, zero or positive, as sort functions want it. */
export function compareKeys(a: string, b: string): number {
  const length = Math.min(a.length, b.length)
  for (let i = 0; i < length; i++) {
    const x = a.charCodeAt(i)
    const y = b.charCodeAt(i)
    if (x !== y) return rank(x) - rank(y)
  }
  return a.length - b.length
}

/** Surrogates stand for code points above all others, though their units do not. */
function rank(unit: number): number {
  return unit >= 0xd800 && unit <= 0xdfff ? unit + 0x10000 : unit
}

/** The least key above all that begin with `prefix`; undefined where there is none. */
export function prefixEnd(prefix: string): string | undefined {
  const points = Array.from(prefix)
  while (points.length > 0) {
    const last = points.pop()?.codePointAt(0) ?? 0
    if (last < 0x10ffff) return points.join('') + String.fromCodePoint(last === 0xd7ff ? 0xe000 : last + 1)
  }
  return undefined
}

/** Where the keys lie that a scan may find: from `from` on, to before `end`. With both an index is walked no further than it has to be. */
export function scanBounds(
  prefix: string,
  after: string | undefined,
  before: string | undefined,
): { readonly from: string; readonly end: string | undefined } {
  const last = prefixEnd(prefix)
  const isLess = before !== undefined && (last === undefined || compareKeys(before, last) < 0)
  return { from: after !== undefined && compareKeys(after, prefix) > 0 ? after : prefix, end: isLess ? before : last }
}

/** The index of the first of the sorted keys that is not below `key`. */
function lowerBound(keys: readonly string[], key: string): number {
  let low = 0
  let high = keys.length
  while (low < high) {
    const middle = (low + high) >>> 1
    if (compareKeys(keys[middle] as string, key) < 0) low = middle + 1
    else high = middle
  }
  return low
}

/** A block that has grown beyond this is cut in two. */
const blockLength = 512

/**
 * Keys in their order, in blocks: to put one in or take one out moves the keys of one block, however many keys there are in all.
 * In one array a new key among 100,000 others costs as much as fifty commits.
 */
export class SortedKeys {
  /** None is empty, except where it is the only one. */
  #blocks: string[][] = [[]]

  /** The key must not be there yet. */
  add(key: string): void {
    const at = this.#blockOf(key)
    const block = this.#blocks[at] as string[]
    block.splice(lowerBound(block, key), 0, key)
    if (block.length > blockLength) this.#blocks.splice(at + 1, 0, block.splice(blockLength / 2))
  }

  /** The key must be there. */
  delete(key: string): void {
    const at = this.#blockOf(key)
    const block = this.#blocks[at] as string[]
    block.splice(lowerBound(block, key), 1)
    if (block.length === 0 && this.#blocks.length > 1) this.#blocks.splice(at, 1)
  }

  /** Drops all other keys. */
  retain(keep: (key: string) => boolean): void {
    const left = this.#blocks.map(block => block.filter(keep)).filter(block => block.length > 0)
    this.#blocks = left.length === 0 ? [[]] : left
  }

  /** Shows the keys from `from` on and before `end`, until `visit` returns false. */
  walk(from: string, end: string | undefined, visit: (key: string) => boolean): void {
    let at = this.#blockOf(from)
    let index = lowerBound(this.#blocks[at] as string[], from)
    for (; at < this.#blocks.length; at++, index = 0) {
      const block = this.#blocks[at] as string[]
      const stop = end === undefined ? block.length : lowerBound(block, end)
      for (; index < stop; index++) if (!visit(block[index] as string)) return
      if (stop < block.length) return
    }
  }

  /** The last block that begins at the key or below it, else the first one. */
  #blockOf(key: string): number {
    let low = 0
    let high = this.#blocks.length - 1
    while (low < high) {
      const middle = (low + high + 1) >>> 1
      if (compareKeys(this.#blocks[middle]?.[0] as string, key) <= 0) low = middle
      else high = middle - 1
    }
    return low
  }
}

// Wakes those who watch prefixes. Wakes that come while a reader is busy become one.

class Watch implements AsyncIterable<void> {
  readonly prefixes: readonly string[]
  readonly #leave: () => void
  #woken = false
  #ended = false
  #resume: (() => void) | undefined

  constructor(prefixes: readonly string[], leave: () => void) {
    this.prefixes = prefixes
    this.#leave = leave
  }

  wake(): void {
    this.#woken = true
    this.#resume?.()
  }

  end(): void {
    this.#ended = true
    this.#resume?.()
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<void> {
    try {
      for (;;) {
        if (!this.#woken && !this.#ended) await new Promise<void>(resolve => (this.#resume = resolve))
        if (this.#ended) return
        this.#woken = false
        yield
      }
    } finally {
      this.#leave()
    }
  }
}

/** The watches of a driver: wakes those whose prefixes a commit has touched. */
export class Watchers {
  readonly #watches = new Set<Watch>()
  #closed = false

  get size(): number {
    return this.#watches.size
  }

  /** These keys and logs have changed. */
  changed(names: readonly string[]): void {
    for (const watch of this.#watches) {
      if (names.some(name => watch.prefixes.some(prefix => name.startsWith(prefix)))) watch.wake()
    }
  }

  /** Anything may have changed. */
  all(): void {
    for (const watch of this.#watches) watch.wake()
  }

  /** Watches from now on, not from the first `next()`: what happens in between is not lost. */
  watch(prefixes: readonly string[], signal: AbortSignal): AsyncIterable<void> {
    const stop = (): void => {
      this.#watches.delete(watch)
      signal.removeEventListener('abort', stop)
      watch.end()
    }
    const watch = new Watch(prefixes, stop)
    if (signal.aborted || this.#closed) watch.end()
    else {
      this.#watches.add(watch)
      signal.addEventListener('abort', stop)
    }
    return watch
  }

  /** Ends every watch. */
  close(): void {
    this.#closed = true
    for (const watch of this.#watches) watch.end()
    this.#watches.clear()
  }
}
