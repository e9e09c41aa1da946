/** MCP Live on one connection, as its host sees it: what a server may ask of it, and what it may do with the server. */
import type { Why } from '../../core/suggestion.ts'
import type { ChannelStream } from './channels/client.ts'
import type { Acknowledged, WireChannel } from './channels/messages.ts'
import type { StateReport } from './checkpoints/messages.ts'
import type { RefusedMessage } from './client-refusals.ts'
import type { LiveBlock } from './content/messages.ts'
import type { After, Before, InferenceLifecycle } from './context-hooks/client.ts'
import type { AfterInference, BeforeInference } from './context-hooks/messages.ts'
import type { DialectLabel, HostSelection, ServerRollback, SetUse } from './dialects/messages.ts'
import type { DeclaredSets, KnownSet } from './feature-sets/client.ts'
import type { OnInfer } from './inference/client.ts'
import type { ModelInfo } from './model-info/messages.ts'
import type { OnPush } from './push-events/client.ts'
import type { OnElevate } from './scopes/client.ts'
import type { Scope, ScopeLists } from './scopes/messages.ts'

export type { HostSelection as Selection, LiveBlock, RefusedMessage, SetUse, StateReport }

/** Answers a server that is live. Only messages that an enabled set may send come here; all others are refused before. */
export interface LiveHandlers {
  /** Which sets may be used. Asked after the server's hello, when its sets change, and by `live.update()`. */
  select(declared: DeclaredSets): HostSelection
  readonly onPush: OnPush
  readonly onInfer: OnInfer
  readonly onElevate: OnElevate
  modelInfo(): ModelInfo
  /** Told of state that a server reports outside of calls. */
  onState?(report: StateReport): Promise<void>
  /** What is known of a set's state at a checkpoint, or now, for servers that ask. */
  stateOf?(featureSet: string, checkpoint: string | undefined): Promise<StateReport | undefined>
  onChanged?(declared: DeclaredSets): void
  /** Told once where an enabled set wants to do what it does not declare. It was refused; `uses` of the selection would allow it. */
  onUndeclared?(featureSet: string, use: SetUse): void
  /** Told of each message that was refused before it came to a handler: by the selection, or because it does not fit. */
  onRefused?(refused: RefusedMessage): void
  /** Told of what was dropped or is odd, and why. */
  onDiagnostic?(what: Why): void
  /** What the hello says before the server's sets are known: names and patterns. The selection proper follows. */
  readonly hello?: {
    readonly enabled?: readonly string[]
    readonly disabled?: readonly string[]
    readonly scopes?: Readonly<Record<string, ScopeLists>>
  }
}

/** What a call of a tool carries beside its arguments, to servers that are live. */
export interface LiveCall {
  /** The set that the tool belongs to, where the tool does not say so itself. State goes along only if the set may keep any. */
  readonly featureSet?: string
  /** The state at the head, where the host keeps it. */
  readonly state?: unknown
  /** The checkpoint at which that state was. */
  readonly parent?: string
  /** The head, where the server keeps the state. */
  readonly checkpoint?: string
  readonly scope?: Scope
  /** Told of the state in a result that comes after the call was given up, on carriers that still bring one. */
  readonly onLate?: (report: StateReport) => void
}

/** What is said of a message beside its content. */
export interface PublishOptions {
  /** The conversation that it comes from. */
  readonly conversationId?: string
  /** The thread of the channel that it belongs to. */
  readonly threadId?: string
  /** The message that it answers. */
  readonly inReplyTo?: string
  /** The inference that it is the answer of: a server posts the answer of one once. */
  readonly inferenceId?: string
  /** Gives it up. */
  readonly signal?: AbortSignal
}

/** How a message is acknowledged. */
export interface AcknowledgeOptions {
  /** What is meant by it. Default `seen`. */
  readonly intent?: string
  /** How to show it, such as an emoji. */
  readonly value?: string
  /** Gives it up. */
  readonly signal?: AbortSignal
}

/** A server of MCP Live, as its host uses it. */
export interface LiveConnection {
  /** What the server speaks, and how its messages come. */
  readonly dialect: { readonly version: string; readonly label: DialectLabel; readonly carrier: 'session' | 'listen' }
  readonly featureSets: ReadonlyMap<string, KnownSet>
  /** What there is to call around an inference, as things are selected now. */
  readonly hooks: { readonly before: boolean; readonly after: false | 'told' | 'blocking'; readonly lifecycle: boolean }
  /** Channels that the server has registered. */
  readonly channels: ReadonlyMap<string, WireChannel>
  /** Selects anew, and resolves when the server knows. */
  update(): Promise<void>
  /** Undefined: the server has nothing to add, or nothing that counts. */
  beforeInference(params: BeforeInference, options: { readonly signal: AbortSignal }): Promise<Before | undefined>
  /** Undefined: nothing is changed. */
  afterInference(params: AfterInference, options: { readonly signal: AbortSignal }): Promise<After | undefined>
  /** Tells servers that follow turns and not their content; others hear nothing. */
  lifecycle(params: InferenceLifecycle): void
  rollback(featureSet: string, checkpoint: string, options?: { readonly signal?: AbortSignal }): Promise<ServerRollback>
  publish(channel: string, content: readonly LiveBlock[], options?: PublishOptions): Promise<void>
  /**
   * Shows an answer while it is written; `publish` delivers it. Undefined: no enabled set of the server names `channels.streaming`, so
   * that it would be told nothing.
   */
  stream(channel: string, about: { readonly inferenceId: string; readonly conversationId?: string }): ChannelStream | undefined
  /** Says that an answer is being worked on. False: the server does not show that, and was not told. */
  typing(channel: string): boolean
  /** Says that a message was taken in. Undefined: the server does not show that, and was not told. */
  acknowledge(channel: string, messageId: string, options?: AcknowledgeOptions): Promise<Acknowledged | undefined>
  /** Rejects with the server's reason where it refuses. */
  openChannel(params: Readonly<Record<string, unknown>>): Promise<Readonly<Record<string, unknown>>>
  /** Rejects with the server's reason where it refuses. */
  closeChannel(channel: string): Promise<void>
}
