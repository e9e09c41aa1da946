/** What is different between a message of the tape and one of now, leaf by leaf, but for what is of its time. */
import { isRecord } from '../../jsonrpc/message.ts'
import { type Path, pathPattern, pathText } from './paths.ts'

export interface Differing {
  readonly path: string
  /** Undefined where there was nothing. */
  readonly before: unknown
  readonly after: unknown
}

export interface Comparison {
  readonly differences: readonly Differing[]
  /** Text of then that is other text now, whether that counts as a difference or not: what was handed out and may come back. */
  readonly learned: ReadonlyMap<string, string>
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

/** As deep as anybody writes by hand. */
const mostDepth = 128
/** What is told of one pair of messages. */
const mostDifferences = 100

export type Compare = (before: unknown, after: unknown) => Comparison

/** `ignore`: further paths whose values do not count, such as `result.serverInfo.version` or `**.elapsed`. */
export function comparing(ignore: readonly string[] = []): Compare {
  const ignored = ignore.map(pathPattern)
  return (before, after) => {
    const differences: Differing[] = []
    const learned = new Map<string, string>()
    const note = (path: Path, then: unknown, now: unknown): void => {
      if (typeof then === 'string' && typeof now === 'string' && then.length > 3) learned.set(then, now)
      if (isOfItsTime(path, then, now) || differences.length >= mostDifferences) return
      differences.push({ path: pathText(path), before: then, after: now })
    }
    walk(before, after, [], note, path => ignored.some(matches => matches(path)))
    return { differences, learned }
  }
}

type Note = (path: Path, before: unknown, after: unknown) => void

function walk(before: unknown, after: unknown, path: Path, note: Note, ignored: (path: Path) => boolean): void {
  if (before === after || ignored(path) || path.length > mostDepth) return
  if (Array.isArray(before) && Array.isArray(after)) {
    for (let at = 0; at < Math.max(before.length, after.length); at++)
      walk(before[at], after[at], [...path, String(at)], note, ignored)
    return
  }
  if (isRecord(before) && isRecord(after)) {
    for (const name of new Set([...Object.keys(before), ...Object.keys(after)]))
      walk(before[name], after[name], [...path, name], note, ignored)
    return
  }
  const [then, now] = [inside(before), inside(after)]
  // Results repeat their structure as text: what is of its time there is so here.
  if (then !== undefined && now !== undefined) walk(then, now, path, note, ignored)
  else note(path, before, after)
}

function isOfItsTime(path: Path, before: unknown, after: unknown): boolean {
  const name = path.at(-1)
  if (path.length === 1 && name === 'id') return true
  if (before === undefined || after === undefined) return false
  if (name !== undefined && volatile.has(name) && typeof before === typeof after) return true
  if (typeof before !== 'string' || typeof after !== 'string') return false
  return [uuid, time].some(pattern => pattern.test(before) && pattern.test(after))
}

function inside(value: unknown): object | undefined {
  if (typeof value !== 'string' || !/^\s*[[{]/.test(value)) return undefined
  try {
    const parsed: unknown = JSON.parse(value)
    return typeof parsed === 'object' && parsed !== null ? parsed : undefined
  } catch {
    return undefined
  }
}
