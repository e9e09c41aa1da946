/** What is asked of a person, and how the answer is read. */
import { hash } from 'node:crypto'
import { canonicalJson } from '../../core/digest.ts'
import type { Duration } from '../../core/duration.ts'
import type { Scope } from '../../features/live/scopes/messages.ts'
import { echo } from '../../jsonrpc/limits.ts'
import { isRecord } from '../../jsonrpc/message.ts'
import { type Asking, wordsFor } from './judge.ts'
import type { Asked, Kind } from './rule.ts'

export interface ApprovalQuestion {
  /** One sentence. Names in it are the server's, and clipped. */
  readonly text: string
  /** All of what is asked for: show the label and the payload of a scope, both. */
  readonly asked: Asked
  /** What it is about: of a tool call perhaps only its scope. */
  readonly about: Kind
  /** What the arguments act on, where the host could read it. */
  readonly scopes: readonly Scope[]
  /** The spelling of a scope is unusual, and this is how. */
  readonly flaw?: string
  /** The rule that wants it asked. */
  readonly rule: string
  /** A yes counts for exactly this. */
  readonly digest: string
}

/** `for`: how long the answer counts. A plain yes counts as long as the policy says, a plain no only this once. */
export type ApprovalAnswer = boolean | { readonly yes: boolean; readonly for?: Duration; readonly reason?: string }

/** An `ask` that is never answered ends with its signal, as a no. */
export type OnApproval = (
  question: ApprovalQuestion,
  context: { readonly signal: AbortSignal },
) => ApprovalAnswer | Promise<ApprovalAnswer>

export function questionText(asked: Asked, { about, scopes, flaw, rule }: Asking): string {
  const what =
    about === 'scope' && asked.kind === 'tool'
      ? `${wordsFor(asked)} on ${scopes.map(({ label }) => echo(label)).join(', ')}`
      : wordsFor(asked)
  if (asked.kind === 'definition') return `Allow ${what}?${changesIn(asked.payload)} (${rule})`
  if (asked.kind === 'set') return `Allow ${what}?${factsIn(asked.payload)} (${rule})`
  const payload = scopes.length === 0 ? asked.payload : scopes.map(each => each.payload).find(each => each !== undefined)
  const shown = payload === undefined ? '' : ` with ${echo(payload)}`
  return `Allow ${what}${shown}?${flaw === undefined ? '' : ` Careful: ${flaw}.`} (${rule})`
}

/** What a feature set says of itself, and what it may do. */
function factsIn(payload: unknown): string {
  const { description, uses } = isRecord(payload) ? payload : {}
  const can = Array.isArray(uses) && uses.length > 0 ? `, by ${echo(uses.join(', '), 200)}` : ''
  return typeof description === 'string' ? ` It says: ${echo(description, 200)}${can}.` : ''
}

/** How a definition differs, a line for each difference, as far as anybody reads on. */
function changesIn(payload: unknown): string {
  const changes = isRecord(payload) && Array.isArray(payload['changes']) ? payload['changes'] : []
  return changes
    .slice(0, 20)
    .map(change => `\n  ${echo(change, 200)}`)
    .join('')
}

/** SHA-256 over canonical JSON: what an approval is bound to. */
export function digestOf(bound: unknown): string {
  return hash('sha256', canonicalJson(bound) ?? '', 'base64url')
}
