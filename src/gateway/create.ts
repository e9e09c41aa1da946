/** `createGateway`: one server for clients, made of what many servers offer. */
import { realClock } from '../core/clock.ts'
import { toMilliseconds } from '../core/duration.ts'
import { version } from '../core/version.ts'
import { revisions } from '../revisions/index.ts'
import type { Auth } from '../server/auth.ts'
import { createServer, type Server } from '../server/server.ts'
import type { FetchHandler } from '../transports/http/fetch.ts'
import { Parking } from './bridge/desk.ts'
import { Pages } from './bridge/pages.ts'
import { Relay } from './bridge/relay.ts'
import { SharedDesk } from './bridge/shared-desk.ts'
import { Catalog } from './catalog.ts'
import type { Gateway } from './gateway.ts'
import { openKept } from './kept.ts'
import type { GatewayOptions } from './options.ts'
import { SessionNews } from './session-news.ts'
import { type TrustSettings, trustMembers } from './trust/settings.ts'
import { createTrust } from './trust/trust.ts'
import { Upstreams } from './upstreams/upstreams.ts'
import { Watches } from './watches.ts'

/**
 * Opens a gateway. Upstreams come up by themselves, each when it can; `gateway.ready()` waits for the first look at each.
 * @example await using gateway = await createGateway({ servers: { files: { command: 'files-server' }, web: 'https://example.com/mcp' } })
 */
export async function createGateway(options: GatewayOptions): Promise<Gateway> {
  return open(options.config === undefined ? options : await (await import('./config/load.ts')).withConfig(options))
}

async function open(options: GatewayOptions): Promise<Gateway> {
  const { servers = {}, clock = realClock, name = 'vivarium-gateway' } = options
  const kept = await openKept(options.store, clock)
  const trust = createTrust(trustOf(options), {
    name,
    store: kept.store,
    clock,
    trace: (event, detail) => server.engine.trace(event, detail),
    relist: upstream => upstreams.relist(upstream),
    upstreamOf: (kind, exposed) => catalog.upstreamOf(kind, exposed),
  })
  const server = createServer({
    ...trust.serverOptions,
    name,
    version: options.version ?? version,
    revisions: options.revisions ?? revisions.map(({ id }) => id),
    clock,
    ...(options.instructions !== undefined && { instructions: options.instructions }),
    ...(options.secret !== undefined && { secret: options.secret }),
    ...(options.store !== undefined && { store: kept.store }),
    ...(options.askTimeout !== undefined && { askTimeout: options.askTimeout }),
    ...(options.limits !== undefined && { limits: options.limits }),
    ...(options.log !== undefined && { log: options.log }),
    ...(options.onTrace !== undefined && { onTrace: options.onTrace }),
  })
  trust.attach(server)
  const news = options.store === undefined ? undefined : new SessionNews(server, kept.store)
  const shared = options.store === undefined ? undefined : new SharedDesk(kept.store, clock)
  const parking = new Parking({ clock, askMs: toMilliseconds(options.askTimeout ?? '10m'), shared })
  const relay = new Relay(() => upstreams, parking, trust.around)
  const catalog = new Catalog(server, relay, trust, clock, () => watches.look())
  const folders = new WeakMap<object, Set<string>>()
  const rooted = (upstream: string, owner: object): void => {
    const known = folders.get(owner) ?? new Set()
    folders.set(owner, known.add(upstream))
  }
  server.engine.onRoots.add(conversation => {
    for (const upstream of folders.get(conversation) ?? []) upstreams.client(upstream)?.rootsChanged()
  })
  server.engine.absent = name => {
    const upstream = catalog.absent(name)
    return upstream === undefined ? undefined : relay.refusal(upstream)
  }
  const upstreams = new Upstreams({
    clock,
    random: Math.random,
    pins: trust.pins,
    stderr: options.onStderr,
    trace: (event, detail) => server.engine.trace(event, detail),
    pages: new Pages(),
    rooted: (upstream, { owner }) => rooted(upstream, owner),
    announced: (upstream, list) => trust.changed(upstream, list),
    show: (upstream, offer) => catalog.show(upstream, offer),
    hide: upstream => catalog.hide(upstream),
  })
  const updated = (upstream: string, uri: string): void => trust.updated(upstream, uri)
  const watches = new Watches({ server, catalog, updated, client: name => upstreams.client(name) })
  catalog.begin(Object.keys(servers))
  await upstreams.start(servers)
  const gateway: Gateway = {
    ...trust.control,
    server,
    fetch: faceOf(server, trust.auth),
    listen: where => server.listen({ ...options.listen, ...(trust.auth !== undefined && { auth: trust.auth }), ...where }),
    stdio: () => server.stdio(),
    upstreams: () =>
      upstreams.list().map(({ name, status, why, client }) => {
        const { tools, resources, templates, prompts } = catalog.offered(name)
        const counts = { tools: tools.length, resources: resources.length + templates.length, prompts: prompts.length }
        return { name, status, why, revision: client?.revision, ...counts, left: catalog.left(name) }
      }),
    names: () => catalog.names(),
    ready: async () => {
      await upstreams.ready()
      catalog.flush()
    },
    retry: name => upstreams.retry(name),
    close: async () => {
      await parking.close()
      watches.close()
      catalog.close()
      news?.close()
      await server.close()
      await upstreams.close()
      await trust.close()
      await kept.close()
    },
    [Symbol.asyncDispose]: () => gateway.close(),
  }
  return gateway
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

function trustOf(options: GatewayOptions): TrustSettings {
  return Object.fromEntries(trustMembers.flatMap(name => (options[name] === undefined ? [] : [[name, options[name]]])))
}
