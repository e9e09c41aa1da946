/**
 * What an author's handler gets beside its arguments: one small object per call, whose parts are made when touched. There is one class
 * for a whole process; features add their members to its prototype once, when they are loaded, so a call pays nothing for them.
 */
import { type Problem, type ProblemCode, type ProblemMore, problem } from '../core/problem.ts'
import type { Principal } from '../jsonrpc/connection.ts'
import type { Awaitable } from '../jsonrpc/message.ts'
import { type Capabilities, envelopeKeys, type Implementation, type RevisionId } from '../revisions/index.ts'
import { type Exchange, release } from './exchange.ts'

/** What every handler gets as its second argument. */
export class CallContext {
  readonly #exchange: Exchange

  constructor(exchange: Exchange) {
    this.#exchange = exchange
  }

  /** The request that a context is about: for features and rooms above, not for authors. */
  static exchangeOf(context: CallContext): Exchange {
    return context.#exchange
  }

  /** Aborted when the caller cancels the request or disconnects. Pass it on to slow work. */
  get signal(): AbortSignal {
    return this.#exchange.signal
  }

  /** The authenticated caller: user, client and scopes of the token. Undefined without authorization. */
  get principal(): Principal | undefined {
    return this.#exchange.caller.principal
  }

  /** The protocol revision of this request. */
  get revision(): RevisionId {
    return this.#exchange.peer.revision.id
  }

  /** What the client states about itself. Do not base trust on it. */
  get client(): {
    /** Name and version of the client, if it states them. */
    readonly info: Implementation | undefined
    /** The capabilities that the client declares. */
    readonly capabilities: Capabilities
  } {
    const { info, capabilities } = this.#exchange.peer
    return { info, capabilities }
  }

  /** The `_meta` of the request, without protocol members. Trace context is in it. */
  get meta(): Readonly<Record<string, unknown>> {
    return Object.fromEntries(Object.entries(this.#exchange.meta ?? {}).filter(([key]) => !envelopeKeys.has(key)))
  }

  /** Whether the client declared a capability, by its path: `elicitation.url`, `sampling.tools`, `extensions.vendor/name`. */
  supports(path: string): boolean {
    const [head, rest] = splitPath(path)
    const found = property(this.#exchange.peer.capabilities, head)
    const value = rest === undefined ? found : property(found, rest)
    return value !== undefined && value !== false
  }

  /**
   * Runs `fn` at most once per call, even if the handler runs again with the user's answers, and returns its result, which must
   * be JSON.
   * @example const id = await ctx.once('create', () => crypto.randomUUID())
   */
  once<T>(key: string, fn: () => Awaitable<T>): Promise<T> {
    return this.#exchange.once(key, fn)
  }

  /**
   * Releases the connection of the caller while the work continues; the client reconnects for the answer after `retryMs` (default
   * 1,000). False if the revision or carrier does not support it.
   */
  release(retryMs = 1000): boolean {
    return release(this.#exchange, retryMs)
  }

  /**
   * Creates a problem to throw. The caller gets code, message and suggestion.
   * @example throw ctx.problem('INVALID_INPUT', 'There is no ticket T-9', { suggestion: 'List the tickets first' })
   */
  problem(code: ProblemCode, message: string, more?: ProblemMore): Problem {
    return problem(code, message, more)
  }
}

/** The request that a context is about. */
export const { exchangeOf } = CallContext

/** Adds the members of a feature to every context. */
export function addToContext(members: object): void {
  Object.defineProperties(CallContext.prototype, Object.getOwnPropertyDescriptors(members))
}

/** A question that its handler never awaits must not end the process when it is put off, or its client goes away. */
export function ignoreUnhandledRejection<T>(question: Promise<T>): Promise<T> {
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
