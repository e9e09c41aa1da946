/**
 * Channels of MCP Live 0.4 and later: servers register them, messages come in by them, and answers go out by them. Servers send some of
 * these without an id; both kinds are read. What hosts send without one is a request on wires where only a request says who sends it.
 */
import { notification, officialIds, request, sessionIds } from '../../../engine/method.ts'
import { anything, array, integer, object, optional, record, string } from '../../../jsonrpc/shape.ts'
import { wireContent } from '../content/messages.ts'
import { speakingLive } from '../feature-sets/messages.ts'

/** A channel as it is described on the wire. */
export interface WireChannel {
  readonly id: string
  readonly type?: string
  readonly label?: string
}

/** One message of a channel, as servers send it. */
export interface WireIncoming {
  readonly channelId: string
  readonly messageId: string
  readonly timestamp: string
  readonly content: readonly Readonly<Record<string, unknown>>[]
  readonly threadId?: string
  readonly author?: Readonly<Record<string, unknown>>
  readonly tags?: readonly string[]
}

/** The id under which a host keeps a message of a channel, and by which it knows one that comes again. */
export function channelEventId(channelId: string, messageId: string): string {
  return `channels/incoming ${JSON.stringify([channelId, messageId])}`
}

/** The host's answer to channels that were registered or changed. */
export interface ChannelVerdicts {
  readonly results: readonly { readonly id: string; readonly accepted: boolean; readonly reason?: string }[]
}

const toClient = { to: 'client', in: sessionIds } as const
const toServer = { to: 'server', in: officialIds, declares: speakingLive } as const
/** What servers say of a channel beside its id is read where it has the right kind, and no reason to refuse it where not. */
const named = object({ id: string, type: optional(anything), label: optional(anything) })

const register = { ...toClient, name: 'channels/register', params: object({ channels: array(named) }) } as const
/** A server registers its channels; the host answers which it takes. */
export const registerChannels = request<ChannelVerdicts>()(register)
/** The same as a notification. */
export const registerChannelsNotice = notification(register)

const changed = {
  ...toClient,
  name: 'channels/changed',
  params: object({ added: optional(array(named)), updated: optional(array(named)), removed: optional(array(anything)) }),
} as const
/** A server's channels have changed; the host answers which it takes. */
export const channelsChanged = request<ChannelVerdicts>()(changed)
/** The same as a notification. */
export const channelsChangedNotice = notification(changed)

const incoming = { ...toClient, name: 'channels/incoming', params: object({ messages: array(record) }) } as const
/** Messages that came in on channels. */
export const incomingMessages = request<Readonly<Record<string, unknown>>>()(incoming)
/** The same as a notification. */
export const incomingMessagesNotice = notification(incoming)

/** Asks which channels there are. */
export const listChannels = request<{ readonly channels: readonly WireChannel[] }>()({
  name: 'channels/list',
  to: 'both',
  in: sessionIds,
  params: object({}),
})

/** Asks a server to open a channel. */
export const openChannel = request<Readonly<Record<string, unknown>>>()({
  ...toServer,
  name: 'channels/open',
  // By its id, or by what kind of channel it is and where.
  params: object({ channelId: optional(string), type: optional(string), address: optional(anything) }),
})

/** Asks a server to close a channel. */
export const closeChannel = request<Readonly<Record<string, unknown>>>()({
  ...toServer,
  name: 'channels/close',
  params: object({ channelId: string }),
})

const publish = {
  ...toServer,
  name: 'channels/publish',
  params: object({
    channelId: string,
    content: wireContent,
    conversationId: optional(string),
    threadId: optional(string),
    // The message that it answers.
    inReplyTo: optional(string),
    // The inference that it is the answer of: what was streamed of it before is the same text.
    inferenceId: optional(string),
  }),
} as const
/** Delivers a message to a channel. */
export const publishToChannel = request<Readonly<Record<string, unknown>>>()(publish)
/** The same as a notification. */
export const publishToChannelNotice = notification(publish)

/** What is said of an answer while it is made, to servers that name `channels.streaming`. It delivers nothing: that is `publish`. */
const streamed = { inferenceId: string, conversationId: optional(string), channelId: string }

const chunk = {
  ...toServer,
  name: 'channels/outgoing/chunk',
  params: object({ ...streamed, index: integer, delta: string }),
} as const
/** One piece of an answer while it is written. */
export const outgoingChunk = request<Readonly<Record<string, unknown>>>()(chunk)
/** The same as a notification. */
export const outgoingChunkNotice = notification(chunk)

const complete = {
  ...toServer,
  name: 'channels/outgoing/complete',
  params: object({ ...streamed, content: wireContent }),
} as const
/** The end of an answer that was sent in pieces. */
export const outgoingComplete = request<Readonly<Record<string, unknown>>>()(complete)
/** The same as a notification. */
export const outgoingCompleteNotice = notification(complete)

/** An answer is being worked on (0.5). */
const typing = { ...toServer, name: 'channels/typing', params: object({ channelId: string }) } as const
/** Says that an answer is being written. */
export const typingInChannel = request<Readonly<Record<string, unknown>>>()(typing)
/** The same as a notification. */
export const typingInChannelNotice = notification(typing)

/** What a server made of it (0.5): `representation` is what it shows, such as an emoji. */
export interface Acknowledged {
  readonly acknowledged: boolean
  readonly representation?: string
  readonly reason?: string
}

/** Tells a server that a message of a channel was taken in. */
export const acknowledgeMessage = request<Acknowledged>()({
  ...toServer,
  name: 'channels/acknowledge',
  params: object({ channelId: string, messageId: string, intent: string, value: optional(string) }),
})
