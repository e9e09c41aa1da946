/** One line of the audit log, and one link of the chain over it. */
import { clip } from '../../jsonrpc/limits.ts'
import { isRecord } from '../../jsonrpc/message.ts'
import type { LogEntry, Position } from '../../stores/store.ts'

/** What is written down. */
export type AuditEvent =
  | 'call_settled'
  | 'step_ended'
  | 'step_undone'
  | 'transaction_ended'
  | 'confirmation_given'
  | 'confirmation_refused'
  | 'grant_given'
  | 'grant_revoked'
  /** Something that a host did, or would not do. */
  | 'noted'

export interface AuditFacts {
  readonly event: AuditEvent
  /** Joins the line with the operation, the log and the problem of the same request. */
  readonly correlation?: string | undefined
  /** The key of the principal. */
  readonly owner: string
  /** The tool, the transaction or the grant. */
  readonly target: string
  readonly outcome?: string | undefined
  /** Small facts beside it; never arguments or results. */
  readonly more?: Readonly<Record<string, string | number | undefined>> | undefined
}

export interface AuditLine extends AuditFacts {
  readonly position: Position
  /** Milliseconds since the epoch. */
  readonly at: number
}

/** A digest over all lines up to one. */
export interface Link {
  readonly upto: Position
  readonly at: number
  readonly hash: string
}

/** Of one text. */
const longest = 512

export function writeLine({ event, correlation, owner, target, outcome, more }: AuditFacts, at: number): string {
  return JSON.stringify({ at, event, correlation, owner, target: clip(target, longest), outcome, more: more && clipped(more) })
}

function clipped(more: NonNullable<AuditFacts['more']>): NonNullable<AuditFacts['more']> {
  const out: Record<string, string | number | undefined> = {}
  for (const name in more) {
    const value = more[name]
    out[name] = typeof value === 'string' ? clip(value, longest) : value
  }
  return out
}

export function readLine({ position, value }: LogEntry): AuditLine {
  const line: unknown = JSON.parse(value)
  if (isRecord(line) && typeof line['event'] === 'string' && typeof line['at'] === 'number')
    return { ...(line as unknown as AuditLine), position }
  throw new Error('A line of the audit log cannot be read: was it written by another program?')
}

/** Undefined where it is none. */
export function linkOf(text: string): Link | undefined {
  try {
    const link: unknown = JSON.parse(text)
    if (!isRecord(link) || typeof link['hash'] !== 'string') return undefined
    return [link['upto'], link['at']].every(Number.isSafeInteger) ? (link as unknown as Link) : undefined
  } catch {
    return undefined
  }
}
