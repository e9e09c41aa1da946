/**
 * The registry of feature sets that an author declares, the declaration that follows from their hooks, tools and channels, and the
 * author's types.
 */
import type { Catalog } from '../../core/catalog.ts'
import { problem } from '../../core/problem.ts'
import type {
  AcknowledgeHandler,
  ChannelHandlers,
  ChannelMessage,
  ChannelOptions,
  ChannelSent,
  CloseHandler,
  OpenHandler,
  PublishHandler,
  StreamHandler,
  TypingHandler,
} from './channels/server.ts'
import type { RollbackHandler, StatefulSet } from './checkpoints/server.ts'
import type { Position } from './context-hooks/messages.ts'
import type { AfterHook, BeforeHook, HookedSet } from './context-hooks/server.ts'
import type { LiveUse } from './feature-sets/messages.ts'
import type { OfferedSet } from './feature-sets/server.ts'
import type { Inference, InferenceInput } from './inference/server.ts'
import type { ModelInfo } from './model-info/messages.ts'
import type { Pushed, PushInput } from './push-events/server.ts'

interface SetRecord extends HookedSet, StatefulSet {
  /** As the author gave them. */
  readonly options: FeatureSetOptions
  readonly positions: readonly Position[]
  /** Whether it has tools. */
  readonly tools: boolean
  /** Whether it has channels. */
  readonly channels: boolean
  readonly handlers: ChannelHandlers
}

/** The feature sets of a server. */
export interface Sets {
  get(name: string): SetRecord | undefined
  /** The sets, for the hooks feature. */
  readonly hooked: () => readonly HookedSet[]
  add(name: string, options: FeatureSetOptions): void
  before(name: string, hook: BeforeHook, positions: readonly Position[] | undefined): void
  after(name: string, hook: AfterHook, blocking: boolean): void
  onRollback(name: string, handler: RollbackHandler): void
  /** Records that the set has tools. */
  tool(name: string): void
  /** Records that the set has channels. */
  channels(name: string): void
  /** Adds channel handlers; earlier ones stay. */
  onChannels(name: string, handlers: ChannelHandlers): void
  /** The sets that have an `onOpen` handler. */
  opening(): readonly string[]
  remove(name: string): void
  /** Throws unless the set declares this use. */
  needs(name: string, use: LiveUse): void
  /** Throws unless the set declares `scoped`. */
  scoped(name: string): void
}

/** Creates the registry; every change is published in the catalog. */
export function createSets(catalog: Catalog<OfferedSet>): Sets {
  const records = new Map<string, SetRecord>()
  const change = (name: string, changes: Partial<SetRecord>): void => {
    const before = records.get(name)
    // Ignored if the set was removed meanwhile.
    if (before === undefined) return
    const after = described({ ...before, ...changes })
    records.set(name, after)
    catalog.update(offered(after))
  }
  return {
    get: name => records.get(name),
    hooked: () => [...records.values()],
    add: (name, options) => {
      const bare = { name, options, facts: { description: '', uses: [] }, positions: [], tools: false, channels: false }
      const record = described({ ...bare, before: undefined, after: undefined, rollback: undefined, handlers: {} })
      records.set(name, record)
      catalog.add(offered(record))
    },
    before: (name, before, positions = ['beforeUser']) => change(name, { before, positions }),
    after: (name, run, blocking) => change(name, { after: { run, blocking } }),
    onRollback: (name, rollback) => change(name, { rollback }),
    tool: name => change(name, { tools: true }),
    channels: name => {
      if (records.get(name)?.channels === false) change(name, { channels: true })
    },
    onChannels: (name, handlers) => change(name, { handlers: { ...records.get(name)?.handlers, ...handlers } }),
    opening: () => [...records.values()].filter(({ handlers }) => handlers.open !== undefined).map(({ name }) => name),
    remove: name => {
      records.delete(name)
      catalog.remove(name)
    },
    needs: (name, use) => {
      const record = records.get(name)
      if (record === undefined) throw removed(name)
      if (!record.facts.uses.includes(use)) throw undeclared(name, `uses: ['${use}']`, use)
    },
    scoped: name => {
      const record = records.get(name)
      if (record === undefined) throw removed(name)
      if (record.facts.scoped !== true) throw undeclared(name, 'scoped: true', 'scopes')
    },
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
  const also: LiveUse[] = [
    ...(record.before === undefined ? [] : ['contextHooks.beforeInference' as const]),
    ...(record.after === undefined ? [] : ['contextHooks.afterInference' as const]),
    ...(record.tools ? ['tools' as const] : []),
    ...(record.channels ? ['channels.register' as const, 'channels.incoming' as const] : []),
    ...channelUses.flatMap(([use, ...names]) => (names.some(name => record.handlers[name] !== undefined) ? [use] : [])),
  ]
  const facts = {
    description,
    uses: [...new Set([...uses, ...also])],
    ...(scoped === undefined ? {} : { scoped }),
    ...(rollback === undefined ? {} : { rollback }),
    ...(hostState === undefined ? {} : { hostState }),
  }
  return { ...record, facts }
}

// The set as the catalog lists it.
function offered({ name, facts, before, after, positions }: SetRecord): OfferedSet {
  const told = after === undefined ? false : after.blocking ? 'blocking' : 'told'
  return { name, facts, before: before !== undefined, after: told, positions }
}

function undeclared(name: string, what: string, use: string): Error {
  return problem('FEATURE_UNDECLARED', `The feature set "${name}" does not say that it uses ${use}`, {
    suggestion: `Say so where it is made: server.featureSet('${name}', { …, ${what} })`,
    actor: 'operator',
  })
}

function removed(name: string): Error {
  return problem('FEATURE_REMOVED', `The feature set "${name}" is no longer offered`, {
    suggestion: 'Keep it, or stop using its handle',
    actor: 'operator',
  })
}

// The types that authors use.

/** The options of `server.featureSet`. */
export interface FeatureSetOptions {
  /** Shown to whoever decides whether to enable the set. */
  readonly description: string
  /** What the set does on its own: name `pushEvents` and `inferenceRequest` here; hooks, tools and channels are added automatically. */
  readonly uses?: readonly LiveUse[]
  /** Its tools act in scopes, which they request by `ctx.scope`. */
  readonly scoped?: boolean
  /** The host may roll it back to earlier checkpoints. */
  readonly rollback?: boolean
  /** The host keeps the state: `ctx.state` comes with the call and is returned with the result. */
  readonly hostState?: boolean
}

/** A channel of a feature set. */
export interface Channel {
  readonly id: string
  /**
   * Queues a message for all hosts that have the set enabled, now or later. Resolves when it is stored; hosts recognise repetitions by
   * `messageId`.
   */
  incoming(message: ChannelMessage): Promise<ChannelSent>
  /** Removes the channel; hosts are told. */
  remove(): void
}

/** An offered feature set; `T` is the type of its `tool` method. */
export interface FeatureSetOf<T> {
  readonly name: string
  /**
   * Adds to the context of a turn before the model sees it. Must not wait for `infer`.
   * @example memory.beforeInference(({ userMessage }) => ({ content: `Known: ${recall(userMessage)}` }))
   */
  beforeInference(hook: BeforeHook, options?: { readonly positions?: readonly Position[] }): FeatureSetOf<T>
  /** Runs after a turn; a blocking hook may change the reply. */
  afterInference(hook: AfterHook, options?: { readonly blocking?: boolean }): FeatureSetOf<T>
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
  onPublish(handler: PublishHandler): FeatureSetOf<T>
  /**
   * Shows answers while they are written. The final text goes to `onPublish`, unless the handler returns the id of the message that it
   * has posted.
   * @example chat.onStream(async stream => { for await (const piece of stream) await preview(stream.channelId, piece) })
   */
  onStream(handler: StreamHandler): FeatureSetOf<T>
  /** Shows that an answer is being prepared. */
  onTyping(handler: TypingHandler): FeatureSetOf<T>
  /** Shows that a host has acknowledged a message. */
  onAcknowledge(handler: AcknowledgeHandler): FeatureSetOf<T>
  /** Opens a channel for a host, or refuses with a reason: `{ refused: 'Members only' }`. Without it, all offered channels are open. */
  onOpen(handler: OpenHandler): FeatureSetOf<T>
  /** Closes a channel, or refuses with a reason. */
  onClose(handler: CloseHandler): FeatureSetOf<T>
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
