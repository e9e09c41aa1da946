/** What a server gives its features, and how a list of them becomes one. */
import type { Audit, AuditControl } from '../core/audit/audit.ts'
import { type Clock, realClock, toMilliseconds } from '../core/clock.ts'
import type { Grants } from '../core/grant/grants.ts'
import { createSeal } from '../core/handle.ts'
import type { Journal } from '../core/journal/journal.ts'
import type { ProcessLeases } from '../core/journal/process-leases.ts'
import { type Log, logFrom, type Trace, traceInto } from '../core/log.ts'
import { CallContext } from '../engine/context.ts'
import type { Engine } from '../engine/engine.ts'
import type { Exchange } from '../engine/exchange.ts'
import { createPaging } from '../engine/paging.ts'
import type { Side } from '../engine/plan.ts'
import { Ports } from '../engine/ports.ts'
import { type InstalledFeature, lazily, type ServerKit } from '../engine/server-feature.ts'
import type { Layer } from '../engine/stages.ts'
import { cacheHint } from '../features/mcp/caching/messages.ts'
import { serverFeatures } from './features.ts'
import { limitsOf, type ServerOptions } from './options.ts'
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
  if (typeof options.store === 'string' && options.store.startsWith('postgres') && options.secret === undefined)
    log.warn('secret-missing', { hint: needsSecret })
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
    runners: async (): Promise<ProcessLeases> => (await records.journal()).runners,
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

// What a server tells its author: by the log, and raw to who asks for that.

const needsSecret =
  'The store may be shared by replicas, but the option secret is not set. Set the same one on all, or they cannot open the states and tokens of each other'

/** Events that mean a mistake in the author's own code; the others are for those who look closer. */
const mistakes: ReadonlySet<string> = new Set([
  'internal',
  'tool-failed',
  'notification-failed',
  'authorization',
  'store-unavailable',
  'state-not-opened',
])

function serverLog({ name, log, secret = [], onTrace }: ServerOptions): { log: Log; trace: Trace } {
  const chosen = logFrom(log, onTrace === undefined ? 'error' : 'silent').child({ server: name })
  const write = traceInto(chosen, { mistakes, secrets: typeof secret === 'string' ? [secret] : secret })
  if (onTrace === undefined) return { log: chosen, trace: write }
  const both: Trace = (event, detail, caller) => {
    onTrace(event, detail)
    write(event, detail, caller)
  }
  return { log: chosen, trace: both }
}

/** Tells of every call: installed only where that is wanted, so that others do not pay for it. */
function callLayer(log: Log, clock: Clock): Layer {
  const tell = ({ route, params, peer, caller, correlated, cancelled }: Exchange, began: number, failed: boolean): void => {
    const { method } = route
    const name = method.nameParam === undefined ? {} : { name: params?.[method.nameParam] }
    const { carrier } = caller
    const id = correlated === undefined ? {} : { correlationId: correlated }
    log.debug('call', {
      method: method.name,
      ...name,
      revision: peer.revision.id,
      carrier,
      ms: clock.now() - began,
      failed,
      ...(cancelled && { cancelled }),
      ...id,
    })
  }
  return {
    stage: 'enter',
    run: async (exchange, next) => {
      const began = clock.now()
      let failed = true
      try {
        const result = await next()
        failed = false
        return result
      } finally {
        tell(exchange, began, failed)
      }
    },
  }
}

// What the reliability features write into, one of each for all of them, opened when first needed: the journal, grants, the audit log.

interface Records {
  readonly journal: () => Promise<Journal>
  readonly grants: () => Promise<Grants>
  /** Undefined where there is none: what ends with the process proves nothing. */
  readonly audit: () => Promise<Audit | undefined>
  close(): Promise<void>
}

function openRecords(options: ServerOptions, store: LazyStore, clock: Clock, trace: Trace): Records {
  const id = (): string => crypto.randomUUID()
  const notChained = (error: unknown): void => trace('audit-not-chained', error)
  const log = lazily(async () => {
    const [{ Audit: Log }, opened] = await Promise.all([import('../core/audit/audit.ts'), store.open()])
    const { keep, lines } = options.audit || {}
    const keepMs = keep === undefined ? {} : { keepMs: toMilliseconds(keep, 'audit.keep') }
    return new Log({ store: opened, clock, failed: notChained, ...keepMs, ...(lines === undefined ? {} : { keep: lines }) })
  })
  const audit = async (): Promise<Audit | undefined> =>
    options.store === undefined || options.audit === false ? undefined : log.open()
  const journal = lazily(async () => {
    const [{ createJournal }, opened, told] = await Promise.all([import('../core/journal/journal.ts'), store.open(), audit()])
    const { records, length } = options.idempotency ?? {}
    return createJournal({ store: opened, clock, records, length, audit: told })
  })
  const grants = lazily(async () => {
    const [{ Grants: Book }, opened, told] = await Promise.all([import('../core/grant/grants.ts'), store.open(), audit()])
    return new Book({ store: opened, clock, id, audit: told })
  })
  return {
    audit,
    journal: journal.open,
    grants: grants.open,
    close: async () => {
      ;(await journal.opened())?.close()
      await (await log.opened())?.close().catch(notChained)
    },
  }
}

/** `server.audit`, on the log that is opened when it is first used. */
export function auditControl(open: Records['audit']): AuditControl {
  const opened = async (): Promise<Audit> => {
    const audit = await open()
    if (audit === undefined)
      throw new TypeError('This server has no audit log. Give createServer a store, and do not set audit to false')
    return audit
  }
  return {
    read: async options => (await opened()).read(options),
    verify: async options => (await opened()).verify(options),
  }
}
