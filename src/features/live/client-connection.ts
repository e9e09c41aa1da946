/**
 * The implementation of `client.live`: hooks, rollback and channel calls on one connection. Separate from the session, which selects
 * sets and answers the server.
 */
import type { SendOptions } from '../../engine/calls.ts'
import type { ClientSession } from '../../engine/client-feature.ts'
import type { Method } from '../../engine/method.ts'
import { McpError } from '../../jsonrpc/error.ts'
import { isRecord, type Params } from '../../jsonrpc/message.ts'
import { Pieces } from './answers/messages.ts'
import type { Channels } from './channels/client.ts'
import {
  type AcknowledgementAnswer,
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
import type { LiveConnection } from './client-api.ts'
import { writeBlocks } from './content/messages.ts'
import { ContextHooks } from './context-hooks/client.ts'
import { afterInference, afterInferenceNotice } from './context-hooks/messages.ts'
import type { ServerRollback } from './dialects/messages.ts'
import type { FeatureSetRegistry, KnownSet } from './feature-sets/client.ts'

interface LinkParts {
  readonly session: ClientSession
  readonly book: FeatureSetRegistry
  readonly carrier: 'session' | 'listen'
  readonly channels: Channels
  /** `_meta` for each request; undefined on session wires. */
  meta(): Params | undefined
  update(): Promise<void>
}

/** Capabilities of channels beyond messages. */
type ToldOfChannels = Parameters<Channels['hears']>[0]

interface Abortable {
  readonly signal?: AbortSignal | undefined
}

/** Implements `client.live` on one connection. */
export class LiveSessionLink implements LiveConnection {
  readonly #parts: LinkParts
  readonly #hooks: ContextHooks
  /** The server has rejected the request form of publishing. */
  #publishesByNotice = false
  /** Methods that the server rejected as unknown, although it declared them. */
  readonly #unknown = new Set<ToldOfChannels>()

  constructor(parts: LinkParts) {
    this.#parts = parts
    const { session, book, carrier } = parts
    this.#hooks = new ContextHooks(book, {
      request: (method, params, signal) => session.request(method, params, this.#send({ signal })),
      notify: (method, params) => {
        const { engine, opened } = session
        if (carrier === 'session' || method !== afterInferenceNotice) engine.notify(opened.conversation, method, params)
        // On stateless wires only a request identifies its sender.
        else
          session.request(afterInference, params as never, this.#send()).catch(error => engine.trace('live-hook-failed', error))
      },
    })
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
    return this.#hooks.allowed
  }

  update(): Promise<void> {
    return this.#parts.update()
  }

  // Fields, so that hosts may take these functions off the connection.

  readonly beforeInference: LiveConnection['beforeInference'] = (params, { signal }) => this.#hooks.before(params, signal)
  readonly afterInference: LiveConnection['afterInference'] = (params, { signal }) => this.#hooks.after(params, signal)
  readonly lifecycle: LiveConnection['lifecycle'] = params => this.#hooks.lifecycle(params)

  rollback(featureSet: string, checkpoint: string, options?: Abortable): Promise<ServerRollback> {
    const { session, book } = this.#parts
    const ask = (): Promise<unknown> => session.request(rollbackState, { featureSet, checkpoint }, this.#send(options))
    return rollBack(this.featureSets.get(featureSet), book.admits(featureSet, 'rollback'), checkpoint, ask)
  }

  readonly publish: LiveConnection['publish'] = async (channelId, content, options = {}) => {
    const { signal, ...said } = options
    const { session, book, carrier, channels } = this.#parts
    channels.require(publishToChannel.name, 'channels.publish')
    const message = { ...said, channelId, content: writeBlocks(content, book.announced.source) }
    if (!this.#publishesByNotice) {
      try {
        await session.request(publishToChannel, message, this.#send({ signal }))
        return
      } catch (error) {
        // Some servers implement only the notification.
        if (carrier === 'listen' || !isUnknown(error)) throw error
        this.#publishesByNotice = true
      }
    }
    await session.engine.tell(session.opened.conversation, publishToChannelNotice, message)
  }

  readonly stream: LiveConnection['stream'] = (channelId, about) => {
    const path = 'channels.streaming'
    if (!this.#hears(path, channelId)) return undefined
    const named = { ...about, channelId }
    const failed = (error: unknown): void => this.#lost(path, 'channel-stream-broken', error)
    const pieces = new Pieces({
      send: (index, delta) => this.#tell(outgoingChunk, outgoingChunkNotice, { ...named, index, delta }),
      allowed: () => this.#hears(path, channelId),
      failed,
    })
    return {
      push: delta => pieces.add(delta),
      // A server that received no piece is not told of the end.
      end: async text => {
        if (!(await pieces.end())) return
        const content = writeBlocks([{ type: 'text', text }], this.#parts.book.announced.source)
        await this.#tell(outgoingComplete, outgoingCompleteNotice, { ...named, content }).catch(failed)
      },
    }
  }

  readonly typing: LiveConnection['typing'] = channelId => {
    const path = 'channels.typing'
    if (!this.#hears(path, channelId)) return false
    this.#tell(typingInChannel, typingInChannelNotice, { channelId }).catch(error =>
      this.#lost(path, 'channel-typing-lost', error),
    )
    return true
  }

  readonly acknowledge: LiveConnection['acknowledge'] = async (channelId, messageId, options = {}) => {
    const { intent = 'seen', value, signal } = options
    const path = 'channels.acknowledge'
    if (!this.#hears(path, channelId)) return undefined
    const message = { channelId, messageId, intent, ...(value !== undefined && { value }) }
    try {
      return readAcknowledged(await this.#parts.session.request(acknowledgeMessage, message, this.#send({ signal })))
    } catch (error) {
      if (!isUnknown(error)) throw error
      this.#unknown.add(path)
      return undefined
    }
  }

  readonly openChannel: LiveConnection['openChannel'] = async params => {
    const { session, channels } = this.#parts
    channels.require(openChannel.name, 'channels')
    return session.request(openChannel, params, this.#send())
  }

  readonly closeChannel: LiveConnection['closeChannel'] = async channelId => {
    const { session, channels } = this.#parts
    channels.require(closeChannel.name, 'channels')
    const { closed, reason } = await session.request(closeChannel, { channelId }, this.#send())
    if (closed !== false) return
    const said = typeof reason === 'string' ? reason : 'The server gives no reason'
    throw new McpError('channel-refused', `The server did not close the channel: ${said}`, { data: { channelId, reason: said } })
  }

  /** Whether the server may and can receive this for the channel. */
  #hears(path: ToldOfChannels, channelId: string): boolean {
    const { channels } = this.#parts
    return !this.#unknown.has(path) && channels.known.has(channelId) && channels.hears(path)
  }

  /** Something that only shows did not arrive. */
  #lost(path: ToldOfChannels, event: string, error: unknown): void {
    if (isUnknown(error)) this.#unknown.add(path)
    this.#parts.session.engine.trace(event, error)
  }

  /** On stateless wires only a request identifies its sender, so the request form is used. */
  async #tell<P>(asked: Method<P, unknown>, told: Method<P, undefined>, params: P): Promise<void> {
    const { session, carrier } = this.#parts
    if (carrier === 'listen') await session.request(asked, params, this.#send())
    else await session.engine.tell(session.opened.conversation, told, params)
  }

  /** Adds the `_meta` that identifies this host on stateless wires. */
  #send({ signal }: Abortable = {}): SendOptions {
    const meta = this.#parts.meta()
    return { ...(signal && { signal }), ...(meta && { meta }) }
  }
}

/** Whether the server answered "method not found". */
function isUnknown(error: unknown): boolean {
  return error instanceof McpError && error.code === -32601
}

/** An answer without `acknowledged: false` counts as acknowledged. */
function readAcknowledged(answer: unknown): AcknowledgementAnswer {
  const { acknowledged, representation, reason } = isRecord(answer) ? answer : {}
  return {
    acknowledged: acknowledged !== false,
    ...(typeof representation === 'string' && { representation }),
    ...(typeof reason === 'string' && { reason }),
  }
}
