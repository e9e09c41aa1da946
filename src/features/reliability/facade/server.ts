/** For clients that know no extensions: what these have as methods and `_meta` is there as tools and arguments. Off by default. */
import { wireName } from '../../../engine/method.ts'
import type { Side } from '../../../engine/plan.ts'
import { defineServerFeature, type ServerKit } from '../../../engine/server-feature.ts'
import { discover, initialize } from '../../mcp/lifecycle/messages.ts'
import { readResource } from '../../mcp/resources/messages.ts'
import { callTool, listTools, toolsPort } from '../../mcp/tools/messages.ts'
import { eventsPort } from '../events/messages.ts'
import { getManifest } from '../manifest/messages.ts'
import { problemPort } from '../problem/messages.ts'
import { type FacadePart, facadeParts } from './messages.ts'
import type { Facade } from './runtime.ts'

/** The options of `createServer` for it. */
export interface FacadeServerOptions {
  /**
   * For clients and models that know no extensions: what these have as methods and `_meta` is there as tools (`begin_transaction`,
   * `check_permissions`, …) and as arguments of your tools (`transaction_id`, …). True: all of it. Default false.
   */
  readonly facade?: boolean | readonly FacadePart[]
}

/** Extensions as tools, for clients that know none. */
export const facadeFeature = defineServerFeature<FacadeServerOptions>({
  name: 'facade',
  options: { facade: 'any' },
  setup: (kit, { facade }) => {
    const parts = facadeParts(facade)
    if (parts.size === 0) return {}
    kit.port(toolsPort).extend({ expected: true })
    return { sides: [facadeSide(() => open(kit, parts))] }
  },
})

/** What tells of tools: by name, by what the manifest says of them, or by its revision. */
const telling = [listTools, callTool, getManifest, readResource, initialize, discover].map(({ name }) => name)

/** Nothing about tools is answered before it is there: lists and calls agree from the first one on. */
function facadeSide(open: () => Promise<Facade>): Side {
  let facade: Facade | undefined
  let loading: Promise<void> | undefined
  const load = (): Promise<void> => {
    loading ??= open().then(
      opened => {
        facade = opened
      },
      error => {
        loading = undefined
        throw error
      },
    )
    return loading
  }
  // Begun at once, so that it is mostly there when the first client comes; what fails here fails again, and is told, with a request.
  load().catch(() => undefined)
  return {
    layers: [
      {
        stage: 'enter',
        methods: telling,
        when: () => facade === undefined,
        run: async (_, next) => {
          await load()
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
  }
}

async function open(kit: ServerKit, parts: ReadonlySet<FacadePart>): Promise<Facade> {
  const { createFacade } = await import('./runtime.ts')
  const { catalog, compile } = kit.port(toolsPort)
  const { of: problemOf, meta: problemMeta } = kit.port(problemPort)
  return createFacade({
    parts,
    catalog,
    compile: ({ name, description, input, annotations }) => compile(name, { description, input, annotations }),
    onOffer: kit.port(eventsPort).onChange,
    offers: method => {
      const { plan, fallback } = kit.engine()
      return plan.route(fallback, wireName(method, fallback)) !== undefined
    },
    problemOf,
    problemMeta,
  })
}
