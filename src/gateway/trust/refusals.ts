/**
 * A line for each call that no server got to see: refused, by whomever, or answered by what came of it before; and for each read that a
 * rule refuses. What is refused over and over is counted after a while.
 */
import type { Clock } from '../../core/clock.ts'
import { Problem } from '../../core/problem.ts'
import type { Exchange } from '../../engine/exchange.ts'
import type { Layer } from '../../engine/stages.ts'
import { because, callTool } from '../../features/mcp/tools/messages.ts'
import { idempotencyExtension } from '../../features/reliability/idempotency/messages.ts'
import { clip } from '../../jsonrpc/limits.ts'
import { isRecord } from '../../jsonrpc/message.ts'
import { Denials } from '../../policy/audit/denials.ts'
import { codeOf, type KnownTool } from './call-wrapper.ts'
import { type Clients, subjectOf } from './clients.ts'
import type { GatewayNote, Notes } from './notes.ts'
import type { ToolPolicy } from './tool-policy.ts'

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
