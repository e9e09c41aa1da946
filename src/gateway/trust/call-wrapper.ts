/** What stands around every call that goes to an upstream: its failures explained, its result sourced, its end written down. */
import type { Clock } from '../../core/clock.ts'
import { digest } from '../../core/digest.ts'
import { Problem, type ProblemCode, problem } from '../../core/problem.ts'
import { exchangeOf } from '../../engine/context.ts'
import type { Exchange } from '../../engine/exchange.ts'
import { declared } from '../../engine/extensions.ts'
import type { Layer } from '../../engine/stages.ts'
import { because, type CallToolResult, callTool } from '../../features/mcp/tools/messages.ts'
import { isCount, operationalExtension } from '../../features/reliability/cost/messages.ts'
import { idempotencyExtension } from '../../features/reliability/idempotency/messages.ts'
import { fromWire, problemExtension, toWire } from '../../features/reliability/problem/messages.ts'
import { provenanceExtension } from '../../features/reliability/provenance/messages.ts'
import { stampResult } from '../../features/reliability/provenance/stamp.ts'
import type { Principal } from '../../jsonrpc/connection.ts'
import { McpError } from '../../jsonrpc/error.ts'
import { clip } from '../../jsonrpc/limits.ts'
import { isRecord, type Params } from '../../jsonrpc/message.ts'
import { type GatewayNote, type Notes, subjectOf } from '../../policy/audit/call-notes.ts'
import { Denials } from '../../policy/audit/denials.ts'
import type { ToolPolicy } from '../../policy/rules/call-policy.ts'
import type { Context } from '../../server/api.ts'
import { cleaned } from '../bridge/returns.ts'
import type { Clients } from './clients.ts'

/** What is known of a tool that is offered. */
export interface KnownTool extends CalledTool {
  /** What a call costs is said by its server. */
  readonly reports: boolean
}

interface CallWrapperParts {
  /** The gateway, as it names itself. */
  readonly name: string
  readonly clock: Clock
  readonly clients: Clients
  readonly notes: Notes
  readonly provenance: boolean
  /** Calls that failed and of which a line is written. */
  readonly noted: WeakSet<object>
  tool(exposed: string): KnownTool | undefined
}

/** Middleware around one upstream call. */
export type CallWrapper = (call: GatewayCall, next: () => Promise<UpstreamResult>) => Promise<UpstreamResult>

/** Creates the middleware that audits, explains and stamps every upstream call. */
export function callWrapper(parts: CallWrapperParts): CallWrapper {
  const { clock, notes, clients } = parts
  return (call, next) => {
    const began = clock.now()
    const exchange = exchangeOf(call.ctx)
    const known: KnownTool = parts.tool(call.exposed) ?? {
      upstream: call.upstream,
      tool: call.tool,
      reports: false,
    }
    const note = (outcome: 'success' | 'failure', code?: string): void =>
      notes.note({
        client: clients.nameOf(exchange.caller),
        upstream: known.upstream,
        tool: known.tool,
        outcome,
        ms: clock.now() - began,
        code,
        exchange,
      })
    const run = (): Promise<UpstreamResult> =>
      next().then(
        result => {
          note(result.isError === true ? 'failure' : 'success')
          return finished(parts, known, call, exchange, result)
        },
        error => {
          // It goes on when its caller comes back with an answer.
          if (exchange.asking?.pending === true) throw error
          const told = categorised(known, error)
          note('failure', codeOf(told))
          parts.noted.add(exchange)
          throw told
        },
      )
    return notes.must && !call.again ? begun(parts, known, exchange).then(run) : run()
  }
}

/** Writes that the call begins, before it is made. */
function begun({ notes, clients }: CallWrapperParts, { upstream, tool }: KnownTool, exchange: Exchange): Promise<void> {
  return notes.begun({ client: clients.nameOf(exchange.caller), upstream, tool, exchange })
}

/** Most results go on as they came. */
function finished(
  parts: CallWrapperParts,
  known: KnownTool,
  call: GatewayCall,
  exchange: Exchange,
  result: UpstreamResult,
): UpstreamResult | Promise<UpstreamResult> {
  const { peer } = exchange
  if (known.reports) charge(call, result)
  const own = cleaned(result, parts.name)
  const plain = result.isError === true && declared(peer, problemExtension) !== undefined ? explained(known, own) : own
  return parts.provenance && declared(peer, provenanceExtension) !== undefined ? sourced(parts, call, exchange, plain) : plain
}

/** More than any budget holds: what is said beyond it is no number to count with. */
const mostUnits = 1e9

/** What the server says that it did cost counts, not what was expected. */
function charge({ ctx }: GatewayCall, { _meta }: UpstreamResult): void {
  const told = isRecord(_meta) ? _meta[operationalExtension] : undefined
  const units = isRecord(told) ? told['units_used'] : undefined
  if (isCount(units)) ctx.cost.add(Math.min(units, mostUnits))
}

/** Adds which tool of which server it is from, after what that says of its sources itself. */
async function sourced(
  { name, clock }: CallWrapperParts,
  { upstream, tool, exposed, args }: GatewayCall,
  exchange: Exchange,
  result: UpstreamResult,
): Promise<UpstreamResult> {
  const own = {
    source: `${upstream}:${tool}`,
    retrieved_at: new Date(clock.now()).toISOString(),
    stamp: { server: name, tool: exposed, operation_id: exchange.correlation, input_digest: `sha256:${await digest(args)}` },
  }
  return Array.isArray(result.content) ? stampResult(result, own).result : result
}

function codeOf(error: unknown): string {
  if (error instanceof Problem) return error.code
  return error instanceof McpError ? error.kind : 'SERVER_ERROR'
}

// One call of a tool of some upstream, as what stands around it sees it.

/** A tool call on its way to an upstream. */
export interface GatewayCall {
  /** The name of the server that it goes to. */
  readonly upstream: string
  /** The tool's own name there. */
  readonly tool: string
  /** The name under which clients see it. */
  readonly exposed: string
  readonly args: Params
  readonly ctx: Context
  readonly client: { readonly name?: string | undefined; readonly principal?: Principal | undefined }
  /**
   * It was begun before: its caller comes back with answers to what the upstream asked. What is done once for a call (paying for it,
   * writing it down) was done then.
   */
  readonly again: boolean
}

/** What the upstream answered, as it came. */
type UpstreamResult = CallToolResult

// Bare failures of servers behind the gateway, made readable for programs: a code, a category, and which server it was.

interface CalledTool {
  readonly upstream: string
  readonly tool: string
}

/** Codes for the numbers of JSON-RPC and of servers. */
const byNumber: ReadonlyMap<number, ProblemCode> = new Map<number, ProblemCode>([
  [-32700, 'INVALID_INPUT'],
  [-32600, 'INVALID_INPUT'],
  [-32602, 'INVALID_INPUT'],
  [-32601, 'UNSUPPORTED'],
  [-32002, 'RESOURCE_NOT_FOUND'],
  [-32029, 'RATE_LIMIT_EXCEEDED'],
  [429, 'RATE_LIMIT_EXCEEDED'],
])

/** The same refusal of a server, with the problem in it: what it told itself, else what its number says. */
function categorised({ upstream, tool }: CalledTool, thrown: unknown): unknown {
  if (!(thrown instanceof McpError) || thrown.code === undefined || thrown.cause instanceof Problem) return thrown
  const { kind, message, code, data } = thrown
  const told = isRecord(data) ? fromWire(attributed({ upstream, tool }, data[problemExtension] ?? data)) : undefined
  const cause =
    told ?? problem(byNumber.get(code) ?? 'SERVER_ERROR', message, { details: { upstream, tool, code }, cause: thrown })
  return new McpError(kind, message, { code, cause, ...(data !== undefined && { data }) })
}

/** A problem that a server tells is its own, whatever it says: nobody shall take it for the gateway's. */
function attributed({ upstream, tool }: CalledTool, said: unknown): unknown {
  if (!isRecord(said)) return said
  return { ...said, details: { ...(isRecord(said['details']) && said['details']), upstream, tool } }
}

/** A result that says only that it failed also says so to programs. */
function explained({ upstream, tool }: CalledTool, result: CallToolResult): CallToolResult {
  const said = isRecord(result._meta) ? result._meta[problemExtension] : undefined
  if (isRecord(said)) return { ...result, _meta: { ...result._meta, [problemExtension]: attributed({ upstream, tool }, said) } }
  const text = result.content?.find(block => block.type === 'text')
  const words = text?.type === 'text' ? clip(text.text, 500) : `${clip(tool)} failed`
  const told = problem('TOOL_FAILED', words, { category: 'permanent', details: { upstream, tool } })
  return { ...result, _meta: { ...result._meta, [problemExtension]: toWire(told) } }
}

// A line for each call that no server got to see: refused, by whomever, or answered by what came of it before; and for each read that a
// rule refuses. What is refused over and over is counted after a while.

/** What writing down refusals needs. */
interface RefusalsParts {
  readonly clients: Clients
  readonly notes: Notes
  readonly refused: Denials<GatewayNote>
  /** Calls that failed and of which a line is written. */
  readonly noted: WeakSet<object>
  /** By the name under which clients see it. */
  readonly tools: ReadonlyMap<string, KnownTool>
  readonly policies: ReadonlyMap<string, ToolPolicy>
}

/** So many of a kind have a line each within a minute, and the others one together. */
const each = 10

/** A refused call, or many of a kind. */
export function refusedNotes(clock: Clock, notes: Pick<Notes, 'note'>): Denials<GatewayNote> {
  return new Denials({ clock, most: 1_000, each, note: (note, times) => notes.note(times === 1 ? note : { ...note, times }) })
}

/** Called with every request that failed. */
export function failedCall(parts: RefusalsParts, exchange: Exchange, error: unknown): void {
  if (exchange.route.method.name !== callTool.name) return failedRead(parts, exchange, error)
  if (parts.noted.has(exchange)) return
  const rule = error instanceof Problem ? error.details?.['rule'] : undefined
  note(parts, exchange, { outcome: 'refused', code: codeOf(error), ...(typeof rule === 'string' && { rule }) })
}

/** Of calls that something stands before: only those can be answered without their server, and without a failure. */
export function answeredLayer(parts: RefusalsParts): Layer {
  const concerns = ({ params }: Exchange): boolean => (parts.policies.get(params['name'] as string)?.rules.length ?? 0) > 0
  return {
    stage: 'enter',
    methods: [callTool.name],
    marked: true,
    concerns,
    when: exchange => concerns(exchange) || (exchange.meta !== undefined && Object.hasOwn(exchange.meta, idempotencyExtension)),
    run: async (exchange, next) => {
      const result = await next()
      // Whatever was begun has a line of its own.
      if (exchange.begun || exchange.asking?.pending === true || !isRecord(result)) return result
      // What goes on in the background has its line when it ends.
      if (!Array.isArray(result['content'])) return result
      const why = (result as { readonly [because]?: Problem })[because]
      note(parts, exchange, why === undefined ? { outcome: 'replayed' } : { outcome: 'refused', code: why.code })
      return result
    },
  }
}

function note(parts: RefusalsParts, exchange: Exchange, said: Pick<GatewayNote, 'outcome' | 'code' | 'rule'>): void {
  const { clients, notes, noted, tools } = parts
  noted.add(exchange)
  const name = String(exchange.params['name'])
  const { upstream, tool } = tools.get(name) ?? { upstream: '', tool: clip(name) }
  const client = clients.nameOf(exchange.caller)
  if (said.outcome !== 'refused') return notes.note({ client, upstream, tool, exchange, ...said })
  writeRefusal(parts, exchange, { client, upstream, tool, ...said })
}

/** Of what is no call, only what a rule refuses is written down. */
function failedRead(parts: RefusalsParts, exchange: Exchange, error: unknown): void {
  if (!(error instanceof Problem) || error.code !== 'PERMISSION_DENIED') return
  const { rule, upstream, tool } = error.details ?? {}
  if (typeof rule !== 'string' || typeof upstream !== 'string' || typeof tool !== 'string') return
  const method = exchange.route.method.name
  const client = parts.clients.nameOf(exchange.caller)
  writeRefusal(parts, exchange, { client, upstream, tool: clip(tool, 200), outcome: 'refused', code: error.code, rule, method })
}

/** Many refusals of one kind become one line. */
function writeRefusal({ refused }: RefusalsParts, exchange: Exchange, slim: GatewayNote): void {
  const { caller, route } = exchange
  const subject = subjectOf(caller)
  // Names and addresses that callers invent are no kinds of their own: there is no end of them.
  const named = slim.method === undefined && slim.upstream !== '' ? slim.tool : ''
  const kind = JSON.stringify([slim.client, caller.principal?.id, slim.method, slim.upstream, named, slim.code, slim.rule])
  const others: GatewayNote = { client: slim.client, upstream: '', tool: '', outcome: 'refused', code: 'OTHERS' }
  // What is counted is kept without what was sent: that may be long.
  const many = { ...slim, ...(subject !== undefined && { subject }) }
  refused.add(kind, route.method.name === callTool.name ? { ...slim, exchange } : many, others, many)
}
