/** Server side of the facade: the option `facade`, and the layers that load and apply it. Off by default. */
import { defineServerFeature, lazily } from '../../../engine/server-feature.ts'
import { discover, initialize } from '../../mcp/lifecycle/messages.ts'
import { readResource } from '../../mcp/resources/messages.ts'
import { callTool, listTools, toolsPort } from '../../mcp/tools/messages.ts'
import { getManifest } from '../manifest/messages.ts'
import { type FacadePart, facadeParts } from './messages.ts'
import type { Facade } from './runtime.ts'

/** The options of `createServer` that this feature reads. */
export interface FacadeServerOptions {
  /**
   * For clients and models without extensions: offers extension methods as tools (`begin_transaction`, `check_permissions`, …) and
   * their `_meta` as arguments of your tools (`transaction_id`, …). True: all parts. Default false.
   */
  readonly facade?: boolean | readonly FacadePart[]
}

/** The server feature: the option `facade`. */
export const facadeFeature = defineServerFeature<FacadeServerOptions>({
  name: 'facade',
  options: { facade: 'any' },
  setup: (kit, { facade: said }) => {
    const parts = facadeParts(said)
    if (parts.size === 0) return {}
    kit.port(toolsPort).extend({ expected: true })
    let facade: Facade | undefined
    const loading = lazily(async () => {
      facade = new (await import('./runtime.ts')).Facade(kit, parts)
    })
    // Loaded at once, so that it is usually ready for the first client. An error here occurs again with the first request, and is
    // reported there.
    loading.open().catch(() => undefined)
    return {
      sides: [
        {
          layers: [
            {
              // Answers about tools wait until the facade is loaded, so that lists and calls agree.
              stage: 'enter',
              methods: telling,
              when: () => facade === undefined,
              run: async (_, next) => {
                await loading.open()
                return next()
              },
            },
            {
              stage: 'enter',
              methods: [callTool.name],
              when: exchange => facade?.argues(exchange) === true,
              run: (exchange, next) => (facade as Facade).translate(exchange, next),
            },
            {
              stage: 'execute',
              methods: [callTool.name],
              when: exchange => facade?.owns(exchange) === true,
              run: exchange => (facade as Facade).answer(exchange),
            },
          ],
        },
      ],
    }
  },
})

/** Methods whose answers depend on the tools. */
const telling = [listTools, callTool, getManifest, readResource, initialize, discover].map(({ name }) => name)
