/** `createGateway`: one server for clients, made of what many servers offer. */
import type { ResourceAuthorization } from '../auth/resource/options.ts'
import { type Clock, realClock } from '../core/clock.ts'
import { toMilliseconds } from '../core/duration.ts'
import type { Auth } from '../server/auth.ts'
import type { ServeHttpOptions } from '../server/serve.ts'
import type { Server } from '../server/server.ts'
import { openStore } from '../stores/open.ts'
import type { Store } from '../stores/store.ts'
import type { FetchHandler } from '../transports/http/fetch.ts'
import type { Listening } from '../transports/http/listening.ts'
import type { Gateway, UpstreamStatus } from './gateway.ts'
import { drained, tellMs } from './ops/drain.ts'
import { type HealthParts, healthPages } from './ops/health.ts'
import { makeOperatorKey } from './ops/operator-key.ts'
import type { GatewayOptions } from './options.ts'
import { reloading } from './reload.ts'
import type { AuthSettings } from './trust/settings.ts'
import { type Parts, wire } from './wiring.ts'

/**
 * Opens a gateway. Upstreams come up by themselves, each when it can; `gateway.ready()` waits for the first look at each.
 * @example await using gateway = await createGateway({ servers: { files: { command: 'files-server' }, web: 'https://example.com/mcp' } })
 */
export async function createGateway(options: GatewayOptions): Promise<Gateway> {
  return openGateway(await resolved(options), options)
}

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
      const { servingFault } = await import('./config/serving.ts')
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

export interface GatewayStore {
  readonly store: Store
  close(): Promise<void>
}

async function openGatewayStore(option: string | Store | undefined, clock: Clock): Promise<GatewayStore> {
  if (typeof option === 'object') return { store: option, close: async () => {} }
  const store = await openStore(option ?? 'memory:', { now: clock.now })
  return { store, close: () => store.close() }
}
