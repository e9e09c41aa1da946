/** Calling a server's hooks around an inference (MCP Live 0.2 §10), and telling it when one begins and ends. */
import { quoted, type Why, why } from '../../../core/why.ts'
import type { Method } from '../../../engine/method.ts'
import { McpError } from '../../../jsonrpc/error.ts'
import { isRecord, type Params } from '../../../jsonrpc/message.ts'
import type { LiveGate } from '../answers/messages.ts'
import { readBefore, writeTurn } from '../dialects/messages.ts'
import {
  type AfterInference,
  afterInference,
  afterInferenceTold,
  type BeforeInference,
  beforeInference,
  type Injection,
  inferenceLifecycle,
} from './messages.ts'

export interface Before {
  readonly featureSet: string
  readonly injections: readonly Injection[]
}

export interface After {
  readonly featureSet: string
  readonly modifiedResponse?: string
  readonly metadata?: Record<string, unknown>
}

/** That an inference began or ended, and nothing of what was said. */
export interface Lifecycle {
  readonly inferenceId: string
  readonly conversationId: string
  readonly turnIndex: number
  readonly phase: 'started' | 'completed' | 'aborted' | 'failed'
  readonly model?: BeforeInference['model']
  readonly usage?: AfterInference['usage']
}

/** What hooks need of a connection. */
export interface HookPort extends LiveGate {
  readonly hooks: { readonly before: boolean; readonly after: false | 'told' | 'blocking'; readonly lifecycle: boolean }
  isEnabled(featureSet: string): boolean
  isGranted(path: string): boolean
  request(method: Method, params: Params, signal: AbortSignal): Promise<unknown>
  notify(method: Method<unknown, undefined>, params: Params): void
}

const hook = 'contextHooks.beforeInference'

export class Hooks {
  readonly #port: HookPort
  #inFlight = 0

  constructor(port: HookPort) {
    this.#port = port
  }

  /** Whether the server works on a hook: it may not ask for an inference meanwhile. */
  get busy(): boolean {
    return this.#inFlight > 0
  }

  async before(turn: BeforeInference, signal: AbortSignal): Promise<Before | undefined> {
    const { announced, hooks } = this.#port
    if (announced === undefined || !hooks.before) return undefined
    // Servers that tell looking on from adding something are told what was said only where they may look on.
    const observes = !announced.paths.includes(`${hook}.observe`) || this.#port.isGranted(`${hook}.observe`)
    const answer = await this.#run(beforeInference, writeTurn(turn, announced, false, observes), signal)
    const read = readBefore(answer)
    if (read === undefined) throw notAnswer(beforeInference.name)
    for (const what of read.dropped) this.#port.diagnose(dropped(what))
    if (!this.#counts(read.featureSet)) return undefined
    const injections = read.injections.filter(injection => this.#isAllowed(injection))
    return { featureSet: read.featureSet, injections }
  }

  async after(turn: AfterInference, signal: AbortSignal): Promise<After | undefined> {
    const { announced, hooks } = this.#port
    if (announced === undefined || hooks.after === false) return undefined
    const params = writeTurn(turn, announced, true, true)
    if (hooks.after === 'told') {
      this.#port.notify(afterInferenceTold, params as unknown as Params)
      return undefined
    }
    const answer = await this.#run(afterInference, params, signal)
    if (!isRecord(answer) || typeof answer['featureSet'] !== 'string') throw notAnswer(afterInference.name)
    const { featureSet, modifiedResponse, metadata } = answer
    if (!this.#counts(featureSet)) return undefined
    return {
      featureSet,
      ...(typeof modifiedResponse === 'string' ? { modifiedResponse } : {}),
      ...(isRecord(metadata) ? { metadata } : {}),
    }
  }

  lifecycle({ inferenceId, conversationId, turnIndex, phase, model, usage }: Lifecycle): void {
    if (!this.#port.hooks.lifecycle) return
    const shown = model !== undefined && this.#port.isGranted('modelInfo')
    this.#port.notify(inferenceLifecycle, {
      inferenceId,
      conversationId,
      turnIndex,
      phase,
      ...(shown ? { model } : {}),
      ...(usage === undefined || phase !== 'completed' ? {} : { usage }),
    })
  }

  async #run(method: Method, params: BeforeInference, signal: AbortSignal): Promise<unknown> {
    this.#inFlight++
    try {
      return await this.#port.request(method, params as unknown as Params, signal)
    } finally {
      this.#inFlight--
    }
  }

  /** A set may have been disabled while its hook ran: what counts is how things stand now. */
  #counts(featureSet: string): boolean {
    if (this.#port.isEnabled(featureSet)) return true
    const message = `A hook was answered for the feature set ${quoted(featureSet)}, which is not enabled: nothing came of it`
    this.#port.diagnose(why('HOOK_OF_DISABLED_SET', 'feature-sets', message, `Enable ${quoted(featureSet)} for this server`))
    return false
  }

  /** Servers that ask for each place by itself write only where they may. */
  #isAllowed({ position, namespace }: Injection): boolean {
    const path = `${hook}.inject.${position}`
    if (this.#port.announced?.paths.includes(path) !== true || this.#port.isGranted(path)) return true
    const message = `An injection of ${quoted(namespace)} at ${position} was left out: ${path} is not granted`
    this.#port.diagnose(why('INJECTION_NOT_GRANTED', path, message, `Grant ${path} to this server`))
    return false
  }
}

function notAnswer(method: string): McpError {
  return new McpError('invalid-result', `The server answered ${method} without a featureSet`)
}

function dropped(what: string): Why {
  return why('INJECTION_DROPPED', 'injections', `Left out of a hook's answer: ${what}`, 'Ask the author of the server to mend it')
}
