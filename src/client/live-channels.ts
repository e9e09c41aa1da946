/** What a host does with the channels of a server: it publishes, streams, says that it works on an answer, opens and closes. */

import type { SendOptions } from '../engine/calls.ts'
import type { ClientSession } from '../engine/client-feature.ts'
import type { Method } from '../engine/method.ts'
import type { Channels, ToldOfChannels } from '../features/live/channels/client.ts'
import {
  type Acknowledged,
  acknowledgeMessage,
  closeChannel,
  openChannel,
  outgoingChunk,
  outgoingChunkNotice,
  outgoingComplete,
  outgoingCompleteNotice,
  publishToChannel,
  publishToChannelNotice,
  typingInChannel,
  typingInChannelNotice,
} from '../features/live/channels/messages.ts'
import { type ChannelStream, OutgoingStream } from '../features/live/channels/outgoing.ts'
import type { LiveBlock } from '../features/live/content/messages.ts'
import { writeContent } from '../features/live/dialects/messages.ts'
import type { SetBook } from '../features/live/feature-sets/client.ts'
import { McpError } from '../jsonrpc/error.ts'
import { isRecord, type Params } from '../jsonrpc/message.ts'
import type { AcknowledgeOptions, PublishOptions } from './live-handlers.ts'

interface ChannelCallsParts {
  readonly session: ClientSession
  readonly book: SetBook
  readonly carrier: 'session' | 'listen'
  readonly channels: Pick<Channels, 'known' | 'require' | 'hears'>
  send(options?: SendOptions): SendOptions
}

export class ChannelCalls {
  readonly #parts: ChannelCallsParts
  #publishes: 'request' | 'notification' = 'request'
  /** What the server says it does not know, whatever it has declared. */
  readonly #unknown = new Set<ToldOfChannels>()

  constructor(parts: ChannelCallsParts) {
    this.#parts = parts
  }

  async publish(channelId: string, content: readonly LiveBlock[], { signal, ...said }: PublishOptions): Promise<void> {
    const { session, book, carrier, channels, send } = this.#parts
    channels.require(publishToChannel.name, 'channels.publish')
    const message = { ...said, channelId, content: writeContent(content, book.announced.form) }
    if (this.#publishes === 'request') {
      try {
        await session.request(publishToChannel, message, send(signal === undefined ? {} : { signal }))
        return
      } catch (error) {
        // Some servers know it only as a notification.
        if (carrier === 'listen' || !isUnknown(error)) throw error
        this.#publishes = 'notification'
      }
    }
    await session.engine.tell(session.opened.conversation, publishToChannelNotice, message)
  }

  stream(
    channelId: string,
    about: { readonly inferenceId: string; readonly conversationId?: string },
  ): ChannelStream | undefined {
    const path = 'channels.streaming'
    if (!this.#hears(path, channelId)) return undefined
    const { session, book } = this.#parts
    const named = { ...about, channelId }
    return new OutgoingStream({
      allowed: () => this.#hears(path, channelId),
      chunk: (index, delta) => this.#tell(outgoingChunk, outgoingChunkNotice, { ...named, index, delta }),
      complete: text => {
        const content = writeContent([{ type: 'text', text }], book.announced.form)
        return this.#tell(outgoingComplete, outgoingCompleteNotice, { ...named, content })
      },
      failed: error => {
        if (isUnknown(error)) this.#unknown.add(path)
        session.engine.trace('channel-stream-broken', error)
      },
    })
  }

  /** False: the server does not show it, and was not told. */
  typing(channelId: string): boolean {
    const path = 'channels.typing'
    if (!this.#hears(path, channelId)) return false
    this.#tell(typingInChannel, typingInChannelNotice, { channelId }).catch(error => {
      if (isUnknown(error)) this.#unknown.add(path)
      this.#parts.session.engine.trace('channel-typing-lost', error)
    })
    return true
  }

  async acknowledge(
    channelId: string,
    messageId: string,
    { intent = 'seen', value, signal }: AcknowledgeOptions,
  ): Promise<Acknowledged | undefined> {
    const path = 'channels.acknowledge'
    if (!this.#hears(path, channelId)) return undefined
    const { session, send } = this.#parts
    const message = { channelId, messageId, intent, ...(value === undefined ? {} : { value }) }
    try {
      return readAcknowledged(await session.request(acknowledgeMessage, message, send(signal === undefined ? {} : { signal })))
    } catch (error) {
      if (!isUnknown(error)) throw error
      this.#unknown.add(path)
      return undefined
    }
  }

  async open(params: Params): Promise<Params> {
    const { session, channels, send } = this.#parts
    channels.require(openChannel.name, 'channels')
    return session.request(openChannel, params, send())
  }

  async close(channelId: string): Promise<void> {
    const { session, channels, send } = this.#parts
    channels.require(closeChannel.name, 'channels')
    const { closed, reason } = await session.request(closeChannel, { channelId }, send())
    if (closed !== false) return
    const said = typeof reason === 'string' ? reason : 'The server does not say why'
    throw new McpError('channel-refused', `The channel stays open: ${said}`, { data: { channelId, reason: said } })
  }

  #hears(path: ToldOfChannels, channelId: string): boolean {
    const { channels } = this.#parts
    return !this.#unknown.has(path) && channels.known.has(channelId) && channels.hears(path)
  }

  /** Where nothing is remembered between messages, only a request says whom it comes from. */
  async #tell<P>(asked: Method<P, unknown>, told: Method<P, undefined>, params: P): Promise<void> {
    const { session, carrier, send } = this.#parts
    if (carrier === 'listen') await session.request(asked, params, send())
    else await session.engine.tell(session.opened.conversation, told, params)
  }
}

function isUnknown(error: unknown): boolean {
  return error instanceof McpError && error.code === -32601
}

/** Whoever merely answers has shown it. */
function readAcknowledged(answer: unknown): Acknowledged {
  const { acknowledged, representation, reason } = isRecord(answer) ? answer : {}
  return {
    acknowledged: acknowledged !== false,
    ...(typeof representation === 'string' ? { representation } : {}),
    ...(typeof reason === 'string' ? { reason } : {}),
  }
}
