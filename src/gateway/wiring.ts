/** Creates the parts of a gateway and connects them. They refer to each other in cycles, so none is called before all exist. */

import type { Client } from '../client/client.ts'
import { type Clock, realClock, toMilliseconds } from '../core/clock.ts'
import { createSeal } from '../core/handle.ts'
import { heardLog } from '../core/heard-log.ts'
import { logFrom, type Trace } from '../core/log.ts'
import { extensionCapability } from '../engine/extensions.ts'
import { stateExtension } from '../features/reliability/session-state/messages.ts'
import { type Awaitable, picked } from '../jsonrpc/message.ts'
import { revisions } from '../revisions/index.ts'
import { version } from '../revisions/revision.ts'
import type { Context } from '../server/api.ts'
import type { ServerOptions } from '../server/options.ts'
import { createServer, type Server } from '../server/server.ts'
import type { Store } from '../stores/store.ts'
import { Links } from './addresses.ts'
import { ParkedCalls, SharedParkedCalls } from './bridge/parked-calls.ts'
import { Pages } from './bridge/questions.ts'
import { Relay } from './bridge/relay.ts'
import { UpstreamStateTokens } from './bridge/states.ts'
import { GatewayCatalog } from './catalog.ts'
import type { GatewayOptions } from './gateway.ts'
import { Aliases } from './names.ts'
import { StartupWait } from './ops/startup-wait.ts'
import { sharesOf, WatchShares } from './shares.ts'
import { createTrust, type Trust } from './trust/trust.ts'
import { SessionNews, UpstreamSubscriptions } from './upstream-subscriptions.ts'
import { credentialsParts } from './upstreams/entry.ts'
import { Upstreams } from './upstreams/upstreams.ts'

/** The parts that `create.ts` uses. */
export type Parts = ReturnType<typeof createGatewayParts>

/** Creates all parts of a gateway and connects them to each other. */
export function createGatewayParts(options: GatewayOptions, store: Store) {
  const { clock = realClock, name = 'vivarium-gateway' } = options
  const trace: Trace = (event, detail) => server.engine.trace(event, detail)
  const trust = createTrust(options, {
    name,
    store,
    clock,
    trace,
    relist: upstream => upstreams.relist(upstream),
    relaunch: upstream => upstreams.retry(upstream),
    upstreams: () => upstreams.list().map(({ name }) => name),
    originOf: (kind, exposed) => catalog.originOf(kind, exposed) ?? (kind === 'resource' ? watches.placeOf(exposed) : undefined),
  })
  const server = createServer(serverOptionsOf(options, name, clock, store, trust))
  const aliases = new Aliases()
  // Before all other layers, so that rules see the real name.
  server.engine.extend({ layers: [aliases.layer] })
  trust.attach(server)
  const news = options.store === undefined ? undefined : new SessionNews(server, store)
  const parking = parkingOf(options, clock, store)
  const relay = new Relay({
    name,
    parking,
    calls: trust.calls,
    states: new UpstreamStateTokens(createSeal({ secrets: options.secret, clock }), clock),
    upstreams: () => upstreams,
    address: (upstream, uri, exchange) => links.address(upstream, uri, exchange),
    readable: (upstream, own, { caller }) => trust.visibility.reads(caller, 'resource', { upstream, own }),
  })
  const naming = { aliases, prefixes: (upstream: string) => upstreams.prefix(upstream) }
  const catalog = new GatewayCatalog(server, relay, trust, clock, () => watches.look(), naming)
  const links = new Links(catalog)
  server.engine.listAudience = list => catalog.news.take(list)
  extendServer(server, relay, catalog, links, trust)
  server.engine.absent = (kind, exposed) => {
    const upstream = catalog.absent(kind, exposed)
    return upstream === undefined ? undefined : relay.refusal(upstream)
  }
  const client: Upstreams['client'] = upstream => upstreams.client(upstream)
  const shares = sharesOf(options.shares)
  const rooted = followRoots(server, client)
  const upstreams: Upstreams = new Upstreams({
    clock,
    shares,
    random: Math.random,
    pins: trust.pins,
    admit: (upstream, target, pinned) => trust.launches.admit(upstream, target, pinned),
    up: upsTo(options),
    credentials: credentialsParts(options),
    stderr: options.onStderr,
    frameBytes: options.limits?.frameBytes,
    names: options.names,
    trace,
    pages: new Pages(),
    rooted: (upstream, { owner }) => rooted(upstream, owner),
    seesAll: (upstream, caller) => !trust.visibility.limits || trust.visibility.all(caller, upstream),
    announced: (upstream, list) => trust.news?.changed(upstream, list),
    show: (upstream, offer) => catalog.show(upstream, offer),
    hide: upstream => catalog.hide(upstream),
  })
  const watchShares = new WatchShares(shares.subscriptions, uri => catalog.resource(uri))
  server.engine.extend({ layers: [watchShares.layer] })
  const watches = new UpstreamSubscriptions({ server, catalog, clock, news: trust.news, client })
  const waitMs = toMilliseconds(options.startWait ?? '5s', 'startWait')
  const firstLook = new StartupWait({ engine: server.engine, clock, waitMs, knows: (kind, shown) => catalog.knows(kind, shown) })
  // A part closes before those that it uses.
  const ends: readonly (() => Awaitable<void>)[] = [
    () => firstLook.finish(),
    () => parking.close(),
    () => watches.close(),
    () => catalog.close(),
    () => news?.close(),
    () => server.close(),
    () => upstreams.close(),
    () => trust.close(),
    () => (typeof options.store === 'object' ? undefined : store.close()),
  ]
  return { server, trust, catalog, upstreams, firstLook, parking, store, ends }
}

/** Adds to the server face: `_meta` of upstreams, session state, and reads of unlisted addresses. */
function extendServer({ engine }: Server, relay: Relay, catalog: GatewayCatalog, links: Links, trust: Trust): void {
  engine.extend({
    layers: [relay.layer],
    capabilities: revision => (catalog.stateful ? extensionCapability(revision, stateExtension) : {}),
  })
  engine.unlisted = (uri, exchange) => {
    const place = links.find(uri, exchange)
    if (place === undefined || !trust.visibility.reads(exchange.caller, 'resource', place)) return undefined
    return (_: unknown, ctx: Context) => relay.read({ ...place, exposed: uri }, ctx)
  }
}

/** The options of the server that clients connect to. */
function serverOptionsOf(options: GatewayOptions, name: string, clock: Clock, store: Store, trust: Trust): ServerOptions {
  return {
    ...trust.serverOptions,
    name,
    // Declared even if no upstream offers them yet: clients read capabilities only once.
    offers: ['tools', 'prompts', 'resources', 'completions'],
    version: options.version ?? version,
    revisions: options.revisions ?? revisions.map(({ id }) => id),
    clock,
    ...picked(options, 'instructions', 'secret', 'askTimeout', 'limits', 'onTrace'),
    ...(options.store !== undefined && { store }),
    // Details that clients are not told go to the log.
    log: heardLog(logFrom(options.log, options.onTrace === undefined ? 'warn' : 'silent'), options.onLog),
  }
}

/** With a store, clients can continue parked calls at any process that shares it. */
function parkingOf({ store: given, askTimeout = '10m' }: GatewayOptions, clock: Clock, store: Store): ParkedCalls {
  const shared = given === undefined ? undefined : new SharedParkedCalls(store, clock)
  return new ParkedCalls({ clock, askMs: toMilliseconds(askTimeout), shared })
}

/** Logs that an upstream is connected, at `info` by default, so that recovery is as visible as failure. */
function upsTo({ log, onTrace, onLog, name = 'vivarium-gateway' }: GatewayOptions) {
  const to = heardLog(logFrom(log, onTrace === undefined ? 'info' : 'silent'), onLog).child({ server: name })
  return (upstream: string, revision: string | undefined): void => {
    const said = { server: upstream, ...(revision !== undefined && { revision }) }
    to.info('upstream-up', said)
    onTrace?.('upstream-up', said)
  }
}

// Roots: an upstream that asked for a client's roots is notified when they change.

/** Returns a function that records which upstream asked which client. */
function followRoots(
  server: Server,
  client: (upstream: string) => Client | undefined,
): (upstream: string, owner: object) => void {
  const askers = new WeakMap<object, Set<string>>()
  server.engine.onRoots.add(conversation => {
    for (const upstream of askers.get(conversation) ?? []) client(upstream)?.rootsChanged()
  })
  return (upstream, owner) => {
    const known = askers.get(owner) ?? new Set()
    askers.set(owner, known.add(upstream))
  }
}
