/** What a server gives its features, and how a list of them becomes one. */
import { realClock } from '../core/clock.ts'
import { toMilliseconds } from '../core/duration.ts'
import { createSeal } from '../core/handle.ts'
import type { Runners } from '../core/journal/runners.ts'
import { CallContext } from '../engine/context.ts'
import type { Engine } from '../engine/engine.ts'
import { createPaging } from '../engine/paging.ts'
import type { Side } from '../engine/plan.ts'
import { Ports } from '../engine/ports.ts'
import type { InstalledFeature, ServerKit } from '../engine/server-feature.ts'
import type { Layer } from '../engine/stages.ts'
import { cacheHint } from '../features/mcp/caching/messages.ts'
import { serverFeatures } from './features.ts'
import { callLayer, serverLog } from './logging.ts'
import { limitsOf, type ServerOptions } from './options.ts'
import { openRecords, type Records } from './records.ts'
import { type LazyStore, lazyStore } from './store.ts'

/** A kit, and what the server itself needs of what it is made of. */
export interface ServerOwnKit extends ServerKit {
  readonly ports: Ports
  readonly middleware: Layer[]
  /** More may come. */
  readonly all: Side[]
  readonly records: Records
  readonly opening: LazyStore
}

/** `engine`: it is there when all features are. */
export function createKit(options: ServerOptions, engine: () => Engine | undefined): ServerOwnKit {
  const { name, version, pageSize = 500, askTimeout = '10m', sessions = true } = options
  const clock = options.clock ?? realClock
  const { log, trace } = serverLog(options)
  const seal = createSeal({ secrets: options.secret, clock })
  const cache = cacheHint(options.cache)
  const opening = lazyStore(options.store, clock, trace)
  const records = openRecords(options, opening, clock, trace)
  const middleware: Layer[] = log.level === 'debug' ? [callLayer(log, clock)] : []
  const own = middleware.length
  const ports = new Ports()
  const all: Side[] = []
  return {
    name,
    version,
    clock,
    log,
    trace,
    seal,
    cache,
    sessions,
    limits: limitsOf(options),
    paging: createPaging({ seal, pageSize, cache, cursorMs: 3_600_000, now: clock.now }),
    askMs: toMilliseconds(askTimeout),
    shared: options.store !== undefined,
    store: opening.open,
    journal: records.journal,
    grants: records.grants,
    audit: records.audit,
    runners: async (): Promise<Runners> => (await records.journal()).runners,
    engine: () => engine() as Engine,
    sides: () => all,
    filtered: () => middleware.length > own,
    context: exchange => new CallContext(exchange),
    began: () => engine()?.replan(),
    add: side => {
      all.push(side)
      engine()?.replan()
    },
    port: token => ports.get(token),
    ports,
    middleware,
    all,
    records,
    opening,
  }
}

/** Sets up all features, in their order. */
export function installServerFeatures(kit: ServerOwnKit, options: ServerOptions): readonly InstalledFeature[] {
  return serverFeatures.map(feature => {
    const installed = feature.setup(kit, options)
    const { provides, sides = [] } = installed
    if (provides !== undefined) kit.ports.provide(provides.token, provides.value)
    kit.all.push(...sides)
    return installed
  })
}
