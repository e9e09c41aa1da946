/**
 * What is different between two values, leaf by leaf: between a message of a recording and one of now, between a frame as a transcript
 * writes it and a real one, between a turn of then and one of now. The three differ only in what may differ.
 */
import { isRecord } from '../jsonrpc/message.ts'
import { jsonValue, pathPattern, pathText } from './format.ts'

/** A value that differs. */
export interface LeafDifference {
  /** The path of the value, for example `result.content.0.text`. */
  readonly path: string
  /** The value in the recording. Undefined if there was none. */
  readonly before: unknown
  /** The value now. Undefined if there is none. */
  readonly after: unknown
}

/** What is told of one pair of values. */
const mostDifferences = 100

/** Every leaf that differs. */
export function differencesOf(before: unknown, after: unknown): readonly LeafDifference[] {
  const differences: LeafDifference[] = []
  walk(before, after, [], { differs: noteIn(differences) })
  return differences
}

/** What `comparing` found. */
interface Comparison {
  readonly differences: readonly LeafDifference[]
  /** Text of then that is other text now, whether that counts as a difference or not: what was handed out and may come back. */
  readonly learned: ReadonlyMap<string, string>
}

/** As deep as anybody writes by hand. */
const mostDepth = 128

/**
 * Compares messages of two runs: ids, times, cursors and tokens of the protocol may differ.
 * `ignore`: further paths whose values do not count, such as `result.serverInfo.version` or `**.elapsed`.
 */
export function comparing(ignore: readonly string[] = []): (before: unknown, after: unknown) => Comparison {
  const ignored = ignore.map(pathPattern)
  return (before, after) => {
    const differences: LeafDifference[] = []
    const learned = new Map<string, string>()
    const note = noteIn(differences)
    walk(before, after, [], {
      same: path => path.length > mostDepth || ignored.some(matches => matches(path)) || undefined,
      // Results repeat their structure as text: what may differ there may differ here.
      inside: text => (/^\s*[[{]/.test(text) ? jsonValue(text) : undefined),
      differs: (path, then, now) => {
        if (typeof then === 'string' && typeof now === 'string' && then.length > 3) learned.set(then, now)
        if (!mayDiffer(path, then, now)) note(path, then, now)
      },
    })
    return { differences, learned }
  }
}

/** What the names of a transcript stand for. */
type TranscriptValues = ReadonlyMap<string, unknown>

/** The frame with every known `"$name"` replaced by its value. */
export function fillValues(frame: unknown, values: TranscriptValues): unknown {
  if (typeof frame === 'string') return values.has(frame) ? values.get(frame) : frame
  if (Array.isArray(frame)) return frame.map(item => fillValues(item, values))
  if (isRecord(frame)) return Object.fromEntries(Object.entries(frame).map(([key, item]) => [key, fillValues(item, values)]))
  return frame
}

/** A placeholder that captures a value. */
const name = /^\$\w+$/
const types = new Set(['<string>', '<number>', '<boolean>', '<object>', '<any>'])

/**
 * Whether `actual` is as written; then the values that it gave to names that had none, else undefined.
 * `"$name"` takes any value the first time and only that one after; `"<string>"` and its like take any of their type.
 */
export function matchFrame(written: unknown, actual: unknown, values: TranscriptValues): Map<string, unknown> | undefined {
  const taken = new Map(values)
  let matches = true
  walk(fillValues(written, values), actual, [], {
    same: (_, expected, value) => {
      if (typeof expected !== 'string') return undefined
      // A member that is missing has no value, not just any.
      if (types.has(expected)) return value !== undefined && isOfType(expected, value)
      return name.test(expected) ? takes(expected, value, taken) : undefined
    },
    differs: () => {
      matches = false
    },
  })
  return matches ? taken : undefined
}

/** Whether a value has the type that a placeholder names. */
function isOfType(type: string, value: unknown): boolean {
  return type === '<any>' || (type === '<object>' ? isRecord(value) : `<${typeof value}>` === type)
}

/** Captures a value, or compares it with the one captured before. */
function takes(placeholder: string, actual: unknown, taken: Map<string, unknown>): boolean {
  if (taken.has(placeholder)) return JSON.stringify(taken.get(placeholder)) === JSON.stringify(actual)
  taken.set(placeholder, actual)
  return actual !== undefined
}

type Leaf = (path: readonly string[], before: unknown, after: unknown) => void

interface Rules {
  readonly differs: Leaf
  /** Settles a pair without a look at its members: the same, or different. Undefined: it is looked into. */
  readonly same?: (path: readonly string[], before: unknown, after: unknown) => boolean | undefined
  /** The structure that a text holds, where that is to be compared instead of the text. */
  readonly inside?: (text: string) => unknown
}

/** Walks two values in parallel and reports leaves that differ. */
function walk(before: unknown, after: unknown, path: readonly string[], rules: Rules): void {
  const settled = rules.same?.(path, before, after)
  if (settled === true || (settled === undefined && before === after)) return
  if (settled === undefined) {
    if (Array.isArray(before) && Array.isArray(after)) {
      for (let at = 0; at < Math.max(before.length, after.length); at++) walk(before[at], after[at], [...path, String(at)], rules)
      return
    }
    if (isRecord(before) && isRecord(after)) {
      for (const key of new Set([...Object.keys(before), ...Object.keys(after)]))
        walk(memberOf(before, key), memberOf(after, key), [...path, key], rules)
      return
    }
    const [then, now] = [insideOf(before, rules), insideOf(after, rules)]
    if (then !== undefined && now !== undefined) return walk(then, now, path, rules)
  }
  rules.differs(path, before, after)
}

/** A name such as `__proto__` is a member only where it was written. */
function memberOf(value: Readonly<Record<string, unknown>>, key: string): unknown {
  return Object.hasOwn(value, key) ? value[key] : undefined
}

/** The structure inside a text, if any. */
function insideOf(value: unknown, { inside }: Rules): object | undefined {
  const found = typeof value === 'string' ? inside?.(value) : undefined
  return typeof found === 'object' && found !== null ? found : undefined
}

/** Collects differences, up to the limit. */
function noteIn(differences: LeafDifference[]): Leaf {
  return (path, before, after) => {
    if (differences.length < mostDifferences) differences.push({ path: pathText(path), before, after })
  }
}

/** Members whose values are made anew each time: ids, tokens, cursors and times of the protocol and its extensions. */
const volatile = new Set([
  ...['progressToken', 'nextCursor', 'cursor', 'previous_cursor', 'requestState', 'taskId', 'elicitationId', 'sessionId'],
  ...['createdAt', 'lastUpdatedAt', 'timestamp', 'created_at', 'updated_at', 'expires_at', 'started_at', 'ended_at', 'resets_at'],
  ...['original_timestamp', 'retrieved_at', 'accessed_at', 'duration_ms', 'event_id', 'eventId', 'subscription_id', 'requestId'],
  ...[
    'transaction_id',
    'confirmation_token',
    'checkpoint',
    'correlation_id',
    'inferenceId',
    'hostId',
    'traceparent',
    'tracestate',
  ],
  'io.modelcontextprotocol/subscriptionId',
])

const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i
const time = /^\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:?\d\d)?$/

/** Whether a difference is expected: ids, times and other volatile values. */
function mayDiffer(path: readonly string[], before: unknown, after: unknown): boolean {
  const last = path.at(-1)
  if (path.length === 1 && last === 'id') return true
  if (before === undefined || after === undefined) return false
  if (last !== undefined && volatile.has(last) && typeof before === typeof after) return true
  if (typeof before !== 'string' || typeof after !== 'string') return false
  return [uuid, time].some(pattern => pattern.test(before) && pattern.test(after))
}
