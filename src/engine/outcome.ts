/** Results and failures → frames of one wire. The only place where kinds become numbers and statuses. */
import { Problem } from '../core/problem.ts'
import type { SendHints } from '../jsonrpc/connection.ts'
import { McpError } from '../jsonrpc/error.ts'
import type { ErrorBody, Id } from '../jsonrpc/message.ts'
import { failureFrame, successFrame } from '../jsonrpc/serialize.ts'
import type { CommonKind, Implementation, Revision } from '../revisions/index.ts'
import type { Plan, Route } from './plan.ts'

/** A result that is already JSON text of its wire, without the members that every result of the wire carries. */
export class Encoded {
  readonly text: string
  constructor(text: string) {
    this.text = text
  }
}

/** Encodes results. One per engine; what every result of a wire carries is prepared once. */
export class Outcome {
  readonly #plan: Plan
  readonly #prefixes: (string | undefined)[] = []
  readonly #metas: (Readonly<Record<string, unknown>> | undefined)[] = []

  constructor(plan: Plan, info: Implementation, revisions: readonly Revision[]) {
    this.#plan = plan
    for (const revision of revisions) {
      if (revision.era !== 'request') continue
      const meta = revision.resultMeta?.(info)
      this.#metas[revision.ordinal] = meta ?? {}
      this.#prefixes[revision.ordinal] = `{"resultType":"complete"${meta === undefined ? '' : `,"_meta":${JSON.stringify(meta)}`}`
    }
  }

  success(id: Id, route: Route, result: unknown): string {
    const { revision } = route
    const prefix = this.#prefixes[revision.ordinal]
    if (result instanceof Encoded) return successFrame(id, prefix === undefined ? result.text : splice(prefix, result.text))
    const value = (result ?? {}) as Readonly<Record<string, unknown>>
    const wire = route.resultDown === undefined ? value : route.resultDown(value)
    if (prefix === undefined) return successFrame(id, JSON.stringify(wire))
    if (wire['_meta'] === undefined && wire['resultType'] === undefined)
      return successFrame(id, splice(prefix, JSON.stringify(wire)))
    return successFrame(id, JSON.stringify(this.#stamped(wire, revision)))
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

/** Puts prepared first members into the text of an object. */
function splice(prefix: string, text: string): string {
  return text === '{}' ? `${prefix}}` : `${prefix},${text.slice(1)}`
}
