/**
 * The implementation of `client.live`: hooks, rollback and channel calls on one connection. Separate from the session, which selects
 * sets and answers the server.
 */
import type { SendOptions } from '../../engine/calls.ts'
import type { ClientSession } from '../../engine/client-feature.ts'
import type { Method } from '../../engine/method.ts'
import { McpError } from '../../jsonrpc/error.ts'
import { isRecord, type Params } from '../../jsonrpc/message.ts'
import { type ChannelStream, type Channels, OutgoingStream, type ToldOfChannels } from './channels/client.ts'
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
  type WireChannel,
} from './channels/messages.ts'
import { rollBack } from './checkpoints/client.ts'
import { rollbackState } from './checkpoints/messages.ts'
import type { AcknowledgeOptions, LiveConnection, PublishOptions } from './client-api.ts'
import type { LiveBlock } from './content/messages.ts'
import { ContextHooks, type HookPort, hooksOf } from './context-hooks/client.ts'
import { afterInference, afterInferenceTold } from './context-hooks/messages.ts'
import { type ServerRollback, writeContent } from './dialects/messages.ts'
import type { KnownSet, SetBook } from './feature-sets/client.ts'

interface LinkParts {
  readonly session: ClientSession
  readonly book: SetBook
  readonly carrier: 'session' | 'listen'
  readonly channels: Pick<Channels, 'known' | 'require' | 'hears'>
  diagnose: HookPort['diagnose']
  /** `_meta` for each request; undefined on session wires. */
  meta(): Params | undefined
  update(): Promise<void>
}

/** Implements `client.live` on one connection. */
export class LiveSessionLink implements LiveConnection {
  readonly #parts: LinkParts
  readonly #hooks: ContextHooks
  readonly #channelCalls: ChannelCalls

  constructor(parts: LinkParts) {
    this.#parts = parts
    this.#hooks = new ContextHooks(this.#port())
    const { session, book, carrier, channels } = parts
    this.#channelCalls = new ChannelCalls({ session, book, carrier, channels, send: options => this.#send(options) })
  }

  /** Whether a hook of the server is running. */
  get hooked(): boolean {
    return this.#hooks.busy
  }

  get dialect(): LiveConnection['dialect'] {
    const { version, label } = this.#parts.book.announced
    return { version, label, carrier: this.#parts.carrier }
  }

  get featureSets(): ReadonlyMap<string, KnownSet> {
    return this.#parts.book.view
  }

  get channels(): ReadonlyMap<string, WireChannel> {
    return this.#parts.channels.known
  }

  get hooks(): LiveConnection['hooks'] {
    return hooksOf(this.#parts.book)
  }

  update(): Promise<void> {
    return this.#parts.update()
  }

  readonly beforeInference: LiveConnection['beforeInference'] = (params, { signal }) => this.#hooks.before(params, signal)
  readonly afterInference: LiveConnection['afterInference'] = (params, { signal }) => this.#hooks.after(params, signal)
  readonly lifecycle: LiveConnection['lifecycle'] = params => this.#hooks.lifecycle(params)

  rollback(featureSet: string, checkpoint: string, options: { readonly signal?: AbortSignal } = {}): Promise<ServerRollback> {
    const { session, book } = this.#parts
    const ask = (): Promise<unknown> => session.request(rollbackState, { featureSet, checkpoint }, this.#send(options))
    return rollBack(this.featureSets.get(featureSet), book.admits(featureSet, 'rollback'), checkpoint, ask)
  }

  readonly publish: LiveConnection['publish'] = (channel, content, options = {}) =>
    this.#channelCalls.publish(channel, content, options)
  readonly stream: LiveConnection['stream'] = (channel, about) => this.#channelCalls.stream(channel, about)
  readonly typing: LiveConnection['typing'] = channel => this.#channelCalls.typing(channel)
  readonly acknowledge: LiveConnection['acknowledge'] = (channel, messageId, options = {}) =>
    this.#channelCalls.acknowledge(channel, messageId, options)
  readonly openChannel: LiveConnection['openChannel'] = params => this.#channelCalls.open(params)
  readonly closeChannel: LiveConnection['closeChannel'] = channel => this.#channelCalls.close(channel)

  /** Adds the `_meta` that identifies this host on stateless wires. */
  #send(options: SendOptions = {}): SendOptions {
    const meta = this.#parts.meta()
    return meta === undefined ? options : { ...options, meta }
  }

  #port(): HookPort {
    const { session, book, carrier, diagnose } = this.#parts
    const link = this
    return {
      get announced() {
        return book.announced
      },
      get hooks() {
        return link.hooks
      },
      admit: (featureSet, use) => book.admit(featureSet, use),
      admits: (featureSet, use) => book.admits(featureSet, use),
      admitted: use => book.admitted(use),
      diagnose,
      isEnabled: featureSet => book.isEnabled(featureSet),
      isGranted: path => book.isGranted(path),
      request: (method, params, signal) => session.request(method, params, link.#send({ signal })),
      notify: (method, params) => {
        const { engine, opened } = session
        if (carrier === 'session' || method !== afterInferenceTold) engine.notify(opened.conversation, method, params)
        // On stateless wires only a request identifies its sender.
        else
          session.request(afterInference, params as never, link.#send()).catch(error => engine.trace('live-hook-failed', error))
      },
    }
  }
}

// What a host does with channels: publish, stream, typing, acknowledge, open and close.

interface ChannelCallsParts {
  readonly session: ClientSession
  readonly book: SetBook
  readonly carrier: 'session' | 'listen'
  readonly channels: Pick<Channels, 'known' | 'require' | 'hears'>
  send(options?: SendOptions): SendOptions
}

class ChannelCalls {
  readonly #parts: ChannelCallsParts
  /** Changes to `notification` once the server has rejected the request form. */
  #publishes: 'request' | 'notification' = 'request'
  /** Methods that the server rejected as unknown, although it declared them. */
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
        // Some servers implement only the notification.
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

  /** False: the server does not support it and was not told. */
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

  /** Whether the server may and can receive this for the channel. */
  #hears(path: ToldOfChannels, channelId: string): boolean {
    const { channels } = this.#parts
    return !this.#unknown.has(path) && channels.known.has(channelId) && channels.hears(path)
  }

  /** On stateless wires only a request identifies its sender, so the request form is used. */
  async #tell<P>(asked: Method<P, unknown>, told: Method<P, undefined>, params: P): Promise<void> {
    const { session, carrier, send } = this.#parts
    if (carrier === 'listen') await session.request(asked, params, send())
    else await session.engine.tell(session.opened.conversation, told, params)
  }
}

/** Whether the server answered "method not found". */
function isUnknown(error: unknown): boolean {
  return error instanceof McpError && error.code === -32601
}

/** An answer without `acknowledged: false` counts as acknowledged. */
function readAcknowledged(answer: unknown): Acknowledged {
  const { acknowledged, representation, reason } = isRecord(answer) ? answer : {}
  return {
    acknowledged: acknowledged !== false,
    ...(typeof representation === 'string' ? { representation } : {}),
    ...(typeof reason === 'string' ? { reason } : {}),
  }
}
