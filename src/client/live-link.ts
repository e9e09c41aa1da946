/** `client.live`: a server that is live, for its host. */

import type { SendOptions } from '../engine/calls.ts'
import type { ClientSession } from '../engine/client-feature.ts'
import type { Channels } from '../features/live/channels/client.ts'
import type { WireChannel } from '../features/live/channels/messages.ts'
import { rollBack } from '../features/live/checkpoints/client.ts'
import { rollbackState } from '../features/live/checkpoints/messages.ts'
import { ContextHooks, type HookPort, hooksOf } from '../features/live/context-hooks/client.ts'
import { afterInference, afterInferenceTold } from '../features/live/context-hooks/messages.ts'
import type { ServerRollback } from '../features/live/dialects/messages.ts'
import type { KnownSet, SetBook } from '../features/live/feature-sets/client.ts'
import type { Params } from '../jsonrpc/message.ts'
import { ChannelCalls } from './live-channels.ts'
import type { LiveConnection } from './live-handlers.ts'

interface LinkParts {
  readonly session: ClientSession
  readonly book: SetBook
  readonly carrier: 'session' | 'listen'
  readonly channels: Pick<Channels, 'known' | 'require' | 'hears'>
  diagnose: HookPort['diagnose']
  /** What each request carries. */
  meta(): Params | undefined
  update(): Promise<void>
}

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

  /** A hook of the server is in flight. */
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
        // Where nothing is remembered between messages, only a request says whom it comes from.
        else
          session.request(afterInference, params as never, link.#send()).catch(error => engine.trace('live-hook-failed', error))
      },
    }
  }
}
