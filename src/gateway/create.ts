/**
 * `createGateway` and the running gateway's life cycle: serving, reloading options and draining. `wiring.ts` creates the parts that are
 * used here.
 */
import { type Clock, pauseFor, realClock, toMilliseconds } from '../core/clock.ts'
import type { Auth } from '../server/auth.ts'
import type { ServeHttpOptions } from '../server/serve.ts'
import type { Server } from '../server/server.ts'
import { openStore } from '../stores/open.ts'
import type { FetchHandler } from '../transports/http/fetch.ts'
import type { Listening } from '../transports/http/listening.ts'
import type { Gateway, GatewayOptions, Reloaded, UpstreamStatus } from './gateway.ts'
import { healthPages, makeOperatorKey } from './ops/health.ts'
import { type AuthSettings, changeable, type TrustSettings, trustOf } from './trust/settings.ts'
import { same } from './upstreams/entry.ts'
import { createGatewayParts, type Parts } from './wiring.ts'

/**
 * Opens a gateway: one MCP server in front of many. Upstreams connect in the background; `gateway.ready()` waits until each was
 * tried once.
 * @example
 * await using gateway = await createGateway({ servers: { shop: url } })
 * await gateway.ready()
 * const listening = await gateway.listen()
 */
export async function createGateway(options: GatewayOptions): Promise<Gateway> {
  return openGateway(await resolved(options), options)
}

/** Merges the file that `config` names. */
async function resolved(options: GatewayOptions): Promise<GatewayOptions> {
  return options.config === undefined ? options : (await import('./config/load.ts')).withConfig(options)
}

/** Opens a gateway from final options. `given`: the options before the file was merged, which `reload` starts from. */
export async function openGateway(options: GatewayOptions, given = options): Promise<Gateway> {
  const { servers = {}, clock = realClock } = options
  const { store = 'memory:' } = options
  const parts = createGatewayParts(options, typeof store === 'object' ? store : await openStore(store, { now: clock.now }))
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

/** The `Gateway` object that programs hold. */
function gatewayOf(parts: Parts, options: GatewayOptions, reload: Gateway['reload']): Gateway {
  const { server, trust, catalog, upstreams } = parts
  const { auth } = trust
  const serving = servingOf(parts, options)
  const gateway: Gateway = {
    ...trust.control,
    server,
    fetch: fetchHandlerOf(server, auth),
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

/** Serving clients over HTTP and stdio, and draining at the end. */
function servingOf(parts: Parts, options: GatewayOptions) {
  const { server, trust, firstLook, store } = parts
  const { auth } = trust
  const { clock = realClock } = options
  const drainMs = toMilliseconds(options.drain ?? '5s', 'drain')
  const listening = new Set<Listening>()
  // Clients on stdio.
  let pipes = 0
  let ending = false
  return {
    listen: async (where?: ServeHttpOptions): Promise<Listening> => {
      const place = { ...options.listen, ...where }
      const { servingFault } = await import('./config/own-settings.ts')
      const fault = servingFault({ place, auth: authBeside(where, options), unprotected: where?.auth === 'none' })
      if (fault !== undefined) throw new TypeError(`${fault.message}. ${fault.fix}`)
      // A store that is unreachable now is reported by /ready.
      if (options.store !== undefined) await makeOperatorKey(store).catch(error => server.engine.trace('gateway-store', error))
      const opened = await server.listen({
        closeMs: drainMs + tellMs,
        onDenied: (status, address) => trust.denied(status, address),
        pages: healthPages({
          store,
          clock,
          looked: () => firstLook.over,
          ending: () => ending,
          upstreams: () => statusesOf(parts),
          sees: (principal, upstream) => trust.visibility.knows({ principal, carrier: 'http' }, upstream),
        }),
        ...options.listen,
        ...where,
        // `auth: undefined` in the argument does not switch the gateway's own auth off.
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
      if (listening.size + pipes > 0) await drained(parts, clock, drainMs, listening)
    },
  }
}

/** The auth settings that count for a listener: its own authorization replaces that of the options. */
function authBeside(where: ServeHttpOptions | undefined, { auth }: GatewayOptions): AuthSettings | undefined {
  const given = where?.auth
  if (given === undefined || given === 'none') return auth
  const { issuer, resource } = given.settings
  return { issuer, ...(resource !== undefined && { resource }) }
}

/** The state of each upstream, with the sizes of its lists. */
function statusesOf({ upstreams, catalog }: Parts): readonly UpstreamStatus[] {
  return upstreams.list().map(server => {
    const { name, status, why, client } = server
    const { tools, resources, templates, prompts } = catalog.offered(name)
    const counts = { tools: tools.length, resources: resources.length + templates.length, prompts: prompts.length }
    const how = { carrier: upstreams.carrier(name), revision: client?.revision }
    return { name, status, why, ...how, ...counts, held: server.held().length, left: catalog.left(name) }
  })
}

/** The fetch handler. With auth it is made on first use, because it needs the URL by which clients reach the gateway. */
function fetchHandlerOf(server: Server, auth: Auth | undefined): FetchHandler {
  if (auth === undefined) return server.fetch
  let served: FetchHandler | undefined
  return async (request, info) => {
    served ??= server.fetchWith({ auth })
    return served(request, info)
  }
}

// Reload: all new options are read and checked before any takes effect. Rules, clients and budgets then apply at once, also to calls
// under way, and only servers whose entries changed are restarted.

/** Options that are read once, when a gateway opens. */
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

/** Creates `gateway.reload`. `resolve` merges the file, where options name one. */
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
    // Reloads run one after the other, because each is compared with the result of the previous one.
    const done = last.then(() => once(options))
    last = done.catch(() => {})
    return done
  }
}

/** Applies other options to a running gateway. */
async function become({ trust, catalog, upstreams, parking }: Parts, before: GatewayOptions, next: GatewayOptions) {
  const { servers = {} } = next
  const plan = upstreams.plan(servers)
  const settings = trustOf(next)
  const other = (name: keyof TrustSettings): boolean => !same(settings[name], trustOf(before)[name])
  const ruled = [...changeable, 'auth' as const].some(other)
  // Throws on a mistake, before anything has changed.
  if (ruled) trust.change(settings)
  catalog.begin(Object.keys(servers))
  if (ruled) {
    catalog.renew()
    parking.withdraw(trust.withdraw())
  }
  // Removed entries are hidden before their upstream stops.
  else catalog.flush()
  if (other('pins')) for (const { name } of upstreams.list()) upstreams.relist(name)
  const applied = await upstreams.apply(plan)
  // When `reload` settles, removed entries are no longer listed.
  catalog.flush()
  return applied
}

/** Changed options that need a restart. */
function pendingIn(opened: GatewayOptions, next: GatewayOptions): readonly string[] {
  const others = lasting.filter(name => !same(opened[name], next[name]))
  return same(fixedOut(opened.auth), fixedOut(next.auth)) ? others : [...others, 'auth']
}

/** Leaves out fixed tokens, which may change at any time. */
function fixedOut(auth: GatewayOptions['auth']): unknown {
  return auth !== undefined && 'tokens' in auth ? 'tokens' : auth
}

// Draining: no new requests are accepted, calls under way may finish, and those that do not are answered before the connections close.

/** Time for the final answers to get out. */
const tellMs = 1_000
/** How often the end of the calls is checked. */
const lookMs = 25

/** Resolves when no call is under way, or the time is over and the listeners are closed. */
async function drained({ upstreams }: Parts, clock: Clock, drainMs: number, listening: Iterable<Listening>): Promise<void> {
  const closing = Promise.all([...listening].map(each => each.close()))
  for (let waitedMs = 0; waitedMs < drainMs && upstreams.busy; waitedMs += lookMs) await pauseFor(clock, lookMs)
  // Closing the upstreams answers the remaining calls with OUTCOME_UNKNOWN.
  if (upstreams.busy) await upstreams.close()
  await closing
}
