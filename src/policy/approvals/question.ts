/** What is asked of a person, and how the answer is read. */
import type { Duration } from '../../core/duration.ts'
import type { Scope } from '../../features/live/scopes/messages.ts'
import { echo } from '../../jsonrpc/limits.ts'
import { isRecord } from '../../jsonrpc/message.ts'
import { wordsForUses } from '../feature-sets/use-words.ts'
import { type AskVerdict, wordsFor } from '../judge.ts'
import { begunByText } from '../rules/begun-by.ts'
import type { Asked, Kind } from '../rules/rule.ts'
import type { Covers, WiderAnswer } from './binding.ts'

export interface ApprovalQuestion {
  /** One sentence. Names in it are the server's, and clipped. */
  readonly text: string
  /** All of what is asked for: show the label and the payload of a scope, both. */
  readonly asked: Asked
  /** What it is about: of a tool call perhaps only its scope. */
  readonly about: Kind
  /** What the arguments act on, where the host could read it. */
  readonly scopes: readonly Scope[]
  /** The spelling of a scope is unusual, and this is how; or a feature set wants more than before, and this is what. */
  readonly flaw?: string
  /** The rule that wants it asked. */
  readonly rule: string
  /** A plain yes counts for exactly this. */
  readonly digest: string
  /** How long a plain yes counts, in milliseconds. 0: only this once. */
  readonly lastsMs: number
  /** Answers that cover more, for those who want them. Show the text of one before you give it. */
  readonly wider: readonly WiderAnswer[]
}

/**
 * `for`: how long the answer counts. A plain yes counts as long as the policy says, a plain no only this once. `covers`: one of the
 * wider answers that the question offers; without it, and where the question does not offer it, exactly what was asked.
 */
export type ApprovalAnswer =
  | boolean
  | { readonly yes: boolean; readonly for?: Duration; readonly reason?: string; readonly covers?: Covers }

/** An `ask` that is never answered ends with its signal, as a no. */
export type OnApproval = (
  question: ApprovalQuestion,
  context: { readonly signal: AbortSignal },
) => ApprovalAnswer | Promise<ApprovalAnswer>

export function questionText(asked: Asked, { scopes, flaw, rule }: AskVerdict): string {
  const places = scopes.map(({ label }) => echo(label)).join(', ')
  const what = asked.kind === 'tool' && places !== '' ? `${wordsFor(asked)} on ${places}` : wordsFor(asked)
  if (asked.kind === 'definition') return `Allow ${what}?${changesIn(asked.payload)} (${rule})`
  const careful = flaw === undefined ? '' : ` Careful: ${flaw}.`
  if (asked.kind === 'set') return `Allow ${what}?${factsIn(asked.payload)}${careful} (${rule})`
  // Of a tool call all arguments: what it does depends on the others as much as on the one that names a place.
  const payload = asked.kind === 'scope' ? asked.scope?.payload : asked.payload
  const shown = payload === undefined ? '' : ` with ${echo(payload, payloadLength)}`
  return `Allow ${what}${shown}${begunByText(asked.begunBy)}?${careful} (${rule})`
}

/** What of the arguments stands in the sentence; whoever shows it shows the rest beside it. */
const payloadLength = 400

/** What a feature set will be able to do, in our words, and then what it says of itself, in its own. */
function factsIn(payload: unknown): string {
  const { description, can } = isRecord(payload) ? payload : {}
  const able = Array.isArray(can) ? ` With your yes it ${wordsForUses(can)}.` : ''
  return typeof description === 'string' ? `${able} It describes itself as "${echo(description, 200)}".` : able
}

/** Twenty, and one that says how many more there are. */
const changesShown = 21
/** Room for a path, what stood there and what stands there now: the last of them is what is agreed to. */
const changeLength = 600

/** How a definition differs, a line for each difference, as far as anybody reads on. */
function changesIn(payload: unknown): string {
  const changes = isRecord(payload) && Array.isArray(payload['changes']) ? payload['changes'] : []
  return changes
    .slice(0, changesShown)
    .map(change => `\n  ${echo(change, changeLength)}`)
    .join('')
}
