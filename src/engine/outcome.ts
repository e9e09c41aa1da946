/** Results and failures → frames of one wire. The only place where kinds become numbers and statuses. */
import { Problem } from '../core/problem.ts'
import type { SendHints } from '../jsonrpc/connection.ts'
import { McpError } from '../jsonrpc/error.ts'
import type { ErrorBody, Id } from '../jsonrpc/message.ts'
import { failureFrame, idText, successFrame } from '../jsonrpc/serialize.ts'
import type { CommonKind, Implementation, Revision } from '../revisions/index.ts'
import type { Plan, Route } from './plan.ts'

/** A result that is already JSON text of its wire, without the members that every result of the wire carries. */
export class Encoded {
  readonly text: string
  constructor(text: string) {
    this.text = text
  }
}

/** A result that can write itself faster than a general serialiser: the members of its JSON object and the closing brace. */
export abstract class Written {
  /** Undefined on a wire where it looks different. */
  abstract write(revision: Revision): string | undefined
}

/** Encodes results. One per engine; what every result of a wire carries is prepared once. */
export class Outcome {
  readonly #plan: Plan
  /** What stands between a request's id and the members of its result. */
  readonly #heads: string[] = []
  readonly #metas: (Readonly<Record<string, unknown>> | undefined)[] = []

  constructor(plan: Plan, info: Implementation, revisions: readonly Revision[]) {
    this.#plan = plan
    for (const revision of revisions) {
      if (revision.era === 'session') this.#heads[revision.ordinal] = ',"result":{'
      else {
        const meta = revision.resultMeta?.(info)
        const stamp = meta === undefined ? '' : `"_meta":${JSON.stringify(meta)},`
        this.#metas[revision.ordinal] = meta ?? {}
        this.#heads[revision.ordinal] = `,"result":{"resultType":"complete",${stamp}`
      }
    }
  }

  success(id: Id, route: Route, result: unknown): string {
    const { revision } = route
    const own = result instanceof Written ? result.write(revision) : undefined
    if (own !== undefined) return `{"jsonrpc":"2.0","id":${idText(id)}${this.#heads[revision.ordinal]}${own}}`
    if (result instanceof Encoded) return this.#frame(id, revision, result.text)
    const value = (result ?? {}) as Readonly<Record<string, unknown>>
    const wire = route.resultDown === undefined ? value : route.resultDown(value)
    if (revision.era === 'session') return successFrame(id, JSON.stringify(wire))
    if (wire['_meta'] === undefined && wire['resultType'] === undefined) return this.#frame(id, revision, JSON.stringify(wire))
    return successFrame(id, JSON.stringify(this.#stamped(wire, revision)))
  }

  /** Puts what every result of the wire carries before the members of an object's text. */
  #frame(id: Id, revision: Revision, text: string): string {
    if (revision.era === 'session') return successFrame(id, text)
    const head = this.#heads[revision.ordinal] as string
    if (text === '{}') return `{"jsonrpc":"2.0","id":${idText(id)}${head.slice(0, -1)}}}`
    return `{"jsonrpc":"2.0","id":${idText(id)}${head}${text.slice(1)}}`
  }

  #stamped(wire: Readonly<Record<string, unknown>>, revision: Revision): Record<string, unknown> {
    const meta = { ...this.#metas[revision.ordinal], ...(wire['_meta'] as object | undefined) }
    return { resultType: 'complete', ...wire, _meta: meta }
  }

  failure(id: Id | undefined, error: McpError, revision: Revision): string {
    const body: ErrorBody = {
      code: this.number(error, revision),
      message: error.message,
      ...(error.data === undefined ? {} : { data: error.data }),
    }
    return failureFrame(id ?? (revision.unknownId === 'omit' ? undefined : null), body)
  }

  number(error: McpError, revision: Revision): number {
    const own = this.#plan.errors.get(error.kind)
    if (own !== undefined) return own[revision.id] ?? own['default'] ?? -32603
    return revision.errors[error.kind as CommonKind] ?? error.code ?? -32603
  }

  status(error: McpError, revision: Revision): SendHints {
    const status = revision.http.status[error.kind as CommonKind]
    const wait = (error.data as { retryAfterMs?: number } | undefined)?.retryAfterMs
    if (status === undefined) return final
    if (status === 405) return { final: true, status, headers: { allow: 'POST' } }
    return status === 503
      ? { final: true, status, headers: { 'retry-after': `${Math.ceil((wait ?? 1000) / 1000)}` } }
      : { final: true, status }
  }
}

const final: SendHints = { final: true }

/** A refusal with a way out keeps its words; of anything else that is no protocol failure only that it failed is told. */
export function failureOf(thrown: unknown): McpError {
  if (!(thrown instanceof Problem)) return McpError.from(thrown)
  const { message, suggestion, category, retryAfter } = thrown
  const kind = category === 'invalid_input' ? 'invalid-params' : category === 'rate_limited' ? 'rate-limited' : 'internal'
  return new McpError(kind, suggestion === undefined ? message : `${message}. ${suggestion}`, {
    cause: thrown,
    ...(retryAfter === undefined ? {} : { data: { retryAfterMs: retryAfter } }),
  })
}
