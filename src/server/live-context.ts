/** What a tool of a feature set gets beside its arguments: a context that knows of scopes, of the host's state and of its model. */
import { problem } from '../core/problem.ts'
import type { Inference, InferInput } from '../features/live/inference/server.ts'
import type { ModelInfo } from '../features/live/model-info/messages.ts'
import type { CallState } from '../features/reliability/session-state/server.ts'
import { Context, type ContextParts } from './context.ts'

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
  infer(request: InferInput): Inference
  modelInfo(): Promise<ModelInfo>
}

/** The author's view of a call of a tool that belongs to a feature set. */
export class LiveContext extends Context {
  readonly #live: CallLive

  constructor([exchange, rates, reliable]: ContextParts, live: CallLive) {
    super(exchange, rates, reliable)
    this.#live = live
  }

  /** Whether the caller speaks MCP Live: others know nothing of scopes, checkpoints and inference. */
  get live(): boolean {
    return this.#live.hosted
  }

  /** Of sets with `hostState` what the host keeps: read from what came with the call, and sent back with its result. */
  override get state(): CallState {
    return this.#live.state ?? super.state
  }

  get checkpoint(): CallCheckpoint {
    return this.#live.checkpoint
  }

  /**
   * Leave to act on something: known from the host's lists or from the call, else asked for. Gives the payload; throws where it is denied.
   * @example await ctx.scope(path, { path, mode: 'append' })
   */
  scope(label: string, payload?: Record<string, unknown>): Promise<Record<string, unknown> | undefined> {
    if (typeof label !== 'string' || label === '')
      throw problem('INVALID_INPUT', 'A scope needs a label: what the user reads, and what lists are matched with')
    const asked = this.#live.scope(label, payload)
    // One that its handler never awaits must not end the process when it is put off.
    asked.catch(() => undefined)
    return asked
  }

  /** Asks the model of the host that calls. */
  infer(request: InferInput): Inference {
    return this.#live.infer(request)
  }

  /** Which model the host that calls runs. */
  modelInfo(): Promise<ModelInfo> {
    return this.#live.modelInfo()
  }
}
