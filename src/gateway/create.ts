/** `createGateway`: one server for clients, made of what many servers offer. */
import type { ResourceAuthorization } from '../auth/resource/options.ts'
import { type Clock, realClock, toMilliseconds } from '../core/clock.ts'
import type { Auth } from '../server/auth.ts'
import type { ServeHttpOptions } from '../server/serve.ts'
import type { Server } from '../server/server.ts'
import { openStore } from '../stores/open.ts'
import type { Store } from '../stores/store.ts'
import type { FetchHandler } from '../transports/http/fetch.ts'
import type { Listening } from '../transports/http/listening.ts'
import type { Gateway, GatewayOptions, Reloaded, UpstreamStatus } from './gateway.ts'
import { type HealthParts, healthPages, makeOperatorKey } from './ops/health.ts'
import { type AuthSettings, changeable, type TrustSettings } from './trust/settings.ts'
import { same } from './upstreams/entry.ts'
import type { Upstreams } from './upstreams/upstreams.ts'
import { type Parts, trustOf, wire } from './wiring.ts'

/**
 * Opens a gateway. Upstreams come up by themselves, each when it can; `gateway.ready()` waits for the first look at each.
 * @example await using gateway = await createGateway({ servers: { files: { command: 'files-server' }, web: 'https://example.com/mcp' } })
 */
export async function createGateway(options: GatewayOptions): Promise<Gateway> {
  return openGateway(await resolved(options), options)
}

/** With what the file of `config` says. */
async function resolved(options: GatewayOptions): Promise<GatewayOptions> {
  return options.config === undefined ? options : (await import('./config/load.ts')).withConfig(options)
}

/** The same, of options to which nothing is to be added: `config` only names where they are from. */
export async function openGateway(options: GatewayOptions, given = options): Promise<Gateway> {
  const { servers = {}, clock = realClock } = options
  const parts = wire(options, await openGatewayStore(options.store, clock))
  const reload = reloading(parts, options, async (other = given) => resolved(other))
  const gateway = gatewayOf(parts, options, reload)
  try {
    parts.catalog.begin(Object.keys(servers))
    await parts.upstreams.apply(parts.upstreams.plan(servers))
    void gateway.ready().then(() => parts.firstLook.finish())
    return gateway
  } catch (error) {
    await gateway.close()
    throw error
  }
}

/** The façade that programs hold. */
function gatewayOf(parts: Parts, options: GatewayOptions, reload: Gateway['reload']): Gateway {
  const { server, trust, catalog, upstreams } = parts
  const { auth } = trust
  const serving = servingOf(parts, options)
  const gateway: Gateway = {
    ...trust.control,
    server,
    fetch: faceOf(server, auth),
    listen: serving.listen,
    stdio: serving.stdio,
    upstreams: () => statusesOf(parts),
    names: () => catalog.names(),
    ready: async () => {
      await upstreams.ready()
      catalog.flush()
    },
    retry: name => upstreams.retry(name),
    reload,
    close: async () => {
      await serving.drain()
      for (const end of parts.ends) await end()
    },
    [Symbol.asyncDispose]: () => gateway.close(),
  }
  return gateway
}

/** The ways in which clients come, and how they are let go. */
function servingOf(parts: Parts, options: GatewayOptions) {
  const { server, trust, upstreams, firstLook, store } = parts
  const { auth } = trust
  const { clock = realClock } = options
  const drainMs = toMilliseconds(options.drain ?? '5s', 'drain')
  const listening = new Set<Listening>()
  let pipes = 0
  let ending = false
  const health: HealthParts = {
    store,
    clock,
    looked: () => firstLook.over,
    ending: () => ending,
    upstreams: () => statusesOf(parts),
    sees: (principal, upstream) => trust.visibility.knows({ principal, carrier: 'http' }, upstream),
  }
  return {
    listen: async (where?: ServeHttpOptions): Promise<Listening> => {
      const place = { ...options.listen, ...where }
      const { servingFault } = await import('./config/frame.ts')
      const fault = servingFault({ place, auth: authBeside(where, options), unprotected: where?.auth === 'none' })
      if (fault !== undefined) throw new TypeError(`${fault.message}. ${fault.fix}`)
      // A store that cannot be reached now is told of by /ready.
      if (options.store !== undefined) await makeOperatorKey(store).catch(error => server.engine.trace('gateway-store', error))
      const opened = await server.listen({
        closeMs: drainMs + tellMs,
        onDenied: (status, address) => trust.denied(status, address),
        pages: healthPages(health),
        ...options.listen,
        ...where,
        // Also where somebody gives `auth: undefined`: that says nothing.
        ...(auth !== undefined && where?.auth === undefined && { auth }),
      })
      listening.add(opened)
      return opened
    },
    stdio: async (): Promise<void> => {
      pipes++
      try {
        await server.stdio()
      } finally {
        pipes--
      }
    },
    drain: async (): Promise<void> => {
      ending = true
      if (listening.size + pipes > 0) await drained({ upstreams, clock, drainMs }, listening)
    },
  }
}

/** Whoever gives another authorization in place of that of the options has given one. */
function authBeside(where: ServeHttpOptions | undefined, { auth }: GatewayOptions): AuthSettings | undefined {
  const given = where?.auth
  return given === undefined || given === 'none' ? auth : { issuer: given.settings.issuer, ...resourceOf(given) }
}

function resourceOf({ settings: { resource } }: ResourceAuthorization): { readonly resource?: string } {
  return resource === undefined ? {} : { resource }
}

/** The state of each upstream, with the size of its lists. */
function statusesOf({ upstreams, catalog }: Parts): readonly UpstreamStatus[] {
  return upstreams.list().map(({ name, status, why, client }) => {
    const { tools, resources, templates, prompts } = catalog.offered(name)
    const counts = { tools: tools.length, resources: resources.length + templates.length, prompts: prompts.length }
    return { name, status, why, revision: client?.revision, ...counts, left: catalog.left(name) }
  })
}

/** Made when it is first used: only then it has to be known by which address clients reach it. */
function faceOf(server: Server, auth: Auth | undefined): FetchHandler {
  if (auth === undefined) return server.fetch
  let face: FetchHandler | undefined
  return async (request, info) => {
    face ??= server.fetchWith({ auth })
    return face(request, info)
  }
}

// Where a gateway keeps what must last: opened once, for its face and for what it adds, and closed where it opened it.

/** The store of a gateway, and what closes it where the gateway opened it. */
export interface GatewayStore {
  readonly store: Store
  close(): Promise<void>
}

/** A store that a program hands over is not closed here. */
async function openGatewayStore(option: string | Store | undefined, clock: Clock): Promise<GatewayStore> {
  if (typeof option === 'object') return { store: option, close: async () => {} }
  const store = await openStore(option ?? 'memory:', { now: clock.now })
  return { store, close: () => store.close() }
}

// Other options for a gateway that runs. All of them are read and checked before any of them counts; then rules, clients and budgets hold
// at once, also for calls under way, and of the servers only those are touched that are others.

/** Options that are looked at once, when a gateway opens. */
const lasting = [
  'name',
  'version',
  'instructions',
  'revisions',
  'secret',
  'store',
  'askTimeout',
  'startWait',
  'drain',
  'listen',
  'limits',
  'shares',
  'names',
  'tokens',
  'audit',
  'provenance',
  'events',
] as const satisfies readonly (keyof GatewayOptions)[]

/** `resolve` reads what is to be read: a file, where options name one. */
function reloading(
  parts: Parts,
  opened: GatewayOptions,
  resolve: (options: GatewayOptions | undefined) => Promise<GatewayOptions>,
): Gateway['reload'] {
  let current = opened
  let last: Promise<unknown> = Promise.resolve()
  const once = async (options: GatewayOptions | undefined): Promise<Reloaded> => {
    const next = await resolve(options)
    const { started, stopped, restarted } = await become(parts, current, next)
    current = next
    return { started, stopped, restarted, pending: pendingIn(opened, next) }
  }
  return options => {
    // One after the other: each is laid beside what the one before has left.
    const done = last.then(() => once(options))
    last = done.catch(() => {})
    return done
  }
}

/** Applies other options to a gateway that runs. */
async function become({ trust, catalog, upstreams, parking }: Parts, before: GatewayOptions, next: GatewayOptions) {
  const { servers = {} } = next
  const plan = upstreams.plan(servers)
  const settings = trustOf(next)
  const other = (name: keyof TrustSettings): boolean => !same(settings[name], trustOf(before)[name])
  const ruled = [...changeable, 'auth' as const].some(other)
  // Throws where it is mistaken, before anything has changed.
  if (ruled) trust.change(settings)
  catalog.begin(Object.keys(servers))
  if (ruled) {
    catalog.renew()
    parking.withdraw(trust.withdraw())
  }
  // What is gone is hidden before it ends.
  else catalog.flush()
  if (other('pins')) for (const { name } of upstreams.list()) upstreams.relist(name)
  const applied = await upstreams.apply(plan)
  // Who is told that it is done finds what is gone listed no more.
  catalog.flush()
  return applied
}

/** Changed options that count only after a restart. */
function pendingIn(opened: GatewayOptions, next: GatewayOptions): readonly string[] {
  const others = lasting.filter(name => !same(opened[name], next[name]))
  return same(fixedOut(opened.auth), fixedOut(next.auth)) ? others : [...others, 'auth']
}

/** Fixed tokens may be others at any time, as long as there are some. */
function fixedOut(auth: GatewayOptions['auth']): unknown {
  return auth !== undefined && 'tokens' in auth ? 'tokens' : auth
}

// An end in good order: nothing new is taken, what is under way may end, and what does not in time is told so while that can be told.

/** How long an answer that says that its call was cut may take to get out. */
const tellMs = 1_000
const lookMs = 25

interface DrainParts {
  readonly upstreams: Pick<Upstreams, 'busy' | 'close'>
  readonly clock: Clock
  readonly drainMs: number
}

/** Resolves when nobody waits for anything any more. `listening`: all that take requests. */
async function drained(parts: DrainParts, listening: Iterable<Listening>): Promise<void> {
  const { upstreams, clock, drainMs } = parts
  const closing = Promise.all([...listening].map(each => each.close()))
  for (let waitedMs = 0; waitedMs < drainMs && upstreams.busy; waitedMs += lookMs)
    await new Promise<void>(resolve => clock.setTimeout(resolve, lookMs))
  // Calls whose server goes are answered: that it is not known what came of them.
  if (upstreams.busy) await upstreams.close()
  await closing
}
