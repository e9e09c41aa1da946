/**
 * Client side of the hooks around an inference (MCP Live 0.2 §10): calls a server's hooks, checks its answers against the selection,
 * and reports when inferences begin and end.
 */
import { quoted, type Why, why } from '../../../core/suggestion.ts'
import type { Method } from '../../../engine/method.ts'
import { McpError } from '../../../jsonrpc/error.ts'
import { isRecord, type Params } from '../../../jsonrpc/message.ts'
import type { LiveGate } from '../answers/messages.ts'
import { readBefore, type SetUse, writeTurn } from '../dialects/messages.ts'
import {
  type AfterInference,
  afterInference,
  afterInferenceNotice,
  type BeforeInference,
  beforeInference,
  type Injection,
  inferenceLifecycle,
  positions,
} from './messages.ts'

/** What a server injects before an inference. */
export interface HookInjections {
  /** The feature set that injects. */
  readonly featureSet: string
  /** What it injects, in order. */
  readonly injections: readonly Injection[]
}

/** What a server changes after an inference. */
export interface HookAnswerChange {
  /** The feature set that changes the answer. */
  readonly featureSet: string
  /** Replaces the model's answer. */
  readonly modifiedResponse?: string
  /** Further facts from the server. */
  readonly metadata?: Record<string, unknown>
}

/** An inference has begun or ended; carries no content. */
export interface InferenceLifecycle {
  /** The id of the inference. */
  readonly inferenceId: string
  /** The id of the conversation. */
  readonly conversationId: string
  /** The number of the turn in the conversation. */
  readonly turnIndex: number
  /** What has happened to the inference. */
  readonly phase: 'started' | 'completed' | 'aborted' | 'failed'
  /** The model that runs. */
  readonly model?: BeforeInference['model']
  /** The tokens that were used, once it has ended. */
  readonly usage?: AfterInference['usage']
}

/** How hooks reach the server. */
interface HookCalls {
  request(method: Method, params: Params, signal: AbortSignal): Promise<unknown>
  notify(method: Method<unknown, undefined>, params: Params): void
}

const hook = 'contextHooks.beforeInference'
const afterHook = 'contextHooks.afterInference'
/** A server is asked before an inference if one of its sets may do any of these. */
const beforeUses = [`${hook}.observe`, ...positions.map(position => `${hook}.inject.${position}` as const)] as const

/** Calls the hooks of one server. */
export class ContextHooks {
  readonly #gate: LiveGate
  readonly #calls: HookCalls
  #inFlight = 0

  constructor(gate: LiveGate, calls: HookCalls) {
    this.#gate = gate
    this.#calls = calls
  }

  /** Which hooks to call: those the server announced and some enabled set may use. */
  get allowed(): {
    readonly before: boolean
    readonly after: false | 'told' | 'blocking'
    readonly lifecycle: boolean
  } {
    const { before, after, lifecycle } = this.#gate.announced
    const some = (use: SetUse): boolean => this.#gate.admitted(use).length > 0
    return {
      before: before && beforeUses.some(some),
      after: after !== false && some(afterHook) ? after : false,
      lifecycle: lifecycle && some('inferenceLifecycle'),
    }
  }

  /** Whether a hook is running; the server may not request an inference meanwhile. */
  get busy(): boolean {
    return this.#inFlight > 0
  }

  /** Asks the server for injections; undefined if it has none or may not inject. */
  async before(turn: BeforeInference, signal: AbortSignal): Promise<HookInjections | undefined> {
    if (!this.allowed.before) return undefined
    const { announced } = this.#gate
    // The user's message is sent only if a set may observe; a server that announces `observe` separately needs the grant too.
    const granted = !announced.paths.includes(`${hook}.observe`) || this.#gate.isGranted(`${hook}.observe`)
    const observes = granted && this.#gate.admitted(`${hook}.observe`).length > 0
    const answer = await this.#run(beforeInference, writeTurn(turn, announced, false, observes), signal)
    const read = readBefore(answer)
    if (read === undefined) throw notAnswer(beforeInference.name)
    for (const what of read.dropped) this.#gate.diagnose(dropped(what))
    const { featureSet } = read
    if (!this.#counts(featureSet, beforeUses)) return undefined
    return { featureSet, injections: read.injections.filter(injection => this.#isAllowed(featureSet, injection)) }
  }

  /** Asks or tells the server about the answer; undefined if nothing changes. */
  async after(turn: AfterInference, signal: AbortSignal): Promise<HookAnswerChange | undefined> {
    const { after } = this.allowed
    if (after === false) return undefined
    const params = writeTurn(turn, this.#gate.announced, true, true)
    if (after === 'told') {
      this.#calls.notify(afterInferenceNotice, params as unknown as Params)
      return undefined
    }
    const answer = await this.#run(afterInference, params, signal)
    if (!isRecord(answer) || typeof answer['featureSet'] !== 'string') throw notAnswer(afterInference.name)
    const { featureSet, modifiedResponse, metadata } = answer
    if (!this.#counts(featureSet, [afterHook])) return undefined
    return {
      featureSet,
      ...(typeof modifiedResponse === 'string' ? { modifiedResponse } : {}),
      ...(isRecord(metadata) ? { metadata } : {}),
    }
  }

  /** Sends a lifecycle notification, without content. */
  lifecycle({ inferenceId, conversationId, turnIndex, phase, model, usage }: InferenceLifecycle): void {
    if (!this.allowed.lifecycle) return
    const shown = model !== undefined && this.#gate.isGranted('modelInfo')
    this.#calls.notify(inferenceLifecycle, {
      inferenceId,
      conversationId,
      turnIndex,
      phase,
      ...(shown ? { model } : {}),
      ...(usage === undefined || phase !== 'completed' ? {} : { usage }),
    })
  }

  // Counts running hooks.
  async #run(method: Method, params: BeforeInference, signal: AbortSignal): Promise<unknown> {
    this.#inFlight++
    try {
      return await this.#calls.request(method, params as unknown as Params, signal)
    } finally {
      this.#inFlight--
    }
  }

  /** Checked after the hook, because the set may have been disabled meanwhile. */
  #counts(featureSet: string, uses: readonly SetUse[]): boolean {
    if (uses.some(use => this.#gate.admits(featureSet, use))) return true
    const disabled = !this.#gate.isEnabled(featureSet)
    const lacks = disabled ? 'the set is not enabled' : `the set does not list ${uses[0]?.replace(/\.observe$/, '')} in its uses`
    const message = `The answer of a hook for the feature set ${quoted(featureSet)} was ignored: ${lacks}`
    const fix = disabled
      ? `Enable ${quoted(featureSet)} for this server`
      : 'Ask the author of the server to add it to the uses of the feature set'
    this.#gate.diagnose(why(disabled ? 'HOOK_OF_DISABLED_SET' : 'USE_UNDECLARED', 'feature-sets', message, fix))
    return false
  }

  /** An injection needs the set's consent for its position and, if the server announces positions separately, the grant. */
  #isAllowed(featureSet: string, { position, namespace }: Injection): boolean {
    const path = `${hook}.inject.${position}` as const
    const refused = (code: string, because: string, fix: string): false => {
      const message = `An injection of ${quoted(namespace)} at ${position} was dropped: ${because}`
      this.#gate.diagnose(why(code, path, message, fix))
      return false
    }
    if (!this.#gate.admits(featureSet, path)) {
      const because = `the feature set ${quoted(featureSet)} does not list ${path} in its uses`
      return refused('USE_UNDECLARED', because, 'Ask the author of the server to add it to the uses of the feature set')
    }
    if (!this.#gate.announced.paths.includes(path) || this.#gate.isGranted(path)) return true
    return refused('INJECTION_NOT_GRANTED', `this host does not grant ${path}`, `Grant ${path} to this server`)
  }
}

function notAnswer(method: string): McpError {
  return new McpError('invalid-result', `The server's response to ${method} has no featureSet`)
}

function dropped(what: string): Why {
  return why(
    'INJECTION_DROPPED',
    'injections',
    `Dropped from the answer of a hook: ${what}`,
    'Ask the author of the server to correct it',
  )
}
