/** A feature set of MCP Live as its author has it: what it is, does by itself, and hears from hosts. */
import type {
  AcknowledgeHandler,
  ChannelMessage,
  ChannelOptions,
  ChannelSent,
  CloseHandler,
  OpenHandler,
  PublishHandler,
  StreamHandler,
  TypingHandler,
} from './channels/handlers.ts'
import type { RollbackHandler } from './checkpoints/server.ts'
import type { Position } from './context-hooks/messages.ts'
import type { AfterHook, BeforeHook } from './context-hooks/server.ts'
import type { LiveUse } from './feature-sets/messages.ts'
import type { Inference, InferenceInput } from './inference/server.ts'
import type { ModelInfo } from './model-info/messages.ts'
import type { Pushed, PushInput } from './push-events/server.ts'

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
