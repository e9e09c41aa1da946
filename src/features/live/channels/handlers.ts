/** Channels as authors of servers see them: what they offer, what people write there, and what hosts do with it. */
import type { Awaitable } from '../../../jsonrpc/message.ts'
import type { LiveBlock, LiveInput } from '../content/messages.ts'

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
export interface ChannelVerdict {
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

export interface HandlerContext {
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
export interface Acknowledgement {
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
export interface ChannelWanted {
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
