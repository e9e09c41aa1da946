/**
 * Confirmation on the wire: what a tool declares, what a refusal offers, and what a repeated call carries. Shared by both sides, so
 * that client and server build the same question text.
 */
import type { Duration } from '../../../core/clock.ts'
import type { Exchange } from '../../../engine/exchange.ts'
import { NS } from '../../../engine/method.ts'
import { port } from '../../../engine/ports.ts'
import { clip } from '../../../jsonrpc/limits.ts'
import { isRecord, type Params } from '../../../jsonrpc/message.ts'

/** The calls that one approval covers: listed calls, each once, or a number of arbitrary calls. */
export type ApprovedCalls = (
  | {
      /** The arguments of the approved calls; each is approved once. */
      readonly calls: readonly Params[]
    }
  | {
      /** The number of calls that are approved, whatever their arguments. */
      readonly uses: number
    }
) & {
  /** How long it is valid. Default 5 minutes; at most a day. */
  readonly ttl?: Duration
}

/** What other features may do with confirmations. */
interface ConfirmationPort {
  /** Records that the user behind a call has approved calls of a tool. */
  allow(exchange: Exchange, tool: string, approved: ApprovedCalls): Promise<void>
}

/** The port of this feature. */
export const confirmationPort = port<ConfirmationPort>('confirmation')

/** The extension name. */
export const confirmationExtension = `${NS}/confirmation`

/** Risk levels, in ascending order. */
export const risks = ['safe', 'reversible', 'destructive'] as const
/** The worst effect that a call can have. */
export type Risk = (typeof risks)[number]

/** What a tool declares in its `_meta`. */
interface WireConfirmation {
  readonly requires_confirmation: boolean
  readonly confirmation_message: string
  readonly risk_level: Risk
}

/** What a refusal offers in its `_meta`, for clients that ask their user themselves. */
interface WireRequired {
  readonly status: 'confirmation_required'
  readonly confirmation_message: string
  readonly risk_level: Risk
  /** Sent back with the repeated call. */
  readonly confirmation_token: string
}

/** What the repeated call carries in `_meta`; never in its arguments, because the model writes those. */
export interface WireConfirmed {
  readonly confirmation_token: string
  readonly user_confirmed: boolean
}

/** Whether a value is one of `risks`. */
export function isRisk(value: unknown): value is Risk {
  return risks.includes(value as Risk)
}

/**
 * The question for the user: always names server and tool, then the tool's message with placeholders filled from the arguments. Client
 * and server produce the same text, so that answers can be matched.
 */
export function confirmationText(server: string, tool: string, message: string, args: Params): string {
  const filled = message.replace(/\{([^{}\s]{1,80})\}/g, (placeholder, name: string) =>
    Object.hasOwn(args, name) ? asData(args[name]) : placeholder,
  )
  return `${asData(server)}: ${asData(tool)}. ${filled}`
}

/** Characters that could form links, images or tags are replaced; invisible ones that could hide or reorder text become U+FFFD. */
const lookalikes: ReadonlyMap<string, string> = new Map([
  ['<', '‹'],
  ['>', '›'],
  ['[', '('],
  [']', ')'],
  ['`', "'"],
])

function asData(value: unknown): string {
  const text = typeof value === 'string' ? value : (JSON.stringify(value) ?? '')
  return clip(text.replace(/[<>[\]`]|\p{Cf}/gu, char => lookalikes.get(char) ?? '\ufffd'))
}

/** Reads a tool's `_meta`; undefined if the tool needs no confirmation. */
export function confirmationOf(meta: unknown): WireConfirmation | undefined {
  const said = isRecord(meta) ? meta[confirmationExtension] : undefined
  if (!isRecord(said) || said['requires_confirmation'] !== true) return undefined
  const { confirmation_message: message, risk_level: risk } = said
  return {
    requires_confirmation: true,
    confirmation_message: typeof message === 'string' ? clip(message, 1000) : '',
    // A missing or unknown risk counts as the highest.
    risk_level: isRisk(risk) ? risk : 'destructive',
  }
}

/** Reads the offer in a refusal; undefined if there is none. */
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
