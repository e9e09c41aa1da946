/**
 * Ways to speak that are off by default: the façade, for clients that know no extensions, and the profiles of other implementations.
 * Codecs at the edge, loaded only where an author asked for them.
 */
import type { Catalog } from '../core/catalog.ts'
import type { Engine } from '../engine/engine.ts'
import { wireName } from '../engine/method.ts'
import type { Side } from '../engine/plan.ts'
import { discover, initialize } from '../features/mcp/lifecycle/messages.ts'
import { readResource } from '../features/mcp/resources/messages.ts'
import { callTool, listTools } from '../features/mcp/tools/messages.ts'
import type { ToolEntry, ToolFacts } from '../features/mcp/tools/server.ts'
import type { FacadePart } from '../features/reliability/facade/facts.ts'
import type { Facade } from '../features/reliability/facade/server.ts'
import { getManifest } from '../features/reliability/manifest/messages.ts'
import { problemOfFailure } from '../features/reliability/problem/failures.ts'
import { problemMeta } from '../features/reliability/problem/server.ts'
import type { Context } from './context.ts'

export interface FacadeOptions {
  readonly parts: ReadonlySet<FacadePart>
  readonly engine: () => Engine
  readonly catalog: () => Catalog<ToolEntry<Context>>
  readonly compile: (name: string, facts: ToolFacts) => ToolEntry<Context>
  readonly events: () => Pick<Catalog<unknown>, 'onChange'>
}

/** What tells of tools: by name, by what the manifest says of them, or by its revision. */
const telling = [listTools, callTool, getManifest, readResource, initialize, discover].map(({ name }) => name)

/** Nothing about tools is answered before it is there: lists and calls agree from the first one on. */
export function facadeSide(options: FacadeOptions): Side {
  let facade: Facade | undefined
  let loading: Promise<void> | undefined
  const load = (): Promise<void> => {
    loading ??= open(options).then(
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

async function open({ parts, engine, catalog, compile, events }: FacadeOptions): Promise<Facade> {
  const { createFacade } = await import('../features/reliability/facade/server.ts')
  return createFacade({
    parts,
    catalog: catalog(),
    compile: ({ name, description, input, annotations }) => compile(name, { description, input, annotations }),
    onOffer: fn => void events().onChange(fn),
    offers: method => {
      const { plan, fallback } = engine()
      return plan.route(fallback, wireName(method, fallback)) !== undefined
    },
    problemOf: problemOfFailure,
    problemMeta,
  })
}

/** Calls as davioe/mcp-extension-proposals makes them. */
export function davioeSide(): Side {
  return {
    layers: [
      {
        stage: 'enter',
        methods: [callTool.name],
        run: async (exchange, next) => {
          const { takeBare } = await import('../features/reliability/davioe/server.ts')
          takeBare(exchange)
          return next()
        },
      },
    ],
  }
}
