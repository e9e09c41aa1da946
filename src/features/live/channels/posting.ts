/** Server handlers for what hosts do with channels: publish and stream answers, show typing, acknowledge, open, close and list. */

import type { Clock } from '../../../core/clock.ts'
import type { Trace } from '../../../core/log.ts'
import type { Exchange } from '../../../engine/exchange.ts'
import type { Method } from '../../../engine/method.ts'
import type { Side } from '../../../engine/plan.ts'
import { McpError } from '../../../jsonrpc/error.ts'
import { clip } from '../../../jsonrpc/limits.ts'
import type { Params } from '../../../jsonrpc/message.ts'
import { given } from '../../../jsonrpc/message.ts'
import { readContent } from '../dialects/messages.ts'
import { liveError } from '../feature-sets/messages.ts'
import type { LiveCaller, LiveHost } from '../hosts/messages.ts'
import {
  acknowledgeMessage,
  closeChannel,
  listChannels,
  openChannel,
  outgoingChunk,
  outgoingChunkNotice,
  outgoingComplete,
  outgoingCompleteNotice,
  publishToChannel,
  publishToChannelNotice,
  typingInChannel,
  typingInChannelNotice,
  type WireChannel,
} from './messages.ts'
import type { ChannelHandlers, PublishedMessage } from './server.ts'
import { AnswerStreams, type StreamName } from './streams.ts'

/** A registered channel and the set that it belongs to. */
interface RegisteredChannel {
  readonly featureSet: string
  readonly wire: WireChannel
}

/** What these handlers need from the live server. */
export interface PostingParts {
  readonly clock: Clock
  readonly trace: Trace
  readonly channels: ReadonlyMap<string, RegisteredChannel>
  readonly hosts: () => Iterable<LiveHost>
  readonly caller: (exchange: Exchange) => LiveCaller | undefined
  readonly handlers: (featureSet: string) => ChannelHandlers
  /** Sets that open channels by a kind and an address. */
  readonly opening: () => readonly string[]
}

interface Chunk {
  readonly index: number
  readonly delta: string
}

/** Limit of remembered published answers, so that a repeated `channels/publish` is not posted twice. */
const mostPublished = 1_000
const longestReason = 500

/** Creates the handlers for what hosts do with channels. */
export function channelPosting(parts: PostingParts) {
  const { channels, caller, handlers } = parts
  const streams = new AnswerStreams(parts)
  const published = new Map<string, Promise<Params>>()
  const offered = (): boolean => channels.size > 0

  /** The named channel, if it exists and the caller has its set enabled. */
  const found = (exchange: Exchange): RegisteredChannel => {
    const by = caller(exchange)
    const { channelId } = exchange.params
    const channel = typeof channelId === 'string' ? channels.get(channelId) : undefined
    if (by === undefined) throw new McpError('method-not-found', 'Only hosts that declare MCP Live can use channels')
    if (channel === undefined)
      throw new McpError(
        'invalid-params',
        `There is no channel "${clip(String(channelId))}". Use a channel that the server has registered`,
        {
          data: { channelId: clip(String(channelId)) },
        },
      )
    const { featureSet } = channel
    if (by.selected.enabled(featureSet)) return channel
    throw liveError('feature-set-disabled', { featureSet })
  }

  const publish = (exchange: Exchange): Promise<Params> => {
    const { featureSet } = found(exchange)
    const key = answerKey(exchange)
    const before = key === undefined ? undefined : published.get(key)
    if (before !== undefined) return before
    const posting = post(exchange, featureSet)
    if (key === undefined) return posting
    published.set(key, posting)
    posting.catch(() => published.delete(key))
    const [oldest] = published.keys()
    if (published.size > mostPublished && oldest !== undefined) published.delete(oldest)
    return posting
  }
  const post = async (exchange: Exchange, featureSet: string): Promise<Params> => {
    const said = publishedIn(exchange)
    const { channelId, text, inferenceId } = said
    const { signal } = exchange
    const host = caller(exchange)?.host
    const before = host && (await streams.posted(host, channelId, inferenceId, text, signal))
    if (before?.same === true) return { delivered: true, messageId: before.messageId }
    const handler = handlers(featureSet).publish
    if (handler === undefined)
      throw new McpError(
        'method-not-found',
        `The feature set "${featureSet}" does not accept published messages: it has no onPublish`,
      )
    const replaced = before === undefined ? said : { ...said, replaces: before.messageId }
    const posted = await handler(replaced, { signal })
    return { delivered: true, ...(posted?.messageId !== undefined && { messageId: posted.messageId }) }
  }

  const streamed = (part: 'chunk' | 'complete') => (exchange: Exchange) => {
    const { stream } = handlers(found(exchange).featureSet)
    const host = caller(exchange)?.host
    if (stream === undefined || host === undefined) return
    const { channelId, inferenceId, conversationId, index, delta, content } = exchange.params as Params & StreamName & Chunk
    const name = { channelId, inferenceId, ...(typeof conversationId === 'string' && { conversationId }) }
    if (part === 'complete') streams.complete(host, name, readText(content).text)
    else streams.chunk(host, name, index, delta, stream)
  }
  /** Runs the typing handler in the background; its failure is only traced. */
  const typed = (exchange: Exchange): void => {
    const { featureSet, wire } = found(exchange)
    const { typing } = handlers(featureSet)
    if (typing === undefined) return
    const { signal } = new AbortController()
    Promise.resolve()
      .then(() => typing({ channelId: wire.id }, { signal }))
      .catch(error => parts.trace('channel-typing-failed', error))
  }
  /** What only shows something: as a request it succeeds without a handler, too; a notification that fails is traced. */
  const shown = (asked: Method, told: Method, show: (exchange: Exchange) => void): NonNullable<Side['handlers']> => [
    [
      asked,
      {
        offered,
        execute: exchange => {
          show(exchange)
          return {}
        },
      },
    ],
    [
      told,
      exchange => {
        try {
          show(exchange)
        } catch (error) {
          parts.trace('channel-notice-dropped', error)
        }
      },
    ],
  ]

  const acknowledge = async (exchange: Exchange): Promise<Params> => {
    const { featureSet, wire } = found(exchange)
    const handler = handlers(featureSet).acknowledge
    if (handler === undefined)
      throw new McpError(
        'method-not-found',
        `The feature set "${featureSet}" does not accept acknowledgements: it has no onAcknowledge`,
      )
    const { messageId, intent, value } = exchange.params as Record<'messageId' | 'intent', string> & Params
    const message = { channelId: wire.id, messageId, intent, ...(typeof value === 'string' && { value }) }
    const { refused, representation } = (await handler(message, { signal: exchange.signal })) ?? {}
    if (refused !== undefined) return { acknowledged: false, reason: clip(refused, longestReason) }
    return { acknowledged: true, ...(representation !== undefined && { representation }) }
  }

  const open = async (exchange: Exchange): Promise<Params> => {
    const { channelId, type, address } = exchange.params
    const featureSet = channelId === undefined ? openerFor(exchange) : found(exchange).featureSet
    const said = given({ channelId: channelId as string | undefined, type: type as string | undefined, address })
    const opened = (await handlers(featureSet).open?.(said, { signal: exchange.signal })) ?? {}
    if (opened.refused !== undefined) throw refusal(opened.refused, channelId)
    const channel = channels.get(said.channelId ?? opened.channelId ?? '')
    if (channel?.featureSet === featureSet) return { channel: channel.wire }
    throw refusal('The server has no such channel', channelId)
  }
  /** Opening by type goes to the first enabled set that has an `onOpen` handler. */
  const openerFor = (exchange: Exchange): string => {
    const { selected } = caller(exchange) ?? {}
    const featureSet = parts.opening().find(name => selected?.enabled(name) === true)
    // If there is none, `found` throws the usual error for an unknown channel.
    return featureSet ?? found(exchange).featureSet
  }

  const close = async (exchange: Exchange): Promise<Params> => {
    const { featureSet, wire } = found(exchange)
    const closed = await handlers(featureSet).close?.({ channelId: wire.id }, { signal: exchange.signal })
    const { refused } = closed ?? {}
    return refused === undefined ? { closed: true } : { closed: false, reason: clip(refused, longestReason) }
  }

  const list = (exchange: Exchange): Params => {
    const selected = caller(exchange)?.selected
    const enabled = [...channels.values()].filter(({ featureSet }) => selected?.enabled(featureSet) === true)
    return { channels: enabled.map(({ wire }) => wire) }
  }

  const side: Side = {
    handlers: [
      [publishToChannel, { offered, execute: publish }],
      [publishToChannelNotice, async exchange => void (await publish(exchange))],
      ...shown(outgoingChunk, outgoingChunkNotice, streamed('chunk')),
      ...shown(outgoingComplete, outgoingCompleteNotice, streamed('complete')),
      ...shown(typingInChannel, typingInChannelNotice, typed),
      [acknowledgeMessage, { offered, execute: acknowledge }],
      [openChannel, { offered, execute: open }],
      [closeChannel, { offered, execute: close }],
      [listChannels, { offered, execute: list }],
    ],
  }
  return {
    side,
    /** The channel is no longer there. */
    dropped: (channelId: string): void => streams.drop(parts.hosts(), channelId),
  }
}

/** Deduplication key of an answer; messages without an inference id are never deduplicated. */
function answerKey({ params, caller }: Exchange): string | undefined {
  const { channelId, inferenceId } = params
  return typeof inferenceId === 'string' ? JSON.stringify([caller.principal?.id ?? '', channelId, inferenceId]) : undefined
}

function publishedIn({ params }: Exchange): PublishedMessage {
  const { channelId, conversationId, threadId, inReplyTo, inferenceId, content } = params as Params & { channelId: string }
  const said = Object.entries({ conversationId, threadId, inReplyTo, inferenceId }).filter(([, one]) => typeof one === 'string')
  return { channelId, ...readText(content), ...Object.fromEntries(said) }
}

/** The blocks, and the text in them. */
function readText(wire: unknown): Pick<PublishedMessage, 'content' | 'text'> {
  const { blocks } = readContent(wire)
  return { content: blocks, text: blocks.flatMap(block => (block.type === 'text' ? [block.text] : [])).join('\n') }
}

function refusal(reason: string, channelId: unknown): McpError {
  const said = clip(reason, longestReason)
  return liveError(
    'channel-refused',
    { reason: said, ...(typeof channelId === 'string' && { channelId: clip(channelId) }) },
    said,
  )
}
