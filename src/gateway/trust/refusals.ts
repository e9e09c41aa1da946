/** A line for each call that no server got to see: refused, by whomever, or answered by what came of it before. */
import { Problem } from '../../core/problem.ts'
import type { Exchange } from '../../engine/exchange.ts'
import type { Layer } from '../../engine/stages.ts'
import { because, callTool } from '../../features/mcp/tools/messages.ts'
import { idempotencyExtension } from '../../features/reliability/idempotency/messages.ts'
import { clip } from '../../jsonrpc/limits.ts'
import { isRecord } from '../../jsonrpc/message.ts'
import { codeOf, type KnownTool } from './around.ts'
import type { Clients } from './clients.ts'
import type { GatewayNote, Notes } from './notes.ts'
import type { ToolPolicy } from './policy.ts'

export interface RefusalsParts {
  readonly clients: Clients
  readonly notes: Notes
  /** Calls that failed and of which a line is written. */
  readonly noted: WeakSet<object>
  /** By the name under which clients see it. */
  readonly tools: ReadonlyMap<string, KnownTool>
  readonly policies: ReadonlyMap<string, ToolPolicy>
}

/** Called with every request that failed. */
export function failedCall(parts: RefusalsParts, exchange: Exchange, error: unknown): void {
  if (exchange.route.method.name !== callTool.name || parts.noted.has(exchange)) return
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

function note(
  { clients, notes, noted, tools }: RefusalsParts,
  exchange: Exchange,
  said: Pick<GatewayNote, 'outcome' | 'code' | 'rule'>,
): void {
  noted.add(exchange)
  const name = String(exchange.params['name'])
  const { upstream, tool } = tools.get(name) ?? { upstream: '', tool: clip(name) }
  notes.note({ client: clients.nameOf(exchange.caller), upstream, tool, exchange, ...said })
}
