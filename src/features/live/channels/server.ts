/**
 * Channels that a server offers (MCP Live 0.4), registered with hosts that have their set enabled. A host that is told of no channel can
 * publish in none, and hears no message of one before it has answered that it knows it.
 */
import type { Side } from '../../../engine/plan.ts'
import type { Awaitable } from '../../../jsonrpc/message.ts'
import type { LiveBlock, LiveInput } from '../content/messages.ts'
import type { LiveHost } from '../hosts/messages.ts'
import { channelsChanged, registerChannels, type WireChannel } from './messages.ts'
import { channelPosting, type PostingParts, type Registered } from './posting.ts'

interface ChannelsParts extends Omit<PostingParts, 'channels'> {
  /** A host knows other channels now: there may be messages for it. */
  readonly known: () => void
}

interface ChannelsServer {
  readonly side: Side
  add(featureSet: string, id: string, options: ChannelOptions): void
  remove(id: string): void
  /** The set is no longer offered, nor are its channels. */
  drop(featureSet: string): void
  /** Whether it is a channel of this set. */
  has(featureSet: string, id: string): boolean
  /** Whether a host was told of it, and has answered. */
  isKnown(host: LiveHost, id: string): boolean
  /** Hosts have come, or have selected: each is told of the channels that it may know. */
  sync(): void
}

const answerMs = 30_000

/** What a host was told, and whether it has answered. */
interface Told {
  readonly channels: ReadonlyMap<string, WireChannel>
  answered: boolean
}

/** The server side of channels. */
export function channelsServer(parts: ChannelsParts): ChannelsServer {
  const channels = new Map<string, Registered>()
  const told = new WeakMap<LiveHost, Told>()
  const posting = channelPosting({ ...parts, channels })
  let planned = false
  let everOffered = false
  const syncAll = (): void => {
    planned = false
    for (const host of parts.hosts()) if (host.reachable) tell(parts, host, channels, told)
  }
  // After what is being answered now: hosts wait for that first.
  const sync = (): void => {
    if (planned || (channels.size === 0 && !everOffered)) return
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
    add: (featureSet, id, { label, type }) => {
      const wire = { id, ...(type === undefined ? {} : { type }), ...(label === undefined ? {} : { label }) }
      channels.set(id, { featureSet, wire })
      everOffered = true
      sync()
    },
    remove,
    drop: featureSet => {
      for (const [id, channel] of channels) if (channel.featureSet === featureSet) remove(id)
    },
    has: (featureSet, id) => channels.get(id)?.featureSet === featureSet,
    isKnown: (host, id) => {
      const known = told.get(host)
      return channels.has(id) && known?.answered === true && known.channels.has(id)
    },
    sync,
  }
}

/** Registers with a host that knows none yet; to others what has changed is told. */
function tell(
  { trace, known: heard }: ChannelsParts,
  host: LiveHost,
  channels: ReadonlyMap<string, Registered>,
  told: WeakMap<LiveHost, Told>,
): void {
  const known = told.get(host)?.channels
  const now = new Map(
    [...channels].filter(([, { featureSet }]) => host.selected.enabled(featureSet)).map(([id, { wire }]) => [id, wire]),
  )
  const added = [...now].filter(([id]) => known?.has(id) !== true).map(([, wire]) => wire)
  const removed = [...(known?.keys() ?? [])].filter(id => !now.has(id))
  if (added.length + removed.length === 0) return
  const telling: Told = { channels: now, answered: false }
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
      if (told.get(host) === telling) told.delete(host)
    },
  )
}

// Channels as authors of servers see them: what they offer, what people write there, and what hosts do with it.

/** What a channel is called and of which type it is. */
export interface ChannelOptions {
  /** As people read it, such as `#general`. */
  readonly label?: string
  /** What kind it is, such as `discord`. */
  readonly type?: string
}

/** A message that somebody wrote in a channel. */
export interface ChannelMessage {
  readonly content: LiveInput
  /** One per message; the same whenever it is sent again. Default: a new one. */
  readonly messageId?: string
  readonly threadId?: string
  readonly author?: { readonly id?: string; readonly name?: string }
  /** When it was written, ISO 8601. Default: now. */
  readonly timestamp?: string
  /** `chat:mention`, `chat:reply`, `chat:dm`, or `chat:ambient` for what is meant for nobody in particular. */
  readonly tags?: readonly string[]
  /** Only for hosts of this principal, by its id. Default: for all. */
  readonly to?: string
}

/** What hosts made of a message: accepted where one of them took it. */
interface ChannelVerdict {
  readonly messageId: string
  readonly accepted: boolean
  readonly reason?: string
}

/** A message that is on its way: it lasts as long as the server's store. */
export interface ChannelSent {
  readonly messageId: string
  readonly timestamp: string
  /** What hosts made of it. Waits until one has answered, however long that takes. */
  readonly answered: Promise<ChannelVerdict>
}

/** What a host publishes. */
export interface Published {
  readonly channelId: string
  readonly content: readonly LiveBlock[]
  /** Of the content, its texts. */
  readonly text: string
  readonly conversationId?: string
  readonly threadId?: string
  /** The message that it answers. */
  readonly inReplyTo?: string
  /** The inference that it is the answer of, as streams name it. */
  readonly inferenceId?: string
  /** What the handler of its stream has posted. The text is another one: it takes the place of that. */
  readonly replaces?: string
}

interface HandlerContext {
  readonly signal: AbortSignal
}

/** Posts what a host publishes; may give the id under which it stands now. What it throws the host is told. */
export type PublishHandler = (
  message: Published,
  context: HandlerContext,
) => Awaitable<undefined | { readonly messageId?: string }>

/** An answer while it is written, piece by piece. Words that the model says before it calls a tool are among the pieces. */
export interface AnswerStream extends AsyncIterable<string> {
  readonly channelId: string
  readonly inferenceId: string
  readonly conversationId?: string
  /** The answer as it came out, when it is over. */
  readonly text: Promise<string>
}

/**
 * Shows an answer while it is written. Where it gives the id under which the text stands now, the same text is not handed to
 * `onPublish` any more.
 */
export type StreamHandler = (
  stream: AnswerStream,
  context: HandlerContext,
) => Awaitable<undefined | { readonly messageId?: string }>

/** Shows that an answer is being worked on; told again every few seconds as long as that is so. */
export type TypingHandler = (at: { readonly channelId: string }, context: HandlerContext) => Awaitable<undefined>

/** A host has taken a message in. `intent` is `seen`, or whatever else a host means by it. */
interface Acknowledgement {
  readonly channelId: string
  readonly messageId: string
  readonly intent: string
  /** How to show it, such as an emoji. */
  readonly value?: string
}

/** Shows that a message was taken in; may say how, or refuse with a reason. */
export type AcknowledgeHandler = (
  message: Acknowledgement,
  context: HandlerContext,
) => Awaitable<undefined | { readonly representation?: string; readonly refused?: string }>

/** The channel that a host wants opened: one that it knows, or one of a kind and at an address. */
interface ChannelWanted {
  readonly channelId?: string
  readonly type?: string
  readonly address?: unknown
}

/** Opens a channel, or refuses with a reason. Where the host named none, it gives the id of the one that it has opened. */
export type OpenHandler = (
  wanted: ChannelWanted,
  context: HandlerContext,
) => Awaitable<undefined | { readonly channelId?: string; readonly refused?: string }>

/** Closes a channel, or refuses with a reason. */
export type CloseHandler = (
  at: { readonly channelId: string },
  context: HandlerContext,
) => Awaitable<undefined | { readonly refused?: string }>

/** What a set does with what hosts say of its channels. */
export interface ChannelHandlers {
  readonly publish?: PublishHandler
  readonly stream?: StreamHandler
  readonly typing?: TypingHandler
  readonly acknowledge?: AcknowledgeHandler
  readonly open?: OpenHandler
  readonly close?: CloseHandler
}
