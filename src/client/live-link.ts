/** `client.live`: a server that is live, for its host. */
import type { SendOptions } from '../engine/calls.ts'
import type { Channels } from '../features/live/channels/client.ts'
import {
  closeChannel,
  openChannel,
  publishToChannel,
  publishToChannelNotice,
  type WireChannel,
} from '../features/live/channels/messages.ts'
import { rollBack } from '../features/live/checkpoints/client.ts'
import { rollbackState } from '../features/live/checkpoints/messages.ts'
import type { LiveBlock } from '../features/live/content/messages.ts'
import { type HookPort, Hooks, hooksOf } from '../features/live/context-hooks/client.ts'
import { afterInference, afterInferenceTold } from '../features/live/context-hooks/messages.ts'
import { type RolledBack, writeContent } from '../features/live/dialects/messages.ts'
import type { KnownSet, SetBook } from '../features/live/feature-sets/client.ts'
import { McpError } from '../jsonrpc/error.ts'
import type { Params } from '../jsonrpc/message.ts'
import type { LiveConnection, PublishOptions } from './live-handlers.ts'
import type { Session } from './session.ts'

export interface LinkParts {
  readonly session: Session
  readonly book: SetBook
  readonly carrier: 'session' | 'listen'
  readonly channels: Pick<Channels, 'known' | 'require'>
  diagnose: HookPort['diagnose']
  /** What each request carries. */
  meta(): Params | undefined
  update(): Promise<void>
}

export class LiveLink implements LiveConnection {
  readonly #parts: LinkParts
  readonly #hooks: Hooks
  #publishes: 'request' | 'notification' = 'request'

  constructor(parts: LinkParts) {
    this.#parts = parts
    this.#hooks = new Hooks(this.#port())
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

  rollback(featureSet: string, checkpoint: string, options: { readonly signal?: AbortSignal } = {}): Promise<RolledBack> {
    const { session, book } = this.#parts
    const ask = (): Promise<unknown> => session.request(rollbackState, { featureSet, checkpoint }, this.#send(options))
    return rollBack(this.featureSets.get(featureSet), book.admits(featureSet, 'rollback'), checkpoint, ask)
  }

  async publish(channelId: string, content: readonly LiveBlock[], { signal, ...said }: PublishOptions = {}): Promise<void> {
    const { session, book, carrier, channels } = this.#parts
    channels.require(publishToChannel.name, 'channels.publish')
    const message = { ...said, channelId, content: writeContent(content, book.announced.form) }
    if (this.#publishes === 'request') {
      try {
        await session.request(publishToChannel, message, this.#send(signal === undefined ? {} : { signal }))
        return
      } catch (error) {
        // Some servers know it only as a notification.
        if (carrier === 'listen' || !(error instanceof McpError) || error.code !== -32601) throw error
        this.#publishes = 'notification'
      }
    }
    await session.engine.tell(session.opened.conversation, publishToChannelNotice, message)
  }

  async openChannel(params: Params): Promise<Params> {
    this.#parts.channels.require(openChannel.name, 'channels')
    return this.#parts.session.request(openChannel, params, this.#send())
  }

  async closeChannel(channelId: string): Promise<void> {
    this.#parts.channels.require(closeChannel.name, 'channels')
    await this.#parts.session.request(closeChannel, { channelId }, this.#send())
  }

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
