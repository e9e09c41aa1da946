/**
 * Server side of channels (MCP Live 0.4): registers channels with the hosts that have their set enabled and keeps them in sync, and the
 * types that authors use. A host can publish only to channels it was told of, and gets messages only after it has answered the
 * registration.
 */

import type { Awaitable } from '../../../jsonrpc/message.ts'
import { given } from '../../../jsonrpc/message.ts'
import type { LiveBlock, LiveInput } from '../content/messages.ts'
import type { LiveHost } from '../hosts/messages.ts'
import { channelsChanged, registerChannels, type WireChannel } from './messages.ts'
import { channelPosting, type PostingParts } from './posting.ts'

interface ChannelsParts extends Omit<PostingParts, 'channels'> {
  /** Called when a host has accepted channels; queued messages may now be deliverable. */
  readonly known: () => void
}

const answerMs = 30_000

/** What a host was told, and whether it has answered. */
interface HostChannels {
  readonly channels: ReadonlyMap<string, WireChannel>
  answered: boolean
}

/** Creates the registry of channels and its handlers. */
export function channelsServer(parts: ChannelsParts) {
  const channels = new Map<string, { readonly featureSet: string; readonly wire: WireChannel }>()
  const told = new WeakMap<LiveHost, HostChannels>()
  const posting = channelPosting({ ...parts, channels })
  let planned = false
  // Stays true, so that hosts hear of the removal of the last channel.
  let everOffered = false
  const syncAll = (): void => {
    planned = false
    for (const host of parts.hosts()) if (host.reachable) tell(parts, host, channels, told)
  }
  // Deferred by a timer, so that the response to the current request is sent first.
  const sync = (): void => {
    if (planned || !everOffered) return
    planned = true
    parts.clock.setTimeout(syncAll, 0, true)
  }
  const remove = (id: string): void => {
    channels.delete(id)
    posting.dropped(id)
    sync()
  }
  return {
    side: posting.side,
    /** Offers a channel of a set to the hosts. */
    add: (featureSet: string, id: string, { label, type }: ChannelOptions): void => {
      const wire = { id, ...given({ type, label }) }
      channels.set(id, { featureSet, wire })
      everOffered = true
      sync()
    },
    remove,
    /** Removes all channels of a set that is no longer offered. */
    drop: (featureSet: string): void => {
      for (const [id, channel] of channels) if (channel.featureSet === featureSet) remove(id)
    },
    /** Whether the channel belongs to this set. */
    has: (featureSet: string, id: string): boolean => channels.get(id)?.featureSet === featureSet,
    /** Whether the host was told of the channel and has answered. */
    isKnown: (host: LiveHost, id: string): boolean => {
      const known = told.get(host)
      return channels.has(id) && known?.answered === true && known.channels.has(id)
    },
    /** Schedules an update of every host after connections or selections have changed. */
    sync,
  }
}

/** Registers with a host that knows no channel yet; otherwise sends only the differences. */
function tell(
  { trace, known: heard }: ChannelsParts,
  host: LiveHost,
  channels: PostingParts['channels'],
  told: WeakMap<LiveHost, HostChannels>,
): void {
  const known = told.get(host)?.channels
  const now = new Map(
    [...channels].filter(([, { featureSet }]) => host.selected.enabled(featureSet)).map(([id, { wire }]) => [id, wire]),
  )
  const added = [...now].filter(([id]) => known?.has(id) !== true).map(([, wire]) => wire)
  const removed = [...(known?.keys() ?? [])].filter(id => !now.has(id))
  if (added.length + removed.length === 0) return
  const telling: HostChannels = { channels: now, answered: false }
  told.set(host, telling)
  const asking =
    known === undefined || known.size === 0
      ? host.request(registerChannels, { channels: added }, { timeoutMs: answerMs })
      : host.request(channelsChanged, { added, removed }, { timeoutMs: answerMs })
  asking.then(
    () => {
      telling.answered = true
      heard()
    },
    error => {
      trace('channels-not-registered', error)
      // Forgotten, so that the next sync registers again.
      if (told.get(host) === telling) told.delete(host)
    },
  )
}

// Types for authors of servers.

/** What a channel is called and of which kind it is. */
export interface ChannelOptions {
  /** The name that people see, such as `#general`. */
  readonly label?: string
  /** The kind of channel, such as `discord`. */
  readonly type?: string
}

/** A message that somebody wrote in a channel. */
export interface ChannelMessage {
  /** The content of the message: text or blocks. */
  readonly content: LiveInput
  /** Identifies the message; use the same id if you send it again. Default: a new one. */
  readonly messageId?: string
  /** The thread of the channel in which it was written. */
  readonly threadId?: string
  /** Who wrote it. */
  readonly author?: {
    /** The id of the author on the platform of the channel. */
    readonly id?: string
    /** The name that people see. */
    readonly name?: string
  }
  /** When it was written, ISO 8601. Default: now. */
  readonly timestamp?: string
  /** `chat:mention`, `chat:reply`, `chat:dm`, or `chat:ambient` for a message addressed to nobody in particular. */
  readonly tags?: readonly string[]
  /** Only for hosts of this principal, by its id. Default: for all. */
  readonly to?: string
}

/** The hosts' verdict: accepted if one of them accepted the message. */
interface ChannelVerdict {
  /** The id of the message. */
  readonly messageId: string
  /** Whether a host accepted it. */
  readonly accepted: boolean
  /** Why it was not accepted. */
  readonly reason?: string
}

/** A queued message; it survives restarts if the server's store does. */
export interface ChannelSent {
  /** The id of the message. */
  readonly messageId: string
  /** When it was written, ISO 8601. */
  readonly timestamp: string
  /** Settles when a host has answered, however long that takes. */
  readonly answered: Promise<ChannelVerdict>
}

/** What a host publishes in a channel. */
export interface PublishedMessage {
  /** The id of the channel. */
  readonly channelId: string
  /** The content of the message. */
  readonly content: readonly LiveBlock[]
  /** The text blocks of `content`, joined. */
  readonly text: string
  /** The conversation of the host that it comes from. */
  readonly conversationId?: string
  /** The thread of the channel that it belongs to. */
  readonly threadId?: string
  /** The message that this answers. */
  readonly inReplyTo?: string
  /** The inference that produced this answer, as streams name it. */
  readonly inferenceId?: string
  /** The message that the stream handler has posted with a different text; replace it. */
  readonly replaces?: string
}

/** What a channel handler gets in addition to the message. */
interface HandlerContext {
  /** Aborted when the host cancels the request. */
  readonly signal: AbortSignal
}

/** An answer while it is written. Pieces include what the model says before it calls a tool. */
export interface AnswerStream extends AsyncIterable<string> {
  /** The id of the channel. */
  readonly channelId: string
  /** The inference that produces the answer. */
  readonly inferenceId: string
  /** The conversation of the host that it comes from. */
  readonly conversationId?: string
  /** The complete answer; resolves at the end. */
  readonly text: Promise<string>
}

/** An acknowledgement from a host. `intent` is `seen` or a meaning that the host defines. */
interface Acknowledgement {
  /** The id of the channel. */
  readonly channelId: string
  /** The id of the acknowledged message. */
  readonly messageId: string
  /** The meaning, for example `seen`. */
  readonly intent: string
  /** How to show it, such as an emoji. */
  readonly value?: string
}

/** The channel to open: a known one by id, or a new one by type and address. */
interface ChannelWanted {
  /** The id of a known channel. */
  readonly channelId?: string
  /** The kind of a new channel, for example `discord`. */
  readonly type?: string
  /** The address of a new channel, in the form that its kind uses. */
  readonly address?: unknown
}

/** What a handler returns about a message that it has posted. */
interface PostedMessage {
  /** The id of the posted message. */
  readonly messageId?: string
}

/** The handlers of one feature set for its channels. */
export interface ChannelHandlers {
  /** Posts what a host publishes; may return the id of the posted message. An error is reported to the host. */
  readonly publish?: (message: PublishedMessage, context: HandlerContext) => Awaitable<undefined | PostedMessage>
  /** Shows an answer while it is written. If it returns a message id, the same text is not passed to `onPublish` again. */
  readonly stream?: (stream: AnswerStream, context: HandlerContext) => Awaitable<undefined | PostedMessage>
  /** Shows that an answer is being prepared; called every few seconds while that lasts. */
  readonly typing?: (
    at: {
      /** The id of the channel. */
      readonly channelId: string
    },
    context: HandlerContext,
  ) => Awaitable<undefined>
  /** Shows an acknowledgement; may return how it is shown, or refuse with a reason. */
  readonly acknowledge?: (
    message: Acknowledgement,
    context: HandlerContext,
  ) => Awaitable<
    | undefined
    | {
        /** What is shown, for example an emoji. */
        readonly representation?: string
        /** Why it is not shown. */
        readonly refused?: string
      }
  >
  /** Opens a channel or refuses with a reason. If the host named no id, it returns the id of the opened channel. */
  readonly open?: (
    wanted: ChannelWanted,
    context: HandlerContext,
  ) => Awaitable<
    | undefined
    | {
        /** The id of the opened channel. */
        readonly channelId?: string
        /** Why the channel is not opened. */
        readonly refused?: string
      }
  >
  /** Closes a channel, or refuses with a reason. */
  readonly close?: (
    at: {
      /** The id of the channel. */
      readonly channelId: string
    },
    context: HandlerContext,
  ) => Awaitable<
    | undefined
    | {
        /** Why the channel is not closed. */
        readonly refused?: string
      }
  >
}
