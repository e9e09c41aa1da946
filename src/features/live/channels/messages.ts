/**
 * Channels of MCP Live 0.4 and later: servers register them, messages come in by them, and answers go out by them. Servers send some of
 * these without an id; both kinds are read.
 */
import { notification, officialIds, request, sessionIds } from '../../../engine/method.ts'
import { anything, array, object, optional, record, string } from '../../../jsonrpc/shape.ts'
import { wireContent } from '../content/messages.ts'
import { speakingLive } from '../feature-sets/messages.ts'

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

export interface ChannelVerdicts {
  readonly results: readonly { readonly id: string; readonly accepted: boolean; readonly reason?: string }[]
}

const toClient = { to: 'client', in: sessionIds } as const
const toServer = { to: 'server', in: officialIds, declares: speakingLive } as const
/** What servers say of a channel beside its id is read where it has the right kind, and no reason to refuse it where not. */
const named = object({ id: string, type: optional(anything), label: optional(anything) })

const register = { ...toClient, name: 'channels/register', params: object({ channels: array(named) }) } as const
export const registerChannels = request<ChannelVerdicts>()(register)
export const registerChannelsNotice = notification(register)

const changed = {
  ...toClient,
  name: 'channels/changed',
  params: object({ added: optional(array(named)), updated: optional(array(named)), removed: optional(array(anything)) }),
} as const
export const channelsChanged = request<ChannelVerdicts>()(changed)
export const channelsChangedNotice = notification(changed)

const incoming = { ...toClient, name: 'channels/incoming', params: object({ messages: array(record) }) } as const
export const incomingMessages = request<Readonly<Record<string, unknown>>>()(incoming)
export const incomingMessagesNotice = notification(incoming)

export const listChannels = request<{ readonly channels: readonly WireChannel[] }>()({
  name: 'channels/list',
  to: 'both',
  in: sessionIds,
  params: object({}),
})

export const openChannel = request<Readonly<Record<string, unknown>>>()({
  ...toServer,
  name: 'channels/open',
  // By its id, or by what kind of channel it is and where.
  params: object({ channelId: optional(string), type: optional(string), address: optional(anything) }),
})

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
  }),
} as const
export const publishToChannel = request<Readonly<Record<string, unknown>>>()(publish)
export const publishToChannelNotice = notification(publish)
