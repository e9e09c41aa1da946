/**
 * The stored records of the inbox and their keys. An accepted event has a record by its id until it expires (`seen`), a record in its
 * queue until it is done (`todo`), and its attempts beside it (`try`).
 */
import { hash } from 'node:crypto'
import type { Why } from '../../core/suggestion.ts'
import type { PushEvent } from '../../features/live/push-events/messages.ts'
import { clip } from '../../jsonrpc/limits.ts'
import { isRecord } from '../../jsonrpc/message.ts'
import type { SetAdmission } from '../../policy/feature-sets/set-consent.ts'

/** One try at an event. */
export interface Attempt {
  /** Counted from 1. */
  readonly n: number
  /** When it started, in milliseconds since the epoch. */
  readonly at: number
  /** The id of the process. */
  readonly by: string
  /** `held`: it could not run yet and waits. */
  readonly outcome: 'running' | 'done' | 'failed' | 'interrupted' | 'held'
  /** Why it failed. */
  readonly error?: string
}

/** `waiting`: not done; `refused`: a rule or the user refused it; `dead`: given up after too many attempts. */
export type InboxState = 'waiting' | 'done' | 'refused' | 'dead'

/** The record of an event by its id. */
export interface SeenEvent extends Pick<PushEvent, 'eventId' | 'featureSet'>, Pick<Todo, 'inferenceId' | 'digest' | 'at'> {
  /** Its place in the order. */
  readonly seq: string
  /** The state of the event. */
  readonly state: InboxState
  /** The start of its text. */
  readonly preview?: string
  readonly attempts?: readonly Attempt[]
  readonly why?: Why
  /** It is held until this time. */
  readonly notBefore?: number
  /** The program that sent it: the same id from another program is another event. */
  readonly identity?: string
}

/** The record of an event in its queue. */
export interface Todo {
  readonly event: PushEvent
  /** The id of the inference that the event starts. */
  readonly inferenceId: string
  /** Digest of its body: another body under the same id is a conflict. */
  readonly digest: string
  /** When it was accepted, in milliseconds since the epoch. */
  readonly at: number
  /** Events of one lane run one after the other. */
  readonly lane: string
  /** Not before this time. */
  readonly notBefore?: number
  /** Events with the same inference become one run, when the window is over. */
  readonly group?: true
  /** Its depth in a chain of events; absent: 1. */
  readonly depth?: number
  /** Other servers whose events caused it, or may have. */
  readonly through?: readonly string[]
  /** How it was admitted; absent where there is no policy. */
  readonly admitted?: SetAdmission
  /** It needs an approval before it runs. */
  readonly asks?: true
}

/** A dead event, with everything that a replay needs. */
export interface Dead extends Todo {
  readonly attempts: readonly Attempt[]
  readonly why: Why
}

const prefix = 'inbox/'
/** The longest readable part of a key. */
const most = 300

/** A text as part of a key; long or malformed texts become a digest. */
function part(text: string): string {
  const encoded = encodeURIComponent(text.toWellFormed())
  return encoded.length <= most && text.isWellFormed() ? encoded : `~${hash('sha256', JSON.stringify(text), 'base64url')}`
}

/** The keys of the records. An empty id or sequence number gives the prefix of all records of a server. */
export const inboxKeys = {
  /** The prefix of the queued events of all servers. */
  todos: `${prefix}todo/`,
  /** The prefix of the notices of all servers. */
  calls: `${prefix}call/`,
  /** An event's record. */
  seen: (server: string, eventId: string): string => `${prefix}seen/${part(server)}/${part(eventId)}`,
  /** A queued event. */
  todo: (server: string, seq: string): string => `${prefix}todo/${part(server)}/${seq}`,
  /** The attempts at an event. */
  try: (server: string, seq: string): string => `${prefix}try/${part(server)}/${seq}`,
  /** A dead event. */
  dead: (server: string, seq: string): string => `${prefix}dead/${part(server)}/${seq}`,
  /** A server's event counter. */
  count: (server: string): string => `${prefix}count/${part(server)}`,
  /** Names the process that runs a server's events. */
  owner: (server: string): string => `${prefix}owner/${part(server)}`,
  /** By it a process notifies the owner about an event that it accepted. */
  call: (server: string): string => `${prefix}call/${part(server)}`,
}

/** A place in the order: a growing number, padded so that keys sort by it, and the process that assigned it, so that no two are equal. */
export function seqText(number: number, by: string): string {
  return `${String(number).padStart(16, '0')}-${part(by)}`
}

const previewLength = 160

/** The start of an event's text, for lists. */
export function previewOf({ content }: PushEvent): string {
  const [first] = content.filter(block => block.type === 'text')
  return first === undefined ? `[${content[0]?.type ?? 'empty'}]` : clip(first.text.replace(/\s+/g, ' ').trim(), previewLength)
}

/** The record of a queued event in a state. */
export function seenOf(seq: string, todo: Todo, state: InboxState): SeenEvent {
  const { event, inferenceId, digest, at, admitted: { identity } = {} } = todo
  const { eventId, featureSet } = event
  const preview = previewOf(event)
  return { eventId, featureSet, inferenceId, digest, seq, at, state, preview, ...(identity !== undefined && { identity }) }
}

/** Reads the record of an event. */
export function readSeen(text: string): SeenEvent {
  return read(text, value => typeof value['inferenceId'] === 'string' && typeof value['digest'] === 'string')
}

/** Reads a queued event. */
export function readTodo(text: string): Todo {
  return read(text, value => isRecord(value['event']) && typeof value['lane'] === 'string')
}

/** Reads a dead event. */
export function readDead(text: string): Dead {
  return read(text, value => isRecord(value['event']) && typeof value['lane'] === 'string' && Array.isArray(value['attempts']))
}

/** Reads the attempts of an event. */
export function readAttempts(text: string): readonly Attempt[] {
  const value: unknown = JSON.parse(text)
  if (Array.isArray(value)) return value
  throw unreadable()
}

/** Reads a record; throws where it does not fit. */
function read<T>(text: string, fits: (value: Record<string, unknown>) => boolean): T {
  const value: unknown = JSON.parse(text)
  if (isRecord(value) && fits(value)) return value as T
  throw unreadable()
}

/** The error for records of another program. */
function unreadable(): Error {
  return new Error('A record of the inbox is not valid. Another program may have written it')
}
