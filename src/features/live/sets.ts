/**
 * The registry of feature sets that an author declares, the declaration that follows from their hooks, tools and channels, and the
 * author's types.
 */

import type { Catalog } from '../../core/catalog.ts'
import { problem } from '../../core/problem.ts'
import { given } from '../../jsonrpc/message.ts'
import type { ChannelHandlers, ChannelMessage, ChannelOptions, ChannelSent } from './channels/server.ts'
import type { RollbackHandler } from './checkpoints/server.ts'
import type { Position } from './context-hooks/messages.ts'
import type { AfterHook, BeforeHook, HookedSet } from './context-hooks/server.ts'
import type { FeatureSetFacts, LiveUse } from './feature-sets/messages.ts'
import type { OfferedSet } from './feature-sets/server.ts'
import type { Inference, InferenceInput } from './inference/server.ts'
import type { ModelInfo } from './model-info/messages.ts'
import type { Pushed, PushInput } from './push-events/server.ts'

interface SetRecord extends HookedSet {
  /** As the author gave them. */
  readonly options: FeatureSetOptions
  readonly facts: FeatureSetFacts
  readonly rollback: RollbackHandler | undefined
  readonly positions: readonly Position[]
  /** Whether it has tools. */
  readonly tools: boolean
  /** Whether it has channels. */
  readonly channels: boolean
  readonly handlers: ChannelHandlers
}

/** The feature sets of a server; every change is published in the catalog. */
export class Sets {
  readonly #records = new Map<string, SetRecord>()
  readonly #catalog: Catalog<OfferedSet>

  constructor(catalog: Catalog<OfferedSet>) {
    this.#catalog = catalog
  }

  get(name: string): SetRecord | undefined {
    return this.#records.get(name)
  }

  all(): readonly SetRecord[] {
    return [...this.#records.values()]
  }

  add(name: string, options: FeatureSetOptions): void {
    const bare = { name, options, facts: { description: '', uses: [] }, positions: [], tools: false, channels: false }
    const record = described({ ...bare, before: undefined, after: undefined, rollback: undefined, handlers: {} })
    this.#records.set(name, record)
    this.#catalog.add(offered(record))
  }

  before(name: string, before: BeforeHook, positions: readonly Position[] = ['beforeUser']): void {
    this.#change(name, { before, positions })
  }

  after(name: string, run: AfterHook, blocking: boolean): void {
    this.#change(name, { after: { run, blocking } })
  }

  onRollback(name: string, rollback: RollbackHandler): void {
    this.#change(name, { rollback })
  }

  /** The set has tools. */
  tool(name: string): void {
    this.#change(name, { tools: true })
  }

  /** The set has channels. */
  channels(name: string): void {
    if (this.get(name)?.channels === false) this.#change(name, { channels: true })
  }

  /** Adds channel handlers; earlier ones stay. */
  onChannels(name: string, handlers: ChannelHandlers): void {
    this.#change(name, { handlers: { ...this.get(name)?.handlers, ...handlers } })
  }

  remove(name: string): void {
    this.#records.delete(name)
    this.#catalog.remove(name)
  }

  /** Throws unless the set declares this use. */
  needs(name: string, use: LiveUse): void {
    if (!this.#offered(name).uses.includes(use)) throw undeclared(name, `uses: ['${use}']`, use)
  }

  /** Throws unless the set declares `scoped`. */
  scoped(name: string): void {
    if (this.#offered(name).scoped !== true) throw undeclared(name, 'scoped: true', 'scopes')
  }

  #offered(name: string): FeatureSetFacts {
    const record = this.get(name)
    if (record !== undefined) return record.facts
    throw problem('FEATURE_REMOVED', `The feature set "${name}" was removed`, {
      suggestion: 'Do not use the handle of a feature set after removing it',
      actor: 'operator',
    })
  }

  /** Ignored if the set was removed meanwhile. */
  #change(name: string, changes: Partial<SetRecord>): void {
    const before = this.get(name)
    if (before === undefined) return
    const after = described({ ...before, ...changes })
    this.#records.set(name, after)
    this.#catalog.update(offered(after))
  }
}

/** The uses that follow from channel handlers. */
const channelUses: readonly (readonly [LiveUse, ...(keyof ChannelHandlers)[]])[] = [
  ['channels.publish', 'publish'],
  ['channels.lifecycle', 'open', 'close'],
  ['channels.streaming', 'stream'],
  ['channels.typing', 'typing'],
  ['channels.acknowledge', 'acknowledge'],
]

/** Computes the declaration: hooks, tools and channels are added to `uses`. */
function described(record: SetRecord): SetRecord {
  const { description, uses = [], scoped, rollback, hostState } = record.options
  const also: LiveUse[] = []
  if (record.before !== undefined) also.push('contextHooks.beforeInference')
  if (record.after !== undefined) also.push('contextHooks.afterInference')
  if (record.tools) also.push('tools')
  if (record.channels) also.push('channels.register', 'channels.incoming')
  for (const [use, ...names] of channelUses) if (names.some(name => record.handlers[name] !== undefined)) also.push(use)
  const facts = { description, uses: [...new Set([...uses, ...also])], ...given({ scoped, rollback, hostState }) }
  return { ...record, facts }
}

// The set as the catalog lists it.
function offered({ name, facts, before, after, positions }: SetRecord): OfferedSet {
  const told = after === undefined ? false : after.blocking ? 'blocking' : 'told'
  return { name, facts, before: before !== undefined, after: told, positions }
}

function undeclared(name: string, what: string, use: string): Error {
  return problem('FEATURE_UNDECLARED', `The feature set "${name}" does not declare that it uses ${use}`, {
    suggestion: `Declare it: server.featureSet('${name}', { …, ${what} })`,
    actor: 'operator',
  })
}

// The types that authors use.

/** The options of `server.featureSet`. */
export interface FeatureSetOptions {
  /** What the set does, for the person who decides whether to enable it. */
  readonly description: string
  /**
   * What the set does on its own: `pushEvents` and `inferenceRequest`. Hooks, tools and channels are added automatically.
   * Default: none.
   */
  readonly uses?: readonly LiveUse[]
  /** Whether its tools act in scopes, which they request by `ctx.scope`. Default false. */
  readonly scoped?: boolean
  /** Whether the host may roll it back to earlier checkpoints. Default false. */
  readonly rollback?: boolean
  /** Whether the host keeps the state: `ctx.state` comes with the call and is returned with the result. Default false. */
  readonly hostState?: boolean
}

/** A channel of a feature set. */
export interface Channel {
  /** The id of the channel. */
  readonly id: string
  /**
   * Queues a message for all hosts that have the set enabled, now or later. Resolves when it is stored; hosts recognise repetitions by
   * `messageId`.
   */
  incoming(message: ChannelMessage): Promise<ChannelSent>
  /** Removes the channel and notifies hosts. */
  remove(): void
}

/** The handler of one kind of channel message. */
type ChannelHandler<Name extends keyof ChannelHandlers> = Required<ChannelHandlers>[Name]

/** An offered feature set; `T` is the type of its `tool` method. */
export interface FeatureSetOf<T> {
  /** The name of the set. */
  readonly name: string
  /**
   * Adds to the context of a turn before the model sees it. Must not wait for `infer`.
   * @example memory.beforeInference(({ userMessage }) => ({ content: `Known: ${recall(userMessage)}` }))
   */
  beforeInference(
    hook: BeforeHook,
    options?: {
      /** The positions in which the hook injects. Default: `beforeUser`. */
      readonly positions?: readonly Position[]
    },
  ): FeatureSetOf<T>
  /** Runs after a turn; a blocking hook may change the reply. */
  afterInference(
    hook: AfterHook,
    options?: {
      /** Whether the hook may change the reply, so that the host waits for it. Default false. */
      readonly blocking?: boolean
    },
  ): FeatureSetOf<T>
  /** Handles a rollback to a checkpoint, if the server keeps the state. */
  onRollback(handler: RollbackHandler): FeatureSetOf<T>
  /** Adds a tool to the set. */
  readonly tool: T
  /**
   * Offers a channel in which people write and hosts may answer.
   * @example const general = chat.channel('discord:general', { label: '#general' })
   */
  channel(id: string, options?: ChannelOptions): Channel
  /**
   * Posts what a host publishes in a channel of the set.
   * @example chat.onPublish(({ channelId, text }) => discord.post(channelId, text))
   */
  onPublish(handler: ChannelHandler<'publish'>): FeatureSetOf<T>
  /**
   * Shows answers while they are written. The final text goes to `onPublish`, unless the handler returns the id of the message that it
   * has posted.
   * @example chat.onStream(async stream => { for await (const piece of stream) await preview(stream.channelId, piece) })
   */
  onStream(handler: ChannelHandler<'stream'>): FeatureSetOf<T>
  /** Shows that an answer is being prepared. */
  onTyping(handler: ChannelHandler<'typing'>): FeatureSetOf<T>
  /** Shows that a host has acknowledged a message. */
  onAcknowledge(handler: ChannelHandler<'acknowledge'>): FeatureSetOf<T>
  /** Opens a channel for a host, or refuses with a reason: `{ refused: 'Members only' }`. Without it, all offered channels are open. */
  onOpen(handler: ChannelHandler<'open'>): FeatureSetOf<T>
  /** Closes a channel, or refuses with a reason. */
  onClose(handler: ChannelHandler<'close'>): FeatureSetOf<T>
  /** Tells hosts of an event. Resolves when it is stored. */
  push(event: PushInput): Promise<Pushed>
  /**
   * Asks the host's model.
   * @example const { content } = await memory.infer({ messages: 'Summarize …', maxTokens: 500 })
   */
  infer(request: InferenceInput): Inference
  /** Asks for a scope outside of calls. Returns the payload; throws if denied. */
  scope(label: string, payload?: Record<string, unknown>): Promise<Record<string, unknown> | undefined>
  /** Which model the host runs. */
  modelInfo(): Promise<ModelInfo>
  /** Stops offering the set and tells the hosts. Its tools remain. */
  remove(): void
}
