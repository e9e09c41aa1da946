/** Server side of provenance: the option `provenance` of tools, and `cite`. The stamping code is loaded on first use. */
import type { Provenance } from '../../../core/artifact.ts'
import type { Exchange } from '../../../engine/exchange.ts'
import { declaredSettings, extensionCapability } from '../../../engine/extensions.ts'
import type { Side } from '../../../engine/plan.ts'
import { defineServerFeature } from '../../../engine/server-feature.ts'
import type { Layer } from '../../../engine/stages.ts'
import { clip } from '../../../jsonrpc/limits.ts'
import { callTool, toolsPort } from '../../mcp/tools/messages.ts'
import { faultIn, provenanceExtension, provenanceToWire } from './messages.ts'

/** The option of a tool. */
export interface ProvenanceToolOption {
  /** Whether results state their origin: the runtime adds a stamp, and `cite` adds sources. Default false. */
  readonly provenance?: boolean
}

/** The server feature: the option `provenance`. */
export const provenanceFeature = defineServerFeature<object>({
  name: 'provenance',
  setup: kit => {
    const tools = kit.port(toolsPort)
    let began = false
    const loadRuntime = () => import('./stamp.ts')
    const isUnknown = ({ peer }: Exchange): boolean => declaredSettings(peer, provenanceExtension) === undefined
    const concerns = ({ params }: Exchange): boolean =>
      tools.facts<ProvenanceToolOption>(params['name'] as string)?.provenance === true
    const common = { methods: [callTool.name], concerns, when: concerns }
    const layers: readonly Layer[] = [
      {
        ...common,
        // Outside of replay, because a repeated call may come from a client with other capabilities.
        stage: 'unseal',
        run: async (exchange, next) => {
          const result = await next()
          return isUnknown(exchange) ? (await loadRuntime()).unsourced(result) : result
        },
      },
      {
        ...common,
        stage: 'execute',
        run: async (exchange, next) => {
          const result = await next()
          const { stamped, unsourced } = await loadRuntime()
          const made = await stamped(kit, exchange, result)
          // Task results are fetched by another request, past the layer above.
          return exchange.detached && isUnknown(exchange) ? unsourced(made) : made
        },
      },
    ]
    tools.extend({
      kinds: { provenance: 'boolean' },
      declare: (_, { provenance }: ProvenanceToolOption) => {
        if (began || provenance !== true) return
        began = true
        kit.began()
      },
    })
    const side: Side = {
      // None until the first tool has the option.
      get layers() {
        return began ? layers : []
      },
      capabilities: revision => (began ? extensionCapability(revision, provenanceExtension) : {}),
    }
    return { sides: [side] }
  },
})

/** The sources of a content, for `meta` of a block or reply. */
interface Citation {
  /** The sources in the form of the wire. */
  readonly meta: Readonly<Record<string, unknown>>
}

/**
 * States the sources of a block or of a whole result, in order. They are claims of the author; the runtime adds which tool of
 * which server made the result. Sources from other servers are passed on unchanged.
 * @example return reply({ content: [text('3.2 M', cite({ source: 'q3.pdf', location: { page: 4 } }))] })
 */
export function cite(...sources: readonly Provenance[]): Citation {
  const records = sources.map(source => {
    const record = provenanceToWire(source)
    const fault = faultIn(record)
    if (fault !== undefined) throw new TypeError(`cite: ${clip(fault, 200)}`)
    return record
  })
  return { meta: { [provenanceExtension]: records.length === 1 ? records[0] : records } }
}
