/** Confirmation on the wire: what a tool says of itself, what a refusal offers, and what a repeated call brings. */
import type { Duration } from '../../../core/clock.ts'
import type { Exchange } from '../../../engine/exchange.ts'
import { NS } from '../../../engine/method.ts'
import { port } from '../../../engine/ports.ts'
import { clip } from '../../../jsonrpc/limits.ts'
import { isRecord, type Params } from '../../../jsonrpc/message.ts'

/** The calls that one approval covers: these, each once, or any, so often. */
export type ApprovedCalls = ({ readonly calls: readonly Params[] } | { readonly uses: number }) & {
  /** Default 5 minutes; at most a day. */
  readonly ttl?: Duration
}

/** What the context of a call uses of confirmation. */
interface ConfirmationPort {
  /** The user behind a call has agreed to calls of a tool. */
  allow(exchange: Exchange, tool: string, approved: ApprovedCalls): Promise<void>
}

/** What the context of a call uses of confirmation. */
export const confirmationPort = port<ConfirmationPort>('confirmation')

/** The name of the extension. */
export const confirmationExtension = `${NS}/confirmation`

/** In rising order. */
export const risks = ['safe', 'reversible', 'destructive'] as const
/** What can come of a call at worst. */
export type Risk = (typeof risks)[number]

/** In a tool's `_meta`. */
export interface WireConfirmation {
  readonly requires_confirmation: boolean
  readonly confirmation_message: string
  readonly risk_level: Risk
}

/** In the `_meta` of a result that refuses, for peers that ask their user themselves. */
export interface WireRequired {
  readonly status: 'confirmation_required'
  readonly confirmation_message: string
  readonly risk_level: Risk
  readonly confirmation_token: string
}

/** In the `_meta` of the call that is made again. Never among its arguments: those are the model's to write. */
export interface WireConfirmed {
  readonly confirmation_token: string
  readonly user_confirmed: boolean
}

/** Whether a value is one of `risks`. */
export function isRisk(value: unknown): value is Risk {
  return risks.includes(value as Risk)
}

/**
 * What the user gets to read: always which server and which tool, then the tool's message with its placeholders filled. Both
 * sides make the same text of the same call.
 */
export function confirmationText(server: string, tool: string, message: string, args: Params): string {
  const filled = message.replace(/\{([^{}\s]{1,80})\}/g, (placeholder, name: string) =>
    Object.hasOwn(args, name) ? asData(args[name]) : placeholder,
  )
  return `${asData(server)}: ${asData(tool)}. ${filled}`
}

/** What would open a link, a picture or a tag, hide or turn what stands behind it, is shown as something else. */
const disguises: ReadonlyMap<string, string> = new Map([
  ['<', '‹'],
  ['>', '›'],
  ['[', '('],
  [']', ')'],
  ['`', "'"],
])

function asData(value: unknown): string {
  const text = typeof value === 'string' ? value : (JSON.stringify(value) ?? '')
  return clip(text.replace(/[<>[\]`]|\p{Cf}/gu, char => disguises.get(char) ?? '\ufffd'))
}

/** What a tool's `_meta` says of it; undefined where it needs no confirmation. */
export function confirmationOf(meta: unknown): WireConfirmation | undefined {
  const said = isRecord(meta) ? meta[confirmationExtension] : undefined
  if (!isRecord(said) || said['requires_confirmation'] !== true) return undefined
  const { confirmation_message: message, risk_level: risk } = said
  return {
    requires_confirmation: true,
    confirmation_message: typeof message === 'string' ? clip(message, 1000) : '',
    // Whoever does not say how bad it can get is taken for the worst.
    risk_level: isRisk(risk) ? risk : 'destructive',
  }
}

/** What a refusal offers; undefined where it is none, or offers nothing. */
export function requiredIn(meta: unknown): WireRequired | undefined {
  const said = isRecord(meta) ? meta[confirmationExtension] : undefined
  if (!isRecord(said) || said['status'] !== 'confirmation_required') return undefined
  const { confirmation_message: message, risk_level: risk, confirmation_token: token } = said
  if (typeof message !== 'string' || typeof token !== 'string') return undefined
  return {
    status: 'confirmation_required',
    confirmation_message: clip(message, 4000),
    risk_level: isRisk(risk) ? risk : 'destructive',
    confirmation_token: token,
  }
}
