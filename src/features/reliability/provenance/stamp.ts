/**
 * The stamp of the runtime, after all that is claimed: which tool of which server ran, when, on what. Claims keep their order and
 * their words; what is malformed or beyond the limit is left out, and counted in the stamp.
 */
import { digest } from '../../../core/digest.ts'
import type { Exchange } from '../../../engine/exchange.ts'
import type { ServerKit } from '../../../engine/server-feature.ts'
import { given, isRecord } from '../../../jsonrpc/message.ts'
import { type ContentBlock, without } from '../../mcp/content/messages.ts'
import type { CallToolResult } from '../../mcp/tools/messages.ts'
import { faultIn, provenanceExtension, recordsIn, type WireProvenance } from './messages.ts'

/** Limit in bytes per result. */
const limit = 16 * 1024

type StampRecord = WireProvenance & Required<Pick<WireProvenance, 'stamp'>>

/** Adds the stamp to a result. */
export async function stamped(kit: ServerKit, exchange: Exchange, result: unknown): Promise<unknown> {
  if (!isCallResult(result)) return result
  const tool = exchange.params['name'] as string
  const stamp: StampRecord['stamp'] = {
    server: kit.name,
    server_version: kit.version,
    tool,
    // The same id as in logs, journal and problems.
    operation_id: exchange.correlation,
    input_digest: `sha256:${await digest(exchange.params['arguments'] ?? {})}`,
  }
  const own = { source: `${kit.name}:${tool}`, retrieved_at: new Date(kit.clock.now()).toISOString(), stamp }
  const { result: sourced, omitted, fault } = stampResult(result, own)
  if (omitted > 0) kit.trace('provenance-omitted', { tool, omitted, ...given({ fault }) })
  return sourced
}

/** Adds a stamp after the claims; also returns how many claims were omitted. */
export function stampResult<R extends CallToolResult>(result: R, own: StampRecord) {
  const budget = new SizeBudget(limit - sizeOf(own) - markerSize)
  const claims = budget.take(recordsIn(result._meta) ?? [])
  const content = result.content.map(block => withinBudget(block, budget))
  const { omitted, fault } = budget
  const last = omitted === 0 ? own : { ...own, stamp: { ...own.stamp, omitted } }
  return { result: { ...result, content, _meta: { ...result._meta, [provenanceExtension]: [...claims, last] } }, omitted, fault }
}

/** Removes provenance, for clients that did not declare the extension. */
export function unsourced(result: unknown): unknown {
  if (!isCallResult(result)) return result
  const content = result.content.map(block => (recordsIn(block?._meta) === undefined ? block : plain(block)))
  return { ...plain(result), content }
}

// Reserved for the `omitted` member.
const markerSize = 32

/** The remaining space within the limit. */
class SizeBudget {
  #left: number
  omitted = 0
  fault: string | undefined = undefined

  constructor(bytes: number) {
    this.#left = bytes
  }

  /** Takes records up to the first that does not fit, so that indexes stay valid. */
  take(records: readonly unknown[]): readonly WireProvenance[] {
    const taken: WireProvenance[] = []
    let full = false
    // The new index of each record; undefined if omitted.
    const places = records.map(record => {
      const fault = faultIn(record)
      this.fault ??= fault
      const size = sizeOf(record) + 1
      full ||= size > this.#left
      if (full || fault !== undefined) {
        this.omitted++
        return undefined
      }
      this.#left -= size
      return taken.push(record as WireProvenance) - 1
    })
    return taken.length === records.length ? taken : taken.map(record => placed(record, places))
  }
}

// Renumbers `derived_from`.
function placed(record: WireProvenance, places: readonly (number | undefined)[]): WireProvenance {
  const { derived_from: from } = record
  return from === undefined ? record : { ...record, derived_from: from.flatMap(index => places[index] ?? []) }
}

/** A block whose claims do not fit keeps none; those of the result do not apply to it. */
function withinBudget(block: ContentBlock, budget: SizeBudget): ContentBlock {
  const records = recordsIn(block?._meta)
  if (records === undefined) return block
  const taken = budget.take(records)
  if (taken.length === records.length) return block
  return { ...block, _meta: { ...block._meta, [provenanceExtension]: taken } }
}

function isCallResult(result: unknown): result is CallToolResult {
  return isRecord(result) && Array.isArray(result['content'])
}

// Without the extension's member in `_meta`.
function plain<T extends { readonly _meta?: Readonly<Record<string, unknown>> }>(from: T): T {
  if (recordsIn(from._meta) === undefined || from._meta === undefined) return from
  const { _meta, ...rest } = from
  const meta = without(_meta, provenanceExtension)
  return (Object.keys(meta).length === 0 ? rest : { ...rest, _meta: meta }) as T
}

const encoder = new TextEncoder()

function sizeOf(value: unknown): number {
  return encoder.encode(JSON.stringify(value) ?? '').length
}
