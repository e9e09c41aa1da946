/** The public types of MCP Live for hosts: the handlers that answer a server, and `client.live`, by which a host uses a live server. */
import type { Why } from '../../core/suggestion.ts'
import type { ChannelStream } from './channels/client.ts'
import type { Acknowledged, WireChannel } from './channels/messages.ts'
import type { StateReport } from './checkpoints/messages.ts'
import type { RefusedMessage } from './client-refusals.ts'
import type { LiveBlock } from './content/messages.ts'
import type { HookAnswerChange, HookInjections, InferenceLifecycle } from './context-hooks/client.ts'
import type { AfterInference, BeforeInference } from './context-hooks/messages.ts'
import type { DialectLabel, HostSelection, ServerRollback, SetUse } from './dialects/messages.ts'
import type { DeclaredSets, KnownSet } from './feature-sets/client.ts'
import type { OnInfer } from './inference/client.ts'
import type { ModelInfo } from './model-info/messages.ts'
import type { OnPush } from './push-events/client.ts'
import type { OnElevate } from './scopes/client.ts'
import type { Scope, ScopeLists } from './scopes/messages.ts'

export type { HostSelection as Selection, LiveBlock, RefusedMessage, SetUse, StateReport }

/** Answers a live server. Only messages that an enabled set may send arrive here; others are refused before. */
export interface LiveHandlers {
  /** Selects the enabled sets. Called after the handshake, when the sets change, and by `live.update()`. */
  select(declared: DeclaredSets): HostSelection
  /** Decides about a pushed event. */
  readonly onPush: OnPush
  /** Runs an inference for the server. */
  readonly onInfer: OnInfer
  /** Decides about a request for a scope. */
  readonly onElevate: OnElevate
  /** Describes the host's model. */
  modelInfo(): ModelInfo
  /** Called when a server reports state outside of a call. */
  onState?(report: StateReport): Promise<void>
  /** The state of a set at a checkpoint, or the current one, for servers that ask. */
  stateOf?(featureSet: string, checkpoint: string | undefined): Promise<StateReport | undefined>
  /** Called when the declared sets have changed. */
  onChanged?(declared: DeclaredSets): void
  /** Called once when an enabled set was refused an undeclared use; `uses` in the selection would allow it. */
  onUndeclared?(featureSet: string, use: SetUse): void
  /** Called for each message that was refused before it reached a handler. */
  onRefused?(refused: RefusedMessage): void
  /** Called when something was dropped or is unusual. */
  onDiagnostic?(what: Why): void
  /** What the handshake says before the server's sets are known; the actual selection follows. */
  readonly hello?: {
    readonly enabled?: readonly string[]
    readonly disabled?: readonly string[]
    readonly scopes?: Readonly<Record<string, ScopeLists>>
  }
}

/** What a tool call carries beside its arguments, for live servers. */
export interface LiveCall {
  /** The set of the tool, if its definition does not name one. State is sent only if the set may keep state. */
  readonly featureSet?: string
  /** The current state, if the host keeps it. */
  readonly state?: unknown
  /** The checkpoint of that state. */
  readonly parent?: string
  /** The current checkpoint, if the server keeps the state. */
  readonly checkpoint?: string
  /** The scope granted to this call. */
  readonly scope?: Scope
  /** Called with the state of a result that arrives after the call was abandoned. */
  readonly onLate?: (report: StateReport) => void
}

/** What accompanies a published message. */
interface PublishOptions {
  /** The conversation that it comes from. */
  readonly conversationId?: string
  /** The thread of the channel that it belongs to. */
  readonly threadId?: string
  /** The message that it answers. */
  readonly inReplyTo?: string
  /** The inference that produced it; a server posts the answer of an inference once. */
  readonly inferenceId?: string
  /** Cancels the request. */
  readonly signal?: AbortSignal
}

/** How a message is acknowledged. */
interface AcknowledgeOptions {
  /** The meaning. Default `seen`. */
  readonly intent?: string
  /** How to show it, such as an emoji. */
  readonly value?: string
  /** Cancels the request. */
  readonly signal?: AbortSignal
}

/** `client.live`: a live server, as its host uses it. */
export interface LiveConnection {
  /** The server's dialect, and how its messages arrive. */
  readonly dialect: { readonly version: string; readonly label: DialectLabel; readonly carrier: 'session' | 'listen' }
  /** The declared sets, and whether they are enabled. */
  readonly featureSets: ReadonlyMap<string, KnownSet>
  /** Which hooks the server wants under the current selection. */
  readonly hooks: { readonly before: boolean; readonly after: false | 'told' | 'blocking'; readonly lifecycle: boolean }
  /** Channels that the server has registered. */
  readonly channels: ReadonlyMap<string, WireChannel>
  /** Selects again; resolves when the server knows the selection. */
  update(): Promise<void>
  /** Calls the server's hook before an inference. Undefined: nothing to inject. */
  beforeInference(params: BeforeInference, options: { readonly signal: AbortSignal }): Promise<HookInjections | undefined>
  /** Calls the hook after an inference. Undefined: nothing changes. */
  afterInference(params: AfterInference, options: { readonly signal: AbortSignal }): Promise<HookAnswerChange | undefined>
  /** Tells servers that follow turns without their content; does nothing for others. */
  lifecycle(params: InferenceLifecycle): void
  /** Asks the server to roll a set back to a checkpoint. */
  rollback(featureSet: string, checkpoint: string, options?: { readonly signal?: AbortSignal }): Promise<ServerRollback>
  /** Delivers a message to a channel. */
  publish(channel: string, content: readonly LiveBlock[], options?: PublishOptions): Promise<void>
  /** Shows an answer while it is written; `publish` delivers it. Undefined if no enabled set names `channels.streaming`. */
  stream(channel: string, about: { readonly inferenceId: string; readonly conversationId?: string }): ChannelStream | undefined
  /** Shows that an answer is being prepared. False: the server does not support it and was not told. */
  typing(channel: string): boolean
  /** Acknowledges a message. Undefined: the server does not support it and was not told. */
  acknowledge(channel: string, messageId: string, options?: AcknowledgeOptions): Promise<Acknowledged | undefined>
  /** Asks the server to open a channel; rejects with the server's reason if it refuses. */
  openChannel(params: Readonly<Record<string, unknown>>): Promise<Readonly<Record<string, unknown>>>
  /** Asks the server to close a channel; rejects with the server's reason if it refuses. */
  closeChannel(channel: string): Promise<void>
}
