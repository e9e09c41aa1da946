/** What a tool of a feature set gets beside its arguments: a context that knows of scopes, of the host's state and of its model. */
import { problem } from '../../core/problem.ts'
import { CallContext, exchangeOf, held } from '../../engine/context.ts'
import type { CallState } from '../reliability/session-state/call-state.ts'
import { statePort } from '../reliability/session-state/messages.ts'
import type { Inference, InferenceInput } from './inference/server.ts'
import type { ModelInfo } from './model-info/messages.ts'

/** Checkpoints of a set whose state the server keeps itself. */
export interface CallCheckpoint {
  /** The one at which the host is; undefined before the first. */
  readonly current: string | undefined
  /** The call has left a new one behind, under this id or a new one. Gives the id. */
  save(id?: string): string
}

/** What a call of a set can do. */
export interface CallLive {
  readonly hosted: boolean
  /** Undefined where the host does not keep the state. */
  readonly state: CallState | undefined
  readonly checkpoint: CallCheckpoint
  scope(label: string, payload: Record<string, unknown> | undefined): Promise<Record<string, unknown> | undefined>
  infer(request: InferenceInput): Inference
  modelInfo(): Promise<ModelInfo>
}

/** What it has beyond the context of any other tool. */
export interface LiveMembers {
  /** Whether the caller speaks MCP Live: others know nothing of scopes, checkpoints and inference. */
  readonly live: boolean
  /** Of sets with `hostState` what the host keeps: read from what came with the call, and sent back with its result. */
  readonly state: CallState
  readonly checkpoint: CallCheckpoint
  /**
   * Leave to act on something: known from the host's lists or from the call, else asked for. Gives the payload; throws where it is denied.
   * @example await ctx.scope(path, { path, mode: 'append' })
   */
  scope(label: string, payload?: Record<string, unknown>): Promise<Record<string, unknown> | undefined>
  /** Asks the model of the host that calls. */
  infer(request: InferenceInput): Inference
  /** Which model the host that calls runs. */
  modelInfo(): Promise<ModelInfo>
}

/** The author's view of a call of a tool that belongs to a feature set. */
export class LiveCallContext extends CallContext implements LiveMembers {
  readonly #live: CallLive

  constructor(context: CallContext, live: CallLive) {
    super(exchangeOf(context))
    this.#live = live
  }

  get live(): boolean {
    return this.#live.hosted
  }

  get state(): CallState {
    const exchange = exchangeOf(this)
    return this.#live.state ?? exchange.engine.ports.get(statePort).of(exchange)
  }

  get checkpoint(): CallCheckpoint {
    return this.#live.checkpoint
  }

  scope(label: string, payload?: Record<string, unknown>): Promise<Record<string, unknown> | undefined> {
    if (typeof label !== 'string' || label === '')
      throw problem('INVALID_INPUT', 'A scope needs a label: what the user reads, and what lists are matched with')
    return held(this.#live.scope(label, payload))
  }

  infer(request: InferenceInput): Inference {
    return this.#live.infer(request)
  }

  modelInfo(): Promise<ModelInfo> {
    return this.#live.modelInfo()
  }
}
