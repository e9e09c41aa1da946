/** The public types of MCP Live for hosts: the handlers that answer a server, and `client.live`, by which a host uses a live server. */
import type { Why } from '../../core/suggestion.ts'
import type { ChannelStream } from './channels/client.ts'
import type { AcknowledgementAnswer, WireChannel } from './channels/messages.ts'
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

/** The handlers of an MCP Live host. Only messages that an enabled feature set may send arrive here; others are refused before. */
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
  /**
   * What the handshake declares before the feature sets of the server are known. The actual selection follows. Default: nothing
   * is enabled.
   */
  readonly hello?: {
    /** Names or patterns of the feature sets to enable. Default: none. */
    readonly enabled?: readonly string[]
    /** Names or patterns of the feature sets to disable. Default: none. */
    readonly disabled?: readonly string[]
    /** Allow and deny lists for scopes, by feature set. Default: none. */
    readonly scopes?: Readonly<Record<string, ScopeLists>>
  }
}

/** What a tool call contains in addition to its arguments, for live servers. */
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
  /** The version of MCP Live that the server speaks, and how its messages arrive. */
  readonly dialect: {
    /** The version string that the server announced. */
    readonly version: string
    /** The version of MCP Live that is spoken. */
    readonly label: DialectLabel
    /** How messages of the server arrive: in a session, or on a listen request. */
    readonly carrier: 'session' | 'listen'
  }
  /** The feature sets that the server declares, and whether they are enabled. */
  readonly featureSets: ReadonlyMap<string, KnownSet>
  /** The hooks that the server wants under the current selection. */
  readonly hooks: {
    /** Whether the server is called before an inference. */
    readonly before: boolean
    /** Whether the server is called after an inference: not at all, notified only (`told`), or allowed to change the answer (`blocking`). */
    readonly after: false | 'told' | 'blocking'
    /** Whether the server is notified when inferences begin and end. */
    readonly lifecycle: boolean
  }
  /** The channels that the server has registered, by id. */
  readonly channels: ReadonlyMap<string, WireChannel>
  /** Selects again; resolves when the server knows the selection. */
  update(): Promise<void>
  /** Calls the server's hook before an inference. Undefined: nothing to inject. */
  beforeInference(
    params: BeforeInference,
    options: {
      /** Stops waiting for the hook. */
      readonly signal: AbortSignal
    },
  ): Promise<HookInjections | undefined>
  /** Calls the hook after an inference. Undefined: nothing changes. */
  afterInference(
    params: AfterInference,
    options: {
      /** Stops waiting for the hook. */
      readonly signal: AbortSignal
    },
  ): Promise<HookAnswerChange | undefined>
  /** Notifies servers that follow turns without their content. Does nothing for others. */
  lifecycle(params: InferenceLifecycle): void
  /** Asks the server to roll a set back to a checkpoint. */
  rollback(
    featureSet: string,
    checkpoint: string,
    options?: {
      /** Stops waiting for the server. */
      readonly signal?: AbortSignal
    },
  ): Promise<ServerRollback>
  /** Delivers a message to a channel. */
  publish(channel: string, content: readonly LiveBlock[], options?: PublishOptions): Promise<void>
  /** Shows an answer while it is written; `publish` delivers it. Undefined if no enabled set names `channels.streaming`. */
  stream(
    channel: string,
    about: {
      /** The inference that produces the answer. */
      readonly inferenceId: string
      /** The conversation that it comes from. */
      readonly conversationId?: string
    },
  ): ChannelStream | undefined
  /** Shows that an answer is being prepared. False: the server does not support it, and nothing was sent. */
  typing(channel: string): boolean
  /** Acknowledges a message. Undefined: the server does not support it, and nothing was sent. */
  acknowledge(channel: string, messageId: string, options?: AcknowledgeOptions): Promise<AcknowledgementAnswer | undefined>
  /** Asks the server to open a channel; rejects with the server's reason if it refuses. */
  openChannel(params: Readonly<Record<string, unknown>>): Promise<Readonly<Record<string, unknown>>>
  /** Asks the server to close a channel; rejects with the server's reason if it refuses. */
  closeChannel(channel: string): Promise<void>
}
