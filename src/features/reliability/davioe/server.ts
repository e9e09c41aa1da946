/**
 * Server side of the profile `davioe`: accepts calls in the form of davioe/mcp-extension-proposals. The codec is loaded only if the
 * profile is set.
 */
import { defineServerFeature } from '../../../engine/server-feature.ts'
import { clip } from '../../../jsonrpc/limits.ts'
import { callTool } from '../../mcp/tools/messages.ts'

/** The options of `createServer` that this feature reads. */
export interface DavioeServerOptions {
  /** Also accept calls in the form of another implementation; `davioe` is davioe/mcp-extension-proposals. Default: none. */
  readonly profile?: 'davioe'
}

/** The server feature: the option `profile`. */
export const davioeFeature = defineServerFeature<DavioeServerOptions>({
  name: 'davioe',
  options: { profile: 'string' },
  setup: (_, { profile }) => {
    if (profile === undefined) return {}
    if (profile !== 'davioe')
      throw new TypeError(`profile is "${clip(String(profile))}". The only profile is 'davioe'; leave the option out otherwise`)
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
