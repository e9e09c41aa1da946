/** The profile `davioe`: calls as davioe/mcp-extension-proposals makes them. A codec at the edge, loaded where an author asked for it. */
import { defineServerFeature } from '../../../engine/server-feature.ts'
import { clip } from '../../../jsonrpc/limits.ts'
import { callTool } from '../../mcp/tools/messages.ts'

/** The options of `createServer` for it. */
export interface DavioeServerOptions {
  /** Take calls also in the form of another implementation: `davioe` is that of davioe/mcp-extension-proposals. Default: none. */
  readonly profile?: 'davioe'
}

/** Calls in the form of another implementation. */
export const davioeFeature = defineServerFeature<DavioeServerOptions>({
  name: 'davioe',
  options: { profile: 'string' },
  setup: (_, { profile }) => {
    if (profile === undefined) return {}
    if (profile !== 'davioe') throw new TypeError(`profile is "${clip(String(profile))}": there is 'davioe', or leave it out`)
    return {
      sides: [
        {
          layers: [
            {
              stage: 'enter',
              methods: [callTool.name],
              run: async (exchange, next) => {
                const { takeBare } = await import('./runtime.ts')
                takeBare(exchange)
                return next()
              },
            },
          ],
        },
      ],
    }
  },
})
