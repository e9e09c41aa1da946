/** Calls whose callers are away with questions: kept until they come back, and given up when they do not. */
import type { Clock } from '../../core/clock.ts'
import { Problem, type ProblemCode, type ProblemMore, problem } from '../../core/problem.ts'
import type { Exchange } from '../../engine/exchange.ts'
import { ConnectionError } from '../../jsonrpc/connection.ts'
import { McpError } from '../../jsonrpc/error.ts'
import type { Awaitable } from '../../jsonrpc/message.ts'
import type { Context } from '../../server/context.ts'
import { SlotShares, sharerOf } from '../shares.ts'
import type { SharedParkedCalls } from './shared-parked-calls.ts'
import type { CallParking, EndedCall, UpstreamCall } from './upstream-call.ts'

/** How long the outcome of a call that was parked is kept for a caller whose connection broke over it. */
const keptMs = 60_000
const mostParked = 10_000

interface ParkedCallsOptions {
  readonly clock: Clock
  /** How long a caller may take over its answers. */
  readonly askMs: number
  /** Where callers may come back to another process. */
  readonly shared?: SharedParkedCalls | undefined
}

export class ParkedCalls implements CallParking {
  readonly #options: ParkedCallsOptions
  readonly #upstreamCalls = new Map<string, UpstreamCall>()
  readonly #ends = new Map<string, () => void>()
  readonly #places = new SlotShares(mostParked)

  constructor(options: ParkedCallsOptions) {
    this.#options = options
    options.shared?.answered(({ upstreamCall, key, said }) => {
      const question = this.#upstreamCalls.get(upstreamCall)?.open.get(key)
      try {
        question?.resolve(readWrittenOutcome(said))
      } catch (error) {
        question?.reject(error)
      }
    })
  }

  name(): string {
    return this.#options.shared?.name() ?? crypto.randomUUID()
  }

  /** The caller is back with its answers, here or at another process than the one that made the call. */
  rejoin(name: string, ctx: Context): Promise<unknown> {
    const upstreamCall = this.#upstreamCalls.get(name)
    if (upstreamCall !== undefined) return upstreamCall.join(ctx)
    const { shared } = this.#options
    return shared === undefined ? Promise.reject(lost()) : shared.join(name, ctx)
  }

  park(upstreamCall: UpstreamCall): Awaitable<void> {
    const { name } = upstreamCall
    if (name === undefined) return
    if (!this.#upstreamCalls.has(name)) {
      if (!this.#places.take(sharerOf(upstreamCall.first.caller))) return this.#refuse(upstreamCall)
      this.#upstreamCalls.set(name, upstreamCall)
    }
    this.#within(name, this.#options.askMs, () => upstreamCall.stop('The caller did not come back with its answers'))
    return this.#options.shared?.save(upstreamCall, this.#options.askMs)
  }

  /** It is given up, and its caller hears why instead of what it is asked. */
  #refuse(upstreamCall: UpstreamCall): Promise<void> {
    const held = this.#places.of(sharerOf(upstreamCall.first.caller))
    const message = `${held} of your calls wait for your answers, which is your share: ${mostParked} may wait in all`
    upstreamCall.stop(message)
    return Promise.reject(problem('RATE_LIMIT_EXCEEDED', message, { retryAfter: 5_000, suggestion: 'Answer some of them first' }))
  }

  joined({ name = '' }: UpstreamCall): void {
    this.#ends.get(name)?.()
    this.#ends.delete(name)
  }

  changed(upstreamCall: UpstreamCall): void {
    const { name } = upstreamCall
    if (name === undefined || !this.#upstreamCalls.has(name)) return
    this.#options.shared?.save(upstreamCall, upstreamCall.ended === undefined ? this.#options.askMs : keptMs).catch(() => {})
    if (upstreamCall.ended !== undefined) this.#within(name, keptMs, () => {})
  }

  ended({ name }: UpstreamCall): void {
    if (name === undefined || !this.#upstreamCalls.has(name)) return
    this.#within(name, keptMs, () => {})
    this.#options.shared?.drop(name).catch(() => {})
  }

  /** Their callers may not go on with them: what their upstreams asked is never answered. */
  withdraw(isOver: (first: Exchange) => boolean): void {
    for (const [name, upstreamCall] of this.#upstreamCalls) {
      if (!isOver(upstreamCall.first)) continue
      this.#ends.get(name)?.()
      this.#ends.delete(name)
      this.#upstreamCalls.delete(name)
      this.#places.leave(sharerOf(upstreamCall.first.caller))
      upstreamCall.stop('The caller may not make this call any more')
      this.#options.shared?.drop(name).catch(() => {})
    }
  }

  async close(): Promise<void> {
    for (const cancel of this.#ends.values()) cancel()
    for (const upstreamCall of this.#upstreamCalls.values()) upstreamCall.stop('The gateway is closed')
    this.#upstreamCalls.clear()
    await this.#options.shared?.close()
  }

  #within(name: string, ms: number, then: () => void): void {
    this.#ends.get(name)?.()
    const over = (): void => {
      this.#ends.delete(name)
      const upstreamCall = this.#upstreamCalls.get(name)
      if (upstreamCall !== undefined) this.#places.leave(sharerOf(upstreamCall.first.caller))
      this.#upstreamCalls.delete(name)
      then()
    }
    this.#ends.set(name, this.#options.clock.setTimeout(over, ms, true))
  }
}

/** What was parked is gone: with its process, or because nobody came for so long. */
export function lost(): Error {
  return problem('OUTCOME_UNKNOWN', 'The call that this answers is no longer waited for; what came of it is not known', {
    suggestion: 'Look whether it was done before you call again',
  })
}

// What came of a call, as text for another process, and back.

export type WrittenOutcome =
  | { readonly result: unknown }
  | { readonly mcp: { readonly kind: string; readonly message: string; readonly code?: number; readonly data?: unknown } }
  | { readonly connection: { readonly kind: ConnectionError['kind']; readonly message: string } }
  | { readonly problem: { readonly code: ProblemCode; readonly message: string; readonly more: ProblemMore } }
  | { readonly failed: string }

export function written(ended: EndedCall): WrittenOutcome {
  if ('result' in ended) return { result: ended.result }
  const { error } = ended
  if (error instanceof McpError) {
    const { kind, message, code, data } = error
    return { mcp: { kind, message, ...(code !== undefined && { code }), ...(data !== undefined && { data }) } }
  }
  if (error instanceof ConnectionError) return { connection: { kind: error.kind, message: error.message } }
  if (error instanceof Problem) {
    const { code, message, category, retryAfter, suggestion, actor, details } = error
    return { problem: { code, message, more: { category, retryAfter, suggestion, actor, details } } }
  }
  return { failed: error instanceof Error ? error.message : String(error) }
}

/** Gives the result, or throws what was thrown. */
export function readWrittenOutcome(ended: WrittenOutcome): unknown {
  if ('result' in ended) return ended.result
  if ('mcp' in ended) {
    const { kind, message, ...more } = ended.mcp
    throw new McpError(kind, message, more)
  }
  if ('connection' in ended) throw new ConnectionError(ended.connection.kind, ended.connection.message)
  if ('problem' in ended) throw new Problem(ended.problem.code, ended.problem.message, ended.problem.more)
  throw new Error(ended.failed)
}
