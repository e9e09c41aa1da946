/**
 * Server side of pushed events (MCP Live 0.2 §9): builds an event from an author's input, sends it to one host, and interprets the
 * answer.
 */
import { type Problem, problem } from '../../../core/problem.ts'
import { McpError } from '../../../jsonrpc/error.ts'
import { given, isRecord } from '../../../jsonrpc/message.ts'
import { incomingMessages, type WireIncoming } from '../channels/messages.ts'
import { blocksOf, type LiveBlock, type LiveInput, writeBlocks } from '../content/messages.ts'
import { liveRefusalOf } from '../feature-sets/messages.ts'
import type { LiveHost } from '../hosts/messages.ts'
import { isTimestamp, type PushAnswer, pushEvent, type WirePush } from './messages.ts'

/** An event as the author describes it. */
export interface PushInput {
  /** The content of the event: text or blocks. */
  readonly content: LiveInput
  /** Where it comes from; events of one origin stay in order. */
  readonly origin?: Record<string, unknown>
  /** Identifies the event. Give your own to push it again after a crash without duplicates. Default: a new one. */
  readonly eventId?: string
  /** When it happened, ISO 8601. Default: now. */
  readonly timestamp?: string
  /** Tags by which hosts choose what to do, for example `chat:mention`. Default: none. */
  readonly tags?: readonly string[]
  /** Only for hosts of this principal id. Default: for all. */
  readonly to?: string
}

/** A pushed event; it survives restarts if the server's store does. */
export interface Pushed {
  /** The id of the event. */
  readonly eventId: string
  /** When it happened, ISO 8601. */
  readonly timestamp: string
  /** Settles when a host has accepted the event or all connected ones have refused it, however long that takes. */
  readonly answered: Promise<PushAnswer>
}

/** Where a channel message was written. */
interface ChannelOrigin {
  readonly channelId: string
  readonly messageId: string
  readonly threadId?: string
  readonly author?: { readonly id?: string; readonly name?: string }
}

/** An event or a channel message in the outbox. */
export interface OutgoingPush {
  readonly featureSet: string
  readonly eventId: string
  readonly timestamp: string
  readonly origin?: Record<string, unknown>
  readonly content: readonly LiveBlock[]
  readonly tags?: readonly string[]
  readonly to?: string
  /** Sent as a message of this channel. */
  readonly channel?: ChannelOrigin
}

/** The largest event, in characters of JSON. */
const most = 1024 * 1024

/** Builds an event; throws if the input is invalid or too large. */
export function outgoing(featureSet: string, input: PushInput & { readonly channel?: ChannelOrigin }, now: number): OutgoingPush {
  const { eventId = crypto.randomUUID(), timestamp = new Date(now).toISOString(), content, origin, tags, to, channel } = input
  if (typeof eventId !== 'string' || eventId === '') throw new TypeError('push: eventId must be a non-empty string')
  if (!isTimestamp(timestamp)) throw new TypeError('push: timestamp must be a time in ISO 8601, such as 2026-01-23T10:30:00Z')
  const event = {
    featureSet,
    eventId,
    timestamp,
    content: blocksOf(
      content,
      channel === undefined ? `push of "${featureSet}"` : `A message of the channel "${channel.channelId}"`,
    ),
    ...given({ origin, tags, to, channel }),
  }
  if (JSON.stringify(event).length > most) throw tooLarge()
  return event
}

function tooLarge(): Problem {
  return problem('PAYLOAD_TOO_LARGE', `The event has more than ${most} characters as JSON (the limit)`, {
    suggestion: 'Push a resource_link to large content instead of the content',
  })
}

/** The result of one attempt. `later`: retry. `off`: wait until the host's selection changes. */
type Attempt =
  | { readonly is: 'answered'; readonly answer: PushAnswer }
  | { readonly is: 'later'; readonly afterMs?: number | undefined; readonly error?: unknown }
  | { readonly is: 'off' }

/** Error codes that reject the event itself; a retry would not help. */
const final = new Set([-32600, -32601, -32602])

/** Sends an event to a host once. */
export async function attempt(host: LiveHost, outgoing: OutgoingPush, timeoutMs: number): Promise<Attempt> {
  const { to, channel, content: blocks, ...event } = outgoing
  try {
    // What cannot be written, too, is only an attempt that has failed: the event may come from another process.
    const content = writeBlocks(blocks, host.dialect.source)
    if (channel === undefined) {
      const push: WirePush = { ...event, payload: { content } }
      return read(await host.request(pushEvent, push, { timeoutMs }))
    }
    const { timestamp, tags } = event
    const message: WireIncoming = { ...channel, timestamp, content, ...(tags !== undefined && { tags }) }
    return readFirst(await host.request(incomingMessages, { messages: [{ ...message }] }, { timeoutMs }))
  } catch (error) {
    if (liveRefusalOf(error) !== undefined) return { is: 'off' }
    if (error instanceof McpError && error.kind === 'remote' && final.has(error.code ?? 0))
      return { is: 'answered', answer: { accepted: false, reason: error.message } }
    return { is: 'later', error }
  }
}

/** Reads the verdict on a channel message; an answer without a verdict counts as accepted. */
function readFirst(answer: unknown): Attempt {
  const results: unknown = isRecord(answer) ? answer['results'] : undefined
  const [said] = Array.isArray(results) ? (results as readonly unknown[]) : []
  return isRecord(said) && said['accepted'] === false ? read(said) : { is: 'answered', answer: { accepted: true } }
}

/** A duplicate counts as accepted, because it has arrived. */
function read(answer: unknown): Attempt {
  if (!isRecord(answer) || typeof answer['accepted'] !== 'boolean')
    return { is: 'later', error: new Error('The response of the host to the push is not valid') }
  const { accepted, inferenceId, reason, retryAfterMs } = answer
  const named = typeof inferenceId === 'string' ? { inferenceId } : {}
  if (accepted === true || reason === 'duplicate') return { is: 'answered', answer: { accepted: true, ...named } }
  if (typeof retryAfterMs === 'number' && retryAfterMs >= 0) return { is: 'later', afterMs: retryAfterMs }
  return { is: 'answered', answer: { accepted: false, reason: typeof reason === 'string' ? reason : 'refused' } }
}
