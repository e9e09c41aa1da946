/** A note: one thing that the host did for, or refused to, a server. How it becomes a line of the audit log, and comes back. */
import { type AuditFacts, type AuditLine, writeLine } from '../../core/audit/line.ts'
import type { Why } from '../../core/why.ts'

/** What came of it. `refused`, `held` and `dropped` are decisions of the host and say why. */
export type NoteOutcome = 'success' | 'failure' | 'timeout' | 'refused' | 'held' | 'dropped'

export interface Note {
  readonly server: string
  readonly featureSet?: string | undefined
  readonly inferenceId?: string | undefined
  readonly eventId?: string | undefined
  readonly conversation?: string | undefined
  /** The inference or event that this one came of. */
  readonly cause?: string | undefined
  /** What it was: `push`, `tool`, `hook.before`, `rollback`, … */
  readonly kind: string
  readonly outcome: NoteOutcome
  readonly why?: Why | undefined
  /** The rule, grant or approval that allowed it. What was not allowed has its rule in `why`. */
  readonly rule?: string | undefined
  /** A few words beside it: a tool's name, an address, a count. Never arguments or results. */
  readonly detail?: string | undefined
  /** How long it took, in milliseconds. */
  readonly ms?: number | undefined
}

/** A note with the time at which it was written. */
export interface Noted extends Note {
  /** Milliseconds since the epoch. */
  readonly at: number
}

export function noteFactsOf(note: Note): AuditFacts {
  const { server, featureSet, inferenceId, eventId, conversation, cause, kind, outcome, why, rule, detail, ms } = note
  return {
    event: 'noted',
    correlation: inferenceId,
    owner: server,
    target: kind,
    outcome,
    more: { featureSet, eventId, conversation, cause, detail, ms, rule, ...why },
  }
}

export function noteText(note: Note, at: number): string {
  return writeLine(noteFactsOf(note), at)
}

/** Undefined for lines that are no notes: others may write to the same log. */
export function notedOf(line: Omit<AuditLine, 'position'>): Noted | undefined {
  if (line.event !== 'noted') return undefined
  const { code, rule, message, fix, ms, ...more } = line.more ?? {}
  const told = Object.fromEntries(Object.entries(more).filter(([name]) => texts.has(name)))
  return {
    at: line.at,
    server: line.owner,
    kind: line.target,
    outcome: outcomes.has(line.outcome ?? '') ? (line.outcome as NoteOutcome) : 'failure',
    ...(line.correlation !== undefined && { inferenceId: line.correlation }),
    ...told,
    ...(typeof ms === 'number' && { ms }),
    ...(code === undefined && rule !== undefined && { rule: `${rule}` }),
    ...(code !== undefined && { why: { code: `${code}`, rule: `${rule}`, message: `${message}`, fix: `${fix}` } }),
  }
}

const texts = new Set(['featureSet', 'eventId', 'conversation', 'cause', 'detail'])
const outcomes: ReadonlySet<string> = new Set(['success', 'failure', 'timeout', 'refused', 'held', 'dropped'])
