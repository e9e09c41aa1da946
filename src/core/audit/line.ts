/** One line of the audit log, and one link of the chain over it: as values, and as text in the store. */
import { clip } from '../../jsonrpc/limits.ts'
import { isRecord } from '../../jsonrpc/message.ts'
import type { LogEntry, LogPosition } from '../../stores/store.ts'

/** What a line records. */
type AuditEvent =
  /** At a gateway; `call_settled` is that of a call under a key. */
  | 'call_begun'
  | 'call_ended'
  | 'call_settled'
  | 'step_ended'
  | 'step_undone'
  | 'transaction_ended'
  | 'confirmation_given'
  | 'confirmation_refused'
  /** By whoever looks at what stands in line. */
  | 'confirmation_answered'
  | 'grant_given'
  | 'grant_revoked'
  /** Something that a host did, or would not do. */
  | 'noted'

/** What a line of the audit log states. */
export interface AuditFacts {
  /** What happened. */
  readonly event: AuditEvent
  /** The id that the operation, the log and the problem of the same request share. */
  readonly correlation?: string | undefined
  /** The key of the principal. */
  readonly owner: string
  /** The tool, the transaction or the grant. */
  readonly target: string
  /** How it ended. */
  readonly outcome?: string | undefined
  /** Further small facts. Never arguments or results. */
  readonly more?: Readonly<Record<string, string | number | undefined>> | undefined
}

/** A line of the audit log. */
export interface AuditLine extends AuditFacts {
  /** Its position in the log. */
  readonly position: LogPosition
  /** When it was written, in milliseconds since the epoch. */
  readonly at: number
}

/** A digest over all lines up to one. */
export interface AuditChainLink {
  readonly upto: LogPosition
  readonly at: number
  readonly hash: string
}

/** Of one text. */
const longest = 512

/** The JSON of texts that come again and again: names, outcomes, owners. */
const texts = new Map<string, string>()
const mostTexts = 1_000
const mostRepeated = 35

/** One is written for each call of a gateway: put together of what was written before. */
export function writeLine({ event, correlation, owner, target, outcome, more }: AuditFacts, at: number): string {
  let line = `{"at":${at},"event":"${event}"`
  if (correlation !== undefined) line += `,"correlation":${JSON.stringify(correlation)}`
  line += `,"owner":${textOf(owner)},"target":${textOf(clip(target, longest))}`
  if (outcome !== undefined) line += `,"outcome":${textOf(outcome)}`
  return more === undefined ? `${line}}` : `${line},"more":{${membersOf(more)}}}`
}

function membersOf(more: NonNullable<AuditFacts['more']>): string {
  let members = ''
  for (const name in more) {
    const value = more[name]
    if (value === undefined) continue
    const text = typeof value === 'string' ? textOf(clip(value, longest)) : JSON.stringify(value)
    members += `${members === '' ? '' : ','}${textOf(name)}:${text}`
  }
  return members
}

function textOf(value: string): string {
  const known = texts.get(value)
  if (known !== undefined) return known
  const text = JSON.stringify(value)
  // Ids and digests come once each: they would only push out what comes again.
  if (value.length > mostRepeated) return text
  if (texts.size >= mostTexts) texts.clear()
  texts.set(value, text)
  return text
}

/** The line that an entry of the log holds. Throws where it holds none. */
export function readLine({ position, value }: LogEntry): AuditLine {
  const line: unknown = JSON.parse(value)
  if (isRecord(line) && typeof line['event'] === 'string' && typeof line['at'] === 'number')
    return { ...(line as unknown as AuditLine), position }
  throw new Error('A line of the audit log does not have the expected form. Another program may have written it')
}

/** Undefined where it is none. */
export function linkOf(text: string): AuditChainLink | undefined {
  try {
    const link: unknown = JSON.parse(text)
    if (!isRecord(link) || typeof link['hash'] !== 'string') return undefined
    return [link['upto'], link['at']].every(Number.isSafeInteger) ? (link as unknown as AuditChainLink) : undefined
  } catch {
    return undefined
  }
}
