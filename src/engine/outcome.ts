/** Results and failures → frames of one wire. The only place where kinds become numbers and statuses. */
import { Problem, problemText } from '../core/problem.ts'
import type { Caller, SendHints } from '../jsonrpc/connection.ts'
import { McpError } from '../jsonrpc/error.ts'
import { clip } from '../jsonrpc/limits.ts'
import { type ErrorBody, failureFrame, type Id, idText, isRecord, successFrame } from '../jsonrpc/message.ts'
import type { CommonKind, Implementation, Revision } from '../revisions/index.ts'
import type { Plan, Route } from './plan.ts'

/** A result that keeps its JSON text of its wire, without the members that every result of the wire carries. Written once, when asked for. */
export class EncodedResult {
  readonly #write: () => string
  #text: string | undefined = undefined

  constructor(write: () => string) {
    this.#write = write
  }

  get text(): string {
    this.#text ??= this.#write()
    return this.#text
  }
}

/** A result that can write itself faster than a general serialiser: the members of its JSON object and the closing brace. */
export abstract class SelfWritingResult {
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
    const own = result instanceof SelfWritingResult ? result.write(revision) : undefined
    if (own !== undefined) return `{"jsonrpc":"2.0","id":${idText(id)}${this.#heads[revision.ordinal]}${own}}`
    if (result instanceof EncodedResult) return this.#frame(id, revision, result.text)
    const value = (result ?? {}) as Readonly<Record<string, unknown>>
    // Whatever comes of it here would be no message there.
    if (!isRecord(value))
      throw new TypeError(`A result must be an object, not ${Array.isArray(value) ? 'an array' : typeof value}`)
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
    const own = this.#metas[revision.ordinal]
    const said = wire['_meta'] as object | undefined
    // The draft names the server elsewhere: there is nothing to add to.
    if (said === undefined && (own === undefined || Object.keys(own).length === 0)) return { resultType: 'complete', ...wire }
    return { resultType: 'complete', ...wire, _meta: { ...said, ...own } }
  }

  failure(id: Id | undefined, error: McpError, revision: Revision): string {
    const body: ErrorBody = { code: this.number(error, revision), message: error.message }
    const under = id ?? (revision.unknownId === 'omit' ? undefined : null)
    if (error.data === undefined) return failureFrame(under, body)
    try {
      return failureFrame(under, { ...body, data: error.data })
    } catch {
      // An author's data that JSON cannot hold must not keep the failure itself from being told.
      return failureFrame(under, body)
    }
  }

  number(error: McpError, revision: Revision): number {
    const own = this.#plan.errors.get(error.kind)
    if (own !== undefined) return own[revision.id] ?? own['default'] ?? -32603
    return revision.errors[error.kind as CommonKind] ?? error.code ?? -32603
  }

  /** `caller`: who is refused, where a refusal may ask for more. */
  status(error: McpError, revision: Revision, caller?: Caller): SendHints {
    const status = revision.http.status[error.kind as CommonKind]
    const wait = (error.data as { retryAfterMs?: number } | undefined)?.retryAfterMs
    if (status === undefined) return final
    if (status === 403) return { final: true, status, ...challenge(error, caller) }
    if (status === 405) return { final: true, status, headers: { allow: 'POST' } }
    return status === 503 || status === 429
      ? { final: true, status, headers: { 'retry-after': `${Math.ceil((wait ?? 1000) / 1000)}` } }
      : { final: true, status }
  }
}

const final: SendHints = { final: true }

/** On carriers that have it, the way to get what was missing. */
function challenge({ data }: McpError, caller: Caller | undefined): Pick<SendHints, 'headers'> {
  const scopes = isRecord(data) ? data['scopes'] : undefined
  const headers = Array.isArray(scopes) ? caller?.challenge?.(scopes) : undefined
  return headers === undefined ? {} : { headers }
}

/** A refusal is none of our own mistakes: those alone are internal. */
function kindOf({ category, code }: Problem): CommonKind {
  if (category === 'invalid_input') return 'invalid-params'
  if (category === 'rate_limited') return 'rate-limited'
  return code === 'PERMISSION_DENIED' ? 'forbidden' : 'internal'
}

/** A refusal with a way out keeps its words; of anything else that is no protocol failure only that it failed is told. */
export function failureOf(thrown: unknown): McpError {
  // Number, data and length of what another peer said are not ours to repeat.
  if (thrown instanceof McpError && thrown.kind === 'remote') {
    return new McpError('internal', `A request to another peer, made while handling this one, failed: ${clip(thrown.message)}`, {
      cause: thrown,
    })
  }
  if (!(thrown instanceof Problem)) return McpError.from(thrown)
  const { retryAfter } = thrown
  return new McpError(kindOf(thrown), problemText(thrown), {
    cause: thrown,
    ...(retryAfter === undefined ? {} : { data: { retryAfterMs: retryAfter } }),
  })
}

/** A result that JSON has no form for, which is a mistake of whoever made it. */
export function unwritable(cause: unknown): McpError {
  const why = cause instanceof Error ? clip(cause.message.split('\n', 1)[0] ?? '') : ''
  return new McpError('internal', `The result cannot be serialised as JSON: ${why}`, { cause })
}
