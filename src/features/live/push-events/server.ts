/** Pushing events (MCP Live 0.2 §9): what an author gives, what hosts are sent, and what their answers mean. */
import { type Problem, problem } from '../../../core/problem.ts'
import { McpError } from '../../../jsonrpc/error.ts'
import { isRecord } from '../../../jsonrpc/message.ts'
import { incomingMessages, type WireIncoming } from '../channels/messages.ts'
import { blocksOf, type LiveBlock, type LiveInput, writeBlocks } from '../content/messages.ts'
import { liveRefusalOf } from '../feature-sets/messages.ts'
import type { HostDialect, LiveHost } from '../hosts/messages.ts'
import { isTimestamp, type PushAnswer, pushEvent, type WirePush } from './messages.ts'

/** What an author says of an event. */
export interface PushInput {
  readonly content: LiveInput
  /** Where it comes from; hosts keep what has one origin in order. */
  readonly origin?: Record<string, unknown>
  /** One per occurrence. Give your own to push it again after a crash without its happening twice. Default: a new one. */
  readonly eventId?: string
  /** When it happened, ISO 8601. Default: now. */
  readonly timestamp?: string
  readonly tags?: readonly string[]
  /** Only for hosts of this principal, by its id. Default: for all. */
  readonly to?: string
}

/** What has been pushed: it lasts as long as the server's store. */
export interface Pushed {
  readonly eventId: string
  readonly timestamp: string
  /** What the host made of it. Waits until one has answered, however long that takes. */
  readonly answered: Promise<PushAnswer>
}

/** Where a message was written, of those that came by a channel. */
interface ChannelOrigin {
  readonly channelId: string
  readonly messageId: string
  readonly threadId?: string
  readonly author?: { readonly id?: string; readonly name?: string }
}

/** An event, or a message of a channel, as it lies in the outbox. */
export interface OutgoingPush {
  readonly featureSet: string
  readonly eventId: string
  readonly timestamp: string
  readonly origin?: Record<string, unknown>
  readonly content: readonly LiveBlock[]
  readonly tags?: readonly string[]
  readonly to?: string
  /** It goes out as a message of this channel. */
  readonly channel?: ChannelOrigin
}

const most = 1024 * 1024

/** Makes an event of what an author pushes. */
export function outgoing(featureSet: string, input: PushInput & { readonly channel?: ChannelOrigin }, now: number): OutgoingPush {
  const { eventId = crypto.randomUUID(), timestamp = new Date(now).toISOString(), content, origin, tags, to, channel } = input
  if (typeof eventId !== 'string' || eventId === '') throw new TypeError('push: eventId must be a string that is not empty')
  if (!isTimestamp(timestamp)) throw new TypeError('push: timestamp must be ISO 8601, such as 2026-01-23T10:30:00Z')
  const event = {
    featureSet,
    eventId,
    timestamp,
    content: blocksOf(
      content,
      channel === undefined ? `push of "${featureSet}"` : `A message of the channel "${channel.channelId}"`,
    ),
    ...(origin === undefined ? {} : { origin }),
    ...(tags === undefined ? {} : { tags }),
    ...(to === undefined ? {} : { to }),
    ...(channel === undefined ? {} : { channel }),
  }
  if (JSON.stringify(event).length > most) throw tooLarge()
  return event
}

function tooLarge(): Problem {
  return problem('PAYLOAD_TOO_LARGE', `An event may have ${most} characters of JSON`, {
    suggestion: 'Push a resource_link to what is large',
  })
}

function writePush({ to, channel, content, ...event }: OutgoingPush, { source }: HostDialect): WirePush {
  return { ...event, payload: { content: writeBlocks(content, source) } }
}

function writeIncoming(
  { content, timestamp, tags }: OutgoingPush,
  channel: ChannelOrigin,
  { source }: HostDialect,
): WireIncoming {
  return { ...channel, timestamp, content: writeBlocks(content, source), ...(tags === undefined ? {} : { tags }) }
}

/** What one attempt came to. `later`: worth another; `off`: when the host's selection has changed. */
type Attempt =
  | { readonly is: 'answered'; readonly answer: PushAnswer }
  | { readonly is: 'later'; readonly afterMs?: number | undefined; readonly error?: unknown }
  | { readonly is: 'off' }

/** Numbers that say that the event itself is not understood: sent again, it would not be either. */
const final = new Set([-32600, -32601, -32602])

/** Pushes one event to one host once. */
export async function attempt(host: LiveHost, event: OutgoingPush, timeoutMs: number): Promise<Attempt> {
  const { channel } = event
  try {
    if (channel === undefined) return read(await host.request(pushEvent, writePush(event, host.dialect), { timeoutMs }))
    const messages = [{ ...writeIncoming(event, channel, host.dialect) }]
    return readFirst(await host.request(incomingMessages, { messages }, { timeoutMs }))
  } catch (error) {
    if (liveRefusalOf(error) !== undefined) return { is: 'off' }
    if (error instanceof McpError && error.kind === 'remote' && final.has(error.code ?? 0))
      return { is: 'answered', answer: { accepted: false, reason: error.message } }
    return { is: 'later', error }
  }
}

/** Hosts answer for each message of a channel; one that merely answers has taken it. */
function readFirst(answer: unknown): Attempt {
  const results: unknown = isRecord(answer) ? answer['results'] : undefined
  const [said] = Array.isArray(results) ? (results as readonly unknown[]) : []
  return isRecord(said) && said['accepted'] === false ? read(said) : { is: 'answered', answer: { accepted: true } }
}

/** Hosts that have it already say so in one of two ways; both mean that it arrived. */
function read(answer: unknown): Attempt {
  if (!isRecord(answer) || typeof answer['accepted'] !== 'boolean')
    return { is: 'later', error: new Error('no answer to a push') }
  const { accepted, inferenceId, reason, retryAfterMs } = answer
  const named = typeof inferenceId === 'string' ? { inferenceId } : {}
  if (accepted === true || reason === 'duplicate') return { is: 'answered', answer: { accepted: true, ...named } }
  if (typeof retryAfterMs === 'number' && retryAfterMs >= 0) return { is: 'later', afterMs: retryAfterMs }
  return { is: 'answered', answer: { accepted: false, reason: typeof reason === 'string' ? reason : 'refused' } }
}
