/** What stands around every call that goes to an upstream: its failures explained, its result sourced, its end written down. */

import type { Clock } from '../../core/clock.ts'
import { digest } from '../../core/digest.ts'
import { Problem } from '../../core/problem.ts'
import { exchangeOf } from '../../engine/context.ts'
import type { Exchange } from '../../engine/exchange.ts'
import { declared } from '../../engine/extensions.ts'
import { isCount, operationalExtension } from '../../features/reliability/cost/messages.ts'
import { problemExtension } from '../../features/reliability/problem/messages.ts'
import { provenanceExtension } from '../../features/reliability/provenance/messages.ts'
import { stampResult } from '../../features/reliability/provenance/stamp.ts'
import { McpError } from '../../jsonrpc/error.ts'
import { isRecord } from '../../jsonrpc/message.ts'
import type { GatewayCall, UpstreamResult } from './call.ts'
import type { Clients } from './clients.ts'
import { type CalledTool, categorised, explained } from './failures.ts'
import { cleaned } from './foreign.ts'
import type { Notes } from './notes.ts'

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

export type CallWrapper = (call: GatewayCall, next: () => Promise<UpstreamResult>) => Promise<UpstreamResult>

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

export function codeOf(error: unknown): string {
  if (error instanceof Problem) return error.code
  return error instanceof McpError ? error.kind : 'SERVER_ERROR'
}
