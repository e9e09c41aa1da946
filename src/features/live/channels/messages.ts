/**
 * Wire messages of channels (MCP Live 0.4 and later): servers register channels and send their messages; hosts publish answers. Servers
 * send some of these as notifications, so both forms are read. On stateless wires a host sends requests only, because only a request
 * identifies its sender.
 */
import { notification, officialIds, request, sessionRevisionIds } from '../../../engine/method.ts'
import { anything, array, integer, object, optional, record, string } from '../../../jsonrpc/shape.ts'
import { wireContent } from '../content/messages.ts'
import { liveDeclaration } from '../feature-sets/messages.ts'

/** A channel as it is described on the wire. */
export interface WireChannel {
  /** The id of the channel, which messages name. */
  readonly id: string
  /** The kind of channel, such as `discord`. */
  readonly type?: string
  /** The name that people see, such as `#general`. */
  readonly label?: string
}

/** One message of a channel, as servers send it. */
export interface WireIncoming {
  readonly channelId: string
  /** Unique in its channel; the same if the message is sent again. */
  readonly messageId: string
  readonly timestamp: string
  readonly content: readonly Readonly<Record<string, unknown>>[]
  readonly threadId?: string
  /** Who wrote it; usually `id` and `name`. */
  readonly author?: Readonly<Record<string, unknown>>
  readonly tags?: readonly string[]
}

/** The event id of a channel message; a host recognises a repeated message by it. */
export function channelEventId(channelId: string, messageId: string): string {
  return `channels/incoming ${JSON.stringify([channelId, messageId])}`
}

/** The host's answer per channel to `channels/register` and `channels/changed`. */
interface ChannelVerdicts {
  readonly results: readonly { readonly id: string; readonly accepted: boolean; readonly reason?: string }[]
}

const toClient = { to: 'client', in: sessionRevisionIds } as const
const toServer = { to: 'server', in: officialIds, declares: liveDeclaration } as const
/** Lenient on purpose: members of the wrong type are ignored, not refused. */
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
  in: sessionRevisionIds,
  params: object({}),
})

/** Asks a server to open a channel. */
export const openChannel = request<Readonly<Record<string, unknown>>>()({
  ...toServer,
  name: 'channels/open',
  // Either an id, or a type and an address.
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
    // The message that this answers.
    inReplyTo: optional(string),
    // The inference that produced this answer; links it to what was streamed before.
    inferenceId: optional(string),
  }),
} as const
/** Delivers a message to a channel. */
export const publishToChannel = request<Readonly<Record<string, unknown>>>()(publish)
/** The same as a notification. */
export const publishToChannelNotice = notification(publish)

/** Members of both streaming messages. Streaming only shows text; `channels/publish` delivers it. */
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

/** Shows that an answer is being prepared (0.5). */
const typing = { ...toServer, name: 'channels/typing', params: object({ channelId: string }) } as const
/** Says that an answer is being written. */
export const typingInChannel = request<Readonly<Record<string, unknown>>>()(typing)
/** The same as a notification. */
export const typingInChannelNotice = notification(typing)

/** How a server handled an acknowledgement (0.5). */
export interface AcknowledgementAnswer {
  /** Whether the server showed it. */
  readonly acknowledged: boolean
  /** What the server shows, such as an emoji. */
  readonly representation?: string
  /** Why it was not shown. */
  readonly reason?: string
}

/** Tells a server that a message of a channel was taken in. */
export const acknowledgeMessage = request<AcknowledgementAnswer>()({
  ...toServer,
  name: 'channels/acknowledge',
  params: object({ channelId: string, messageId: string, intent: string, value: optional(string) }),
})
