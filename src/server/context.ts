/** What a handler gets beside its arguments. One small object per call; its parts are made when touched. */
import { type Problem, type ProblemCode, type ProblemMore, problem } from '../core/problem.ts'
import type { InferOutput, Schema } from '../core/schema/index.ts'
import type { Courier } from '../engine/asking.ts'
import type { CallOptions } from '../engine/calls.ts'
import { type Exchange, release } from '../engine/exchange.ts'
import { ownerOf } from '../engine/owner.ts'
import type { ContentBlock } from '../features/mcp/content/messages.ts'
import {
  completeElicitation,
  type Elicited,
  elicitForm,
  elicitUrl,
  elicitYes,
  type FormQuestion,
  type UrlQuestion,
} from '../features/mcp/elicitation/server.ts'
import type { LogLevel } from '../features/mcp/logging/messages.ts'
import { sendLog } from '../features/mcp/logging/server.ts'
import type { Root } from '../features/mcp/roots/messages.ts'
import { askRoots } from '../features/mcp/roots/server.ts'
import type { SamplingParams, SamplingResult } from '../features/mcp/sampling/messages.ts'
import { type SampleOptions, sample } from '../features/mcp/sampling/server.ts'
import type { TaskWish } from '../features/mcp/tasks/messages.ts'
import { background, currentTask } from '../features/mcp/tasks/server.ts'
import type { ApprovedCalls } from '../features/reliability/confirmation/approvals.ts'
import type { CallCost } from '../features/reliability/cost/meter.ts'
import type { Imported, ImportOptions, ReferenceOptions } from '../features/reliability/data-references/server.ts'
import { idempotencyExtension } from '../features/reliability/idempotency/messages.ts'
import { intentIn } from '../features/reliability/intent/messages.ts'
import type { CallState } from '../features/reliability/session-state/server.ts'
import type { ProgressStep } from '../features/reliability/streaming/server.ts'
import type { Principal } from '../jsonrpc/connection.ts'
import type { Awaitable } from '../jsonrpc/message.ts'
import { type Capabilities, envelopeKeys, type Implementation, type RevisionId } from '../revisions/index.ts'
import type { Rates } from './rates.ts'
import { importReference, makeReference, type ReferenceSource } from './references.ts'
import type { Reliability } from './reliability.ts'

type CurrentTask = NonNullable<ReturnType<typeof currentTask>>

export type Log = (level: LogLevel, data: unknown, logger?: string) => void

type Used = Pick<Reliability, 'allow' | 'state' | 'cost' | 'streaming' | 'references'>

/** What a context is made of. */
export type ContextParts = readonly [exchange: Exchange, rates: Rates, reliable: Used]

/** The author's view of a call. */
export class Context {
  readonly #exchange: Exchange
  readonly #rates: Rates
  readonly #reliable: Used

  constructor(exchange: Exchange, rates: Rates, reliable: Used) {
    this.#exchange = exchange
    this.#rates = rates
    this.#reliable = reliable
  }

  /** What it was made of. */
  static parts(context: Context): ContextParts {
    return [context.#exchange, context.#rates, context.#reliable]
  }

  /** The key of whoever calls, for what is kept of his. */
  static async owner(context: Context): Promise<string> {
    return ownerOf(context.#exchange)
  }

  /** Aborted when the caller cancels or goes away. */
  get signal(): AbortSignal {
    return this.#exchange.signal
  }

  /** Who calls, where the carrier knows it. */
  get principal(): Principal | undefined {
    return this.#exchange.caller.principal
  }

  /** The wire of this call. */
  get revision(): RevisionId {
    return this.#exchange.peer.revision.id
  }

  /** What the caller says of itself. Never a ground for trust. */
  get client(): { readonly info: Implementation | undefined; readonly capabilities: Capabilities } {
    const { info, capabilities } = this.#exchange.peer
    return { info, capabilities }
  }

  /** The request's `_meta` without what belongs to the envelope; trace context is in it. */
  get meta(): Readonly<Record<string, unknown>> {
    return Object.fromEntries(Object.entries(this.#exchange.meta ?? {}).filter(([key]) => !envelopeKeys.has(key)))
  }

  /** The idempotency key of this call, if it has one: whoever does something elsewhere for it may pass it on, or write it down. */
  get idempotencyKey(): string | undefined {
    return this.#exchange.carried?.[idempotencyExtension]
  }

  /** Whether the caller declared a capability, by its path: `elicitation.url`, `sampling.tools`, `extensions.vendor/name`. */
  supports(path: string): boolean {
    const [head, rest] = splitPath(path)
    const found = property(this.#exchange.peer.capabilities, head)
    const value = rest === undefined ? found : property(found, rest)
    return value !== undefined && value !== false
  }

  /** Tells the caller how far the work has come, if it asked to know. */
  progress(progress: number, more: Omit<ProgressStep, 'progress'> = {}): void {
    this.#reliable.streaming.progress(this.#exchange, { progress, ...more }, () => this.#rates.progress(this.#exchange))
  }

  /** Sends a log message to the caller, if it wants to hear of that level. */
  get log(): Log {
    return (level, data, logger) => {
      sendLog(this.#exchange, level, data, logger, () => this.#rates.log(this.#exchange))
    }
  }

  /** Asks the user to fill in a form, or to visit a page. */
  elicit<S extends Schema>(question: FormQuestion<S>): Promise<Elicited<InferOutput<S>>>
  elicit(question: UrlQuestion): Promise<{ readonly action: 'accept' | 'decline' | 'cancel'; readonly elicitationId: string }>
  elicit(question: FormQuestion | UrlQuestion): Promise<unknown> {
    const by = courier(question.task)
    return held<unknown>('url' in question ? elicitUrl(this.#exchange, question, by) : elicitForm(this.#exchange, question, by))
  }

  /** Tells the client that the page of a URL question has done its work. */
  elicitationDone(elicitationId: string): void {
    completeElicitation(this.#exchange, elicitationId)
  }

  /** Asks the user yes or no, by a form with one required box: only a ticked box is a yes. */
  confirm(message: string, options: CallOptions & { key?: string; task?: TaskWish } = {}): Promise<boolean> {
    return held(elicitYes(this.#exchange, { message, ...options }, courier(options.task)))
  }

  /**
   * The user has agreed to many calls of a tool at once: for them its `confirm` does not ask again. Each is counted.
   * @example if (await ctx.confirm('Delete 3 tickets?')) await ctx.allowCalls('delete_ticket', { calls: ids.map(id => ({ id })) })
   */
  allowCalls(tool: string, approved: ApprovedCalls): Promise<void> {
    return this.#reliable.allow(this.#exchange, tool, approved)
  }

  /** Asks the client's model. */
  sample(params: SamplingParams, options: SampleOptions = {}): Promise<SamplingResult> {
    return held(sample(this.#exchange, params, options, courier(options.task)))
  }

  /** Asks which folders the client works in. */
  roots(options?: CallOptions & { key?: string }): Promise<readonly Root[]> {
    return held(askRoots(this.#exchange, options))
  }

  /** Does something at most once per call, however often the handler is entered for it: the result must be JSON. */
  once<T>(key: string, fn: () => Awaitable<T>): Promise<T> {
    return this.#exchange.once(key, fn)
  }

  /** What lasts from call to call of one conversation, on any replica. Written when the call has succeeded. */
  get state(): CallState {
    return this.#reliable.state.of(this.#exchange)
  }

  /** What this call costs: what was expected, what may be spent, and what was. Of tools with a `cost`. */
  get cost(): CallCost {
    return this.#reliable.cost(this.#exchange)
  }

  /** What the caller says the call is for. Somebody else's words: they describe, and permit nothing. */
  get intent(): string | undefined {
    return intentIn(this.#exchange.meta)
  }

  /**
   * Keeps a content, and gives the block that refers to it: what it holds travels by its signed address, not through the model.
   * Callers that know no references get small contents whole, and larger ones as a resource to be read.
   * @example return ctx.reference({ file: path }, { mime: 'text/csv', name: 'sales.csv' })
   */
  reference(source: ReferenceSource, options: ReferenceOptions = {}): Promise<ContentBlock> {
    return makeReference(this.#reliable.references, this.#exchange, source, options)
  }

  /**
   * Fetches what another server has given by reference, from the origins in `references.from` alone. All of it is here and was
   * checked, its size and its digest, before it can be read.
   * @example await using data = await ctx.importReference(reference); for await (const chunk of await data.open()) …
   */
  importReference(reference: unknown, options: ImportOptions = {}): Promise<Imported> {
    return importReference(this.#reliable.references, this.#exchange, reference, options)
  }

  /** The task that this call has become, where it has. */
  get task(): CurrentTask | undefined {
    return currentTask(this.#exchange)
  }

  /** From here on the call is a task, where its tool defers that: what is asked before travels with the call itself. False where it cannot be one. */
  background(): Promise<boolean> {
    return background(this.#exchange)
  }

  /** Lets the caller's connection go while the work goes on; it comes back for the answer. False where the wire has no such thing. */
  release(retryMs = 1000): boolean {
    return release(this.#exchange, retryMs)
  }

  /** A refusal with a category and a way out: `throw ctx.problem(…)`. */
  problem(code: ProblemCode, message: string, more?: ProblemMore): Problem {
    return problem(code, message, more)
  }
}

/** Loaded when first wished for: most servers never ask so. */
function courier(wish: TaskWish | undefined): Courier | undefined {
  if (wish === undefined || wish === false) return undefined
  return async (exchange, method, params, options) => {
    const { askThroughTask } = await import('../features/mcp/tasks/requestor.ts')
    return askThroughTask(exchange, method, params, options, wish)
  }
}

/** A question that its handler never awaits must not end the process when it is put off, or its client goes away. */
function held<T>(question: Promise<T>): Promise<T> {
  question.catch(() => undefined)
  return question
}

/** Extension names hold dots themselves, so only the first one divides. */
function splitPath(path: string): [string, string | undefined] {
  const at = path.indexOf('.')
  return at === -1 ? [path, undefined] : [path.slice(0, at), path.slice(at + 1)]
}

function property(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null && Object.hasOwn(value, name)
    ? (value as Record<string, unknown>)[name]
    : undefined
}
