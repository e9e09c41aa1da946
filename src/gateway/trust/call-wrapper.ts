/**
 * Middleware around every upstream tool call: audits it, attributes failures to the upstream, and stamps results with their source. Also
 * writes audit lines for calls that never reach an upstream.
 */
import type { Clock } from '../../core/clock.ts'
import { digest } from '../../core/digest.ts'
import { Problem, type ProblemCode, problem } from '../../core/problem.ts'
import { exchangeOf } from '../../engine/context.ts'
import type { Exchange } from '../../engine/exchange.ts'
import { declaredSettings } from '../../engine/extensions.ts'
import type { Layer } from '../../engine/stages.ts'
import { type CallToolResult, callTool, failureProblem } from '../../features/mcp/tools/messages.ts'
import { isCount, operationalExtension } from '../../features/reliability/cost/messages.ts'
import { idempotencyExtension } from '../../features/reliability/idempotency/messages.ts'
import { fromWire, problemExtension, toWire } from '../../features/reliability/problem/messages.ts'
import { provenanceExtension } from '../../features/reliability/provenance/messages.ts'
import { stampResult } from '../../features/reliability/provenance/stamp.ts'
import type { Principal } from '../../jsonrpc/connection.ts'
import { McpError } from '../../jsonrpc/error.ts'
import { clip } from '../../jsonrpc/limits.ts'
import { isRecord, type Params } from '../../jsonrpc/message.ts'
import { Denials } from '../../policy/audit/denials.ts'
import { type GatewayAuditLog, type GatewayNote, subjectOf } from '../../policy/audit/gateway-audit.ts'
import type { ToolPolicy } from '../../policy/rules/call-policy.ts'
import type { Context } from '../../server/api.ts'
import { cleaned } from '../bridge/returns.ts'
import type { Clients } from './clients.ts'

interface Parts {
  /** The name that the gateway gives itself. */
  readonly name: string
  readonly clock: Clock
  readonly notes: GatewayAuditLog
  /** Whether results get a provenance stamp. */
  readonly provenance: boolean
  readonly clients: Clients
  /** The policies of the offered tools, by exposed name. */
  readonly tools: ReadonlyMap<string, ToolPolicy>
  /** Exposed names of tools whose upstream reports what a call cost. */
  readonly reporting: ReadonlySet<string>
}

/** Refusals of one kind per minute that get a line each; the rest share one. */
const each = 10

/** Audits, explains and stamps every upstream call; also audits the calls that no upstream receives. */
export class CallWrapper {
  readonly #parts: Parts
  readonly #refused: Denials<GatewayNote>
  /** Failed calls that already have an audit line. */
  readonly #noted = new WeakSet<object>()

  constructor(parts: Parts) {
    this.#parts = parts
    const { clock, notes } = parts
    const note = (said: GatewayNote, times: number): void => notes.note(times === 1 ? said : { ...said, times })
    this.#refused = new Denials({ clock, most: 1_000, each, note })
  }

  /** Middleware around one upstream call. */
  wrap(call: GatewayCall, next: () => Promise<CallToolResult>): Promise<CallToolResult> {
    const { clock, notes, clients, reporting } = this.#parts
    const { upstream, tool } = call
    // The tool may be taken away while its call waits.
    const reports = reporting.has(call.exposed)
    const began = clock.now()
    const exchange = exchangeOf(call.ctx)
    const note = (outcome: 'success' | 'failure', code?: string): void => {
      const client = clients.nameOf(exchange.caller)
      notes.note({ client, upstream, tool, outcome, ms: clock.now() - began, code, exchange })
    }
    const run = (): Promise<CallToolResult> =>
      next().then(
        result => {
          note(result.isError === true ? 'failure' : 'success')
          if (reports) charge(call, result)
          return this.#finished(call, exchange, result)
        },
        error => {
          // The client has left with a question and continues the call later; the end is audited then.
          if (exchange.asking?.pending === true) throw error
          const told = categorised(call, error)
          note('failure', codeOf(told))
          this.#noted.add(exchange)
          throw told
        },
      )
    // `must`: the start has to be in the audit log before the call is made.
    if (!notes.must || call.again) return run()
    return notes.begun({ client: clients.nameOf(exchange.caller), upstream, tool, exchange }).then(run)
  }

  /** Adapts a result; most results pass unchanged. */
  #finished(call: GatewayCall, exchange: Exchange, result: CallToolResult): CallToolResult | Promise<CallToolResult> {
    const { name, provenance } = this.#parts
    const { peer } = exchange
    const own = cleaned(result, name)
    const plain = result.isError === true && declaredSettings(peer, problemExtension) !== undefined ? explained(call, own) : own
    return provenance && declaredSettings(peer, provenanceExtension) !== undefined ? this.#sourced(call, exchange, plain) : plain
  }

  /** Adds the source of a result, after the sources that the upstream states itself. */
  async #sourced({ upstream, tool, exposed, args }: GatewayCall, { correlation }: Exchange, result: CallToolResult) {
    const { name, clock } = this.#parts
    const own = {
      source: `${upstream}:${tool}`,
      retrieved_at: new Date(clock.now()).toISOString(),
      stamp: { server: name, tool: exposed, operation_id: correlation, input_digest: `sha256:${await digest(args)}` },
    }
    return Array.isArray(result.content) ? stampResult(result, own).result : result
  }

  // Audit lines for calls that no upstream received: refused, or answered by an earlier outcome; and for reads that a rule refuses.
  // Frequent refusals are counted instead of written one by one.

  /** Called with every failed request; writes the refusal where no line exists yet. */
  failed(exchange: Exchange, error: unknown): void {
    if (exchange.route.method.name !== callTool.name) return this.#failedRead(exchange, error)
    if (this.#noted.has(exchange)) return
    const rule = error instanceof Problem ? error.details?.['rule'] : undefined
    this.#note(exchange, { outcome: 'refused', code: codeOf(error), ...(typeof rule === 'string' && { rule }) })
  }

  /** Audits calls that are answered without their upstream and without a failure. Only calls with rules or an idempotency key can be. */
  get layer(): Layer {
    const concerns = ({ params }: Exchange): boolean => (this.#parts.tools.get(params['name'] as string)?.rules.length ?? 0) > 0
    return {
      stage: 'enter',
      methods: [callTool.name],
      marked: true,
      concerns,
      when: exchange => concerns(exchange) || (exchange.meta !== undefined && Object.hasOwn(exchange.meta, idempotencyExtension)),
      run: async (exchange, next) => {
        const result = await next()
        // A call that reached its upstream has a line already.
        if (exchange.begun || exchange.asking?.pending === true || !isRecord(result)) return result
        // A task gets its line when it ends.
        if (!Array.isArray(result['content'])) return result
        const why = (result as { readonly [failureProblem]?: Problem })[failureProblem]
        this.#note(exchange, why === undefined ? { outcome: 'replayed' } : { outcome: 'refused', code: why.code })
        return result
      },
    }
  }

  /** Writes the counts of refusals that are not written yet. */
  flush(): void {
    this.#refused.flush()
  }

  /** Writes a line for a call that did not reach its upstream. */
  #note(exchange: Exchange, said: Pick<GatewayNote, 'outcome' | 'code' | 'rule'>): void {
    const { clients, notes, tools } = this.#parts
    this.#noted.add(exchange)
    const name = String(exchange.params['name'])
    const { upstream, tool } = tools.get(name) ?? { upstream: '', tool: clip(name) }
    const client = clients.nameOf(exchange.caller)
    if (said.outcome !== 'refused') return notes.note({ client, upstream, tool, exchange, ...said })
    this.#refuse(exchange, { client, upstream, tool, ...said })
  }

  /** Of other requests, only refusals by rule are audited. */
  #failedRead(exchange: Exchange, error: unknown): void {
    if (!(error instanceof Problem) || error.code !== 'PERMISSION_DENIED') return
    const { rule, upstream, tool } = error.details ?? {}
    if (typeof rule !== 'string' || typeof upstream !== 'string' || typeof tool !== 'string') return
    const method = exchange.route.method.name
    const client = this.#parts.clients.nameOf(exchange.caller)
    this.#refuse(exchange, { client, upstream, tool: clip(tool, 200), outcome: 'refused', code: error.code, rule, method })
  }

  /** Writes a refusal, grouped by kind. */
  #refuse(exchange: Exchange, summary: GatewayNote): void {
    const { caller, route } = exchange
    const subject = subjectOf(caller)
    // Names invented by clients do not count as kinds: their number is unbounded.
    const named = summary.method === undefined && summary.upstream !== '' ? summary.tool : ''
    const kind = JSON.stringify([
      summary.client,
      caller.principal?.id,
      summary.method,
      summary.upstream,
      named,
      summary.code,
      summary.rule,
    ])
    const others: GatewayNote = { client: summary.client, upstream: '', tool: '', outcome: 'refused', code: 'OTHERS' }
    // The counted line omits the exchange, whose arguments may be large.
    const many = { ...summary, ...(subject !== undefined && { subject }) }
    this.#refused.add(kind, route.method.name === callTool.name ? { ...summary, exchange } : many, others, many)
  }
}

/** The most units that one result may report; protects budgets from absurd numbers. */
const mostUnits = 1e9

/** Charges the cost that the upstream reports instead of the estimate. */
function charge({ ctx }: GatewayCall, { _meta }: CallToolResult): void {
  const told = isRecord(_meta) ? _meta[operationalExtension] : undefined
  const units = isRecord(told) ? told['units_used'] : undefined
  if (isCount(units)) ctx.cost.add(Math.min(units, mostUnits))
}

/** The code of a failure for the audit log. */
function codeOf(error: unknown): string {
  if (error instanceof Problem) return error.code
  return error instanceof McpError ? error.kind : 'SERVER_ERROR'
}

// The call as the middleware sees it.

/** A tool call on its way to an upstream. */
export interface GatewayCall {
  /** The name of the upstream. */
  readonly upstream: string
  /** The tool's name at the upstream. */
  readonly tool: string
  /** The name that clients see. */
  readonly exposed: string
  /** The arguments of the call. */
  readonly args: Params
  /** The context of the call, as tool handlers get it. */
  readonly ctx: Context
  /** Who calls. */
  readonly client: {
    /** The name of the client in the settings. */
    readonly name?: string | undefined
    /** The principal of its token, if it has one. */
    readonly principal?: Principal | undefined
  }
  /** The client continues a call with its answers. Work that is done once per call (payment, audit) was done at its start. */
  readonly again: boolean
}

// Failures of upstreams, made machine-readable: a code, a category, and the upstream's name.

type CalledTool = Pick<GatewayCall, 'upstream' | 'tool'>

/** Problem codes for JSON-RPC error codes and HTTP statuses. */
const byNumber: ReadonlyMap<number, ProblemCode> = new Map<number, ProblemCode>([
  [-32700, 'INVALID_INPUT'],
  [-32600, 'INVALID_INPUT'],
  [-32602, 'INVALID_INPUT'],
  [-32601, 'UNSUPPORTED'],
  [-32002, 'RESOURCE_NOT_FOUND'],
  [-32029, 'RATE_LIMIT_EXCEEDED'],
  [429, 'RATE_LIMIT_EXCEEDED'],
])

/** An upstream's error with a problem as its cause: the one that it sent, otherwise one derived from its code. */
function categorised({ upstream, tool }: CalledTool, thrown: unknown): unknown {
  if (!(thrown instanceof McpError) || thrown.code === undefined || thrown.cause instanceof Problem) return thrown
  const { kind, message, code, data } = thrown
  const told = isRecord(data) ? fromWire(attributed({ upstream, tool }, data[problemExtension] ?? data)) : undefined
  const cause =
    told ?? problem(byNumber.get(code) ?? 'SERVER_ERROR', message, { details: { upstream, tool, code }, cause: thrown })
  return new McpError(kind, message, { code, cause, ...(data !== undefined && { data }) })
}

/** Adds the upstream and tool to a problem, so that it is not mistaken for one of the gateway. */
function attributed({ upstream, tool }: CalledTool, said: unknown): unknown {
  if (!isRecord(said)) return said
  return { ...said, details: { ...(isRecord(said['details']) && said['details']), upstream, tool } }
}

/** Adds a problem to a result with `isError`, so that programs can read it too. */
function explained({ upstream, tool }: CalledTool, result: CallToolResult): CallToolResult {
  const said = isRecord(result._meta) ? result._meta[problemExtension] : undefined
  if (isRecord(said)) return { ...result, _meta: { ...result._meta, [problemExtension]: attributed({ upstream, tool }, said) } }
  const text = result.content?.find(block => block.type === 'text')
  const words = text?.type === 'text' ? clip(text.text, 500) : `${clip(tool)} failed`
  const told = problem('TOOL_FAILED', words, { category: 'permanent', details: { upstream, tool } })
  return { ...result, _meta: { ...result._meta, [problemExtension]: toWire(told) } }
}
