/** The feature sets of a server as its author has described them, and what follows from that for hosts. */
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
  readonly options: FeatureSetOptions
  readonly positions: readonly Position[]
  readonly tools: boolean
  readonly channels: boolean
  readonly handlers: ChannelHandlers
}

/** The feature sets of a server. */
export interface Sets {
  get(name: string): SetRecord | undefined
  readonly hooked: () => readonly HookedSet[]
  add(name: string, options: FeatureSetOptions): void
  before(name: string, hook: BeforeHook, positions: readonly Position[] | undefined): void
  after(name: string, hook: AfterHook, blocking: boolean): void
  onRollback(name: string, handler: RollbackHandler): void
  tool(name: string): void
  channels(name: string): void
  /** What it does with what hosts say of its channels; what was said before stays. */
  onChannels(name: string, handlers: ChannelHandlers): void
  /** Those that open channels which hosts name by a kind. */
  opening(): readonly string[]
  remove(name: string): void
  /** Throws unless it has said that it does this. */
  needs(name: string, use: LiveUse): void
  scoped(name: string): void
}

/** Keeps the feature sets that an author declares. */
export function createSets(catalog: Catalog<OfferedSet>): Sets {
  const records = new Map<string, SetRecord>()
  const change = (name: string, changes: Partial<SetRecord>): void => {
    const before = records.get(name)
    // Removed meanwhile: there is nothing left to change.
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

/** What a set uses by having one of these. */
const channelUses: readonly (readonly [LiveUse, ...(keyof ChannelHandlers)[]])[] = [
  ['channels.publish', 'publish'],
  ['channels.lifecycle', 'open', 'close'],
  ['channels.streaming', 'stream'],
  ['channels.typing', 'typing'],
  ['channels.acknowledge', 'acknowledge'],
]

/** What hosts read of it: its hooks and tools are among its uses, whether they were named or not. */
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

// A feature set of MCP Live as its author has it: what it is, does by itself, and hears from hosts.

/** What an author says of a feature set. */
export interface FeatureSetOptions {
  /** For whoever decides whether to switch it on. */
  readonly description: string
  /** What it does by itself: `pushEvents` and `inferenceRequest` must be named here; its hooks and tools are added. */
  readonly uses?: readonly LiveUse[]
  /** Its tools act in scopes, for which they ask by `ctx.scope`. */
  readonly scoped?: boolean
  /** The host may go back to earlier checkpoints. */
  readonly rollback?: boolean
  /** The host keeps the state: `ctx.state` of its tools is what came with the call, and goes back with the result. */
  readonly hostState?: boolean
}

/** A channel of a feature set. */
export interface Channel {
  readonly id: string
  /**
   * Hands a message to the hosts that have the set enabled, also to those that come later. Resolves when it is as lasting as the
   * server's store; hosts know by its `messageId` one that comes again.
   */
  incoming(message: ChannelMessage): Promise<ChannelSent>
  remove(): void
}

/** A feature set that is offered; `T` is how a tool is added to it. */
export interface FeatureSetOf<T> {
  readonly name: string
  /**
   * Adds to the context of a turn before the model sees it. Must not wait for `infer`.
   * @example memory.beforeInference(({ userMessage }) => ({ content: `Known: ${recall(userMessage)}` }))
   */
  beforeInference(hook: BeforeHook, options?: { readonly positions?: readonly Position[] }): FeatureSetOf<T>
  /** Hears what came of a turn; a blocking hook may change the reply. */
  afterInference(hook: AfterHook, options?: { readonly blocking?: boolean }): FeatureSetOf<T>
  /** Goes back to a checkpoint that its tools have reported, where the server keeps the state. */
  onRollback(handler: RollbackHandler): FeatureSetOf<T>
  /** A tool that belongs to the set. */
  readonly tool: T
  /**
   * A channel in which people write, and in which hosts may answer.
   * @example const general = chat.channel('discord:general', { label: '#general' })
   */
  channel(id: string, options?: ChannelOptions): Channel
  /**
   * Posts what a host publishes in a channel of the set.
   * @example chat.onPublish(({ channelId, text }) => discord.post(channelId, text))
   */
  onPublish(handler: PublishHandler): FeatureSetOf<T>
  /**
   * Shows answers while they are written. They are published when they count: the same text goes to `onPublish` only where the handler
   * gives no id under which it has posted it.
   * @example chat.onStream(async stream => { for await (const piece of stream) await preview(stream.channelId, piece) })
   */
  onStream(handler: StreamHandler): FeatureSetOf<T>
  /** Shows that an answer is being worked on. */
  onTyping(handler: TypingHandler): FeatureSetOf<T>
  /** Shows that a host has taken a message in. */
  onAcknowledge(handler: AcknowledgeHandler): FeatureSetOf<T>
  /** Opens a channel for a host, or refuses with a reason: `{ refused: 'Members only' }`. Without it all that are offered are open. */
  onOpen(handler: OpenHandler): FeatureSetOf<T>
  /** Closes one, or refuses. */
  onClose(handler: CloseHandler): FeatureSetOf<T>
  /** Tells the host of something that may be worth a thought. Resolves when it is as lasting as the server's store. */
  push(event: PushInput): Promise<Pushed>
  /**
   * Asks the host's model.
   * @example const { content } = await memory.infer({ messages: 'Summarize …', maxTokens: 500 })
   */
  infer(request: InferenceInput): Inference
  /** Leave to act in a scope, outside of calls. Gives the payload; throws where it is denied. */
  scope(label: string, payload?: Record<string, unknown>): Promise<Record<string, unknown> | undefined>
  /** Which model the host runs. */
  modelInfo(): Promise<ModelInfo>
  /** It is no longer offered; hosts are told. Its tools stay. */
  remove(): void
}
