/** The host's answers to requests of servers (sampling, elicitation, roots, inference), one set of handlers per connection. */
import { type Why, why } from '../../../core/suggestion.ts'
import type { LiveHandlers } from '../../../features/live/client-api.ts'
import type { FinishReason, InferenceRequest } from '../../../features/live/inference/messages.ts'
import type { OnElicit, OnQuestionRefused, Question } from '../../../features/mcp/elicitation/client.ts'
import type { ElicitResult } from '../../../features/mcp/elicitation/messages.ts'
import type { Root } from '../../../features/mcp/roots/messages.ts'
import { clip } from '../../../jsonrpc/limits.ts'
import type { Awaitable } from '../../../jsonrpc/message.ts'
import type { Asked } from '../../../policy/rules/rule.ts'
import type { ModelFinish, ModelMessage, ModelRequest } from '../../models/model.ts'
import { quoteFromServer } from '../../models/quoted.ts'
import { generate } from '../generate.ts'
import { askPermission, hostRefusalError, outcomeNoter } from '../permission.ts'
import type { LoopParts } from '../ports.ts'
import { assistantBlocks, modelNamed, type OnSampleReview, requestSystem, samplingFor } from './sampling.ts'

/** Options for the answers to servers. */
export interface AnswersOptions {
  /** Shows a sampling request to the user, where the policy says `ask`. Default: such requests are refused. */
  readonly onSampleReview?: OnSampleReview
  /** Asks the user the questions of servers. Default: servers cannot ask. */
  readonly onElicit?: OnServerQuestion
  /** Folders that the user works in, as `file:` URIs. The policy decides which servers see them. Default: none. */
  readonly roots?: readonly Root[]
  /**
   * The model for inference requests of servers: a model id by `server/set`, `server` or `set`. Default: the first model that
   * fits the preferences.
   */
  readonly routes?: Readonly<Record<string, string>>
}

/** The answers to all servers: handlers for each connection, and the roots that servers may see. */
export class Answers {
  readonly #parts: LoopParts
  readonly #options: AnswersOptions
  #roots: readonly Root[]
  /** Model ids by `server/set`, `server` or `set`. */
  readonly #routes: ReadonlyMap<string, string>

  constructor(parts: LoopParts, options: AnswersOptions) {
    this.#parts = parts
    this.#options = options
    this.#roots = options.roots ?? []
    this.#routes = new Map(Object.entries(options.routes ?? {}))
  }

  /** The connect options that answer the requests of one server. */
  for(server: string) {
    const [parts, { onElicit, onSampleReview }] = [this.#parts, this.#options]
    return {
      onSample: samplingFor(parts, server, onSampleReview),
      sampleTools: true,
      ...(onElicit !== undefined && { onElicit: elicitationFor(parts, server, onElicit) }),
      onQuestionRefused: refusedPagesOf(parts, server),
      roots: () => this.#rootsFor(server),
      live: { onInfer: inferenceFor(parts, server, this.#routes), modelInfo: () => parts.models[0].info },
    }
  }

  /** Replaces the roots and notifies the servers. */
  setRoots(roots: readonly Root[]): void {
    this.#roots = roots
    for (const { client } of this.#parts.servers()) client?.rootsChanged()
  }

  /** The roots for one server; empty where the policy or the user does not allow it to see them. */
  async #rootsFor(server: string): Promise<readonly Root[]> {
    const told = outcomeNoter(this.#parts, { server, kind: 'roots' })
    // They may be replaced while the user is asked; the answer is about these.
    const asked = this.#roots
    // An empty list needs no permission.
    if (asked.length === 0) {
      told('success', undefined, 'roots: none are set')
      return []
    }
    const { why: said, rule } = await askPermission(this.#parts.policy, { kind: 'roots', server, payload: { roots: asked } })
    told(said === undefined ? 'success' : 'refused', said, rule)
    return said === undefined ? asked : []
  }
}

// Elicitation: questions of servers go to the user; the host never answers one itself.

/** A question and the server that asks. `domain`: where a page leads, the part of a URL that cannot be disguised. */
export type ServerQuestion = Question & {
  /** The server that asks. */
  readonly server: string
  /** The domain of the page that the user is asked to visit. */
  readonly domain?: string
}

/** Asks the user a server's question. */
export type OnServerQuestion = (
  question: ServerQuestion,
  context: {
    /** Aborted when the server cancels the question. */
    readonly signal: AbortSignal
  },
) => Awaitable<ElicitResult>

/** The elicitation handler of one server: policy first, then the user. */
function elicitationFor(parts: LoopParts, server: string, ask: OnServerQuestion): OnElicit {
  return async (question, { signal }) => {
    const told = outcomeNoter(parts, { server, kind: 'elicit' })
    const say = (answer: ElicitResult): ElicitResult => {
      parts.refusals.answered(server, question.message, isYes(answer))
      return answer
    }
    const verdict = await parts.policy.decide({ kind: 'elicit', server, payload: { mode: question.mode } })
    if (verdict.do === 'deny' || verdict.do === 'hold') {
      told('refused', verdict.why)
      return say({ action: 'decline' })
    }
    const asked = question.mode === 'url' ? { ...question, server, domain: question.host } : { ...question, server }
    const answer = await ask(asked, { signal })
    if (answer.action === 'accept') told('success', undefined, verdict.rule)
    else told('refused', unanswered(server, answer.action))
    return say(answer)
  }
}

/** Audits pages that the client refuses to show. */
function refusedPagesOf(parts: LoopParts, server: string): OnQuestionRefused {
  return ({ message }) => {
    outcomeNoter(parts, { server, kind: 'elicit' })('refused', unfit(server))
    parts.refusals.answered(server, message, false)
  }
}

/** The reason where the user did not answer. */
function unanswered(server: string, action: 'decline' | 'cancel'): Why {
  const message = `The user ${action === 'decline' ? 'declined' : 'did not answer'} the question of ${server}`
  return why('USER_DECLINED', 'the user', message, 'Ask again if the answer is still needed')
}

/** The reason where a page is unsafe. */
function unfit(server: string): Why {
  const message = `${server} asks to open a page whose URL is not https or contains a user name`
  return why('UNSAFE_ADDRESS', 'elicit.url', message, `Correct ${server} so that it uses an https URL without a user name`)
}

/** Whether an answer is a yes. A form with a single boolean can be accepted with `false` in it. */
function isYes({ action, content = {} }: ElicitResult): boolean {
  const values = Object.values(content)
  return action === 'accept' && !(values.length === 1 && values[0] === false)
}

// Inference for servers (MCP Live 0.2 §11): policy, budget and routes decide, without a person. No hooks run, so that hooks cannot trigger
// each other.

/** The inference handler of one server. */
function inferenceFor(parts: LoopParts, server: string, routes: ReadonlyMap<string, string>): LiveHandlers['onInfer'] {
  return async (request, { signal, chunk }) => {
    const { featureSet, conversationId, stream } = request
    const conversation = conversationId === undefined ? {} : { conversation: conversationId }
    const told = outcomeNoter(parts, { server, featureSet, kind: 'infer', ...conversation })
    const wish: Asked = { kind: 'infer', server, featureSet, payload: request }
    const { why: said, rule } = await askPermission(parts.policy, wish)
    if (said !== undefined) throw hostRefusalError(told, said)
    const leave = parts.policy.enter?.(wish)
    const model = modelNamed(parts.models, routes.get(`${server}/${featureSet}`) ?? routes.get(server) ?? routes.get(featureSet))
    try {
      const asked = modelRequest(request, parts.limits.answerTokens, server)
      const payer = { server, featureSet }
      const made = await generate({ ...parts, payer }, model, asked, signal, delta => {
        if (stream) chunk(delta)
      })
      told('success', undefined, rule)
      return { content: made.text, model: made.model, finishReason: finishOf(made.finishReason), usage: made.usage }
    } catch (error) {
      // The server cancelled, but the inference may have cost something.
      if (signal.aborted) told('failure', cancelled(server))
      signal.throwIfAborted()
      throw hostRefusalError(told, error)
    } finally {
      leave?.()
    }
  }
}

/** The server's messages as a model request; its text is marked as quotation. */
function modelRequest({ messages, preferences }: InferenceRequest, most: number, server: string): ModelRequest {
  const system = messages.filter(({ role }) => role === 'system').flatMap(({ content }) => content)
  const rest = messages
    .filter(({ role }) => role !== 'system')
    .map(({ role, content }): ModelMessage => {
      if (role === 'assistant') return { role, content: assistantBlocks(content) }
      return { role: 'user', content: quoteFromServer('server-request', { server }, content) }
    })
  const { maxTokens, temperature } = preferences
  return {
    system: requestSystem(server, system),
    messages: rest,
    tools: [],
    maxTokens: Math.max(1, Math.min(maxTokens ?? most, most)),
    ...(temperature !== undefined && { temperature }),
  }
}

/** The reason where a server cancelled an inference. */
function cancelled(server: string): Why {
  return why('CANCELLED', 'inference', `${clip(server)} cancelled the inference`, 'No action is needed')
}

/** Without tools there is nobody to call, so `tool_use` ends the turn. */
function finishOf(reason: ModelFinish): FinishReason {
  return reason === 'tool_use' ? 'end_turn' : reason
}
