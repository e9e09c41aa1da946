/** How an author names the sources of a result, or of a block of it. */
import type { Provenance } from '../../../core/artifact.ts'
import { clip } from '../../../jsonrpc/limits.ts'
import { faultIn, provenanceExtension, provenanceToWire } from './messages.ts'

/** Goes where a block or a reply takes `meta`. */
export interface Cited {
  readonly meta: Readonly<Record<string, unknown>>
}

/**
 * The sources of a block or of a whole result, in order. They are claims: the runtime adds which tool of which server made the
 * result, and nothing here can say otherwise. What came from another server is handed on as it came.
 * @example return reply({ content: [text('3.2 M', cite({ source: 'q3.pdf', location: { page: 4 } }))] })
 */
export function cite(...sources: readonly Provenance[]): Cited {
  const records = sources.map(source => {
    const record = provenanceToWire(source)
    const fault = faultIn(record)
    if (fault !== undefined) throw new TypeError(`cite: ${clip(fault, 200)}`)
    return record
  })
  return { meta: { [provenanceExtension]: records.length === 1 ? records[0] : records } }
}
