/** `createServer`: folds the list of features into one server, and opens it to the world. */
import type { OptionKind } from '../core/options.ts'
import type { CallContext } from '../engine/context.ts'
import { Engine } from '../engine/engine.ts'
import type { Exchange } from '../engine/exchange.ts'
import type { InstalledFeature } from '../engine/server-feature.ts'
import type { SharedSessions } from '../engine/sharing.ts'
import type { Layer } from '../engine/stages.ts'
import type { Acceptor } from '../jsonrpc/connection.ts'
import { SupportedRevisions } from '../revisions/index.ts'
import type { Store } from '../stores/store.ts'
import type { FetchHandler } from '../transports/http/fetch.ts'
import type { Listening } from '../transports/http/listening.ts'
import type { Context, Server, ServerCall, ServerMiddleware, ServerResults } from './api.ts'
import { serverFeatures } from './features.ts'
import { auditControl, createKit, installServerFeatures, type ServerOwnKit } from './kit.ts'
import { checkServerOptions, infoOf, type ServerOptions } from './options.ts'
import { serveFetch, serveHttp, serveStdio } from './serve.ts'
import { addExtraRoutes } from './streams.ts'

export type { Server, ToolOptions } from './api.ts'

const optionKinds: Readonly<Record<string, OptionKind>> = Object.assign({}, ...serverFeatures.map(({ options }) => options))

/**
 * Creates an MCP server that speaks every protocol revision. Register tools, resources, prompts and events, then serve it by
 * `listen()` (HTTP), `stdio()`, or `fetch` on a web-standard runtime.
 * @example
 * const server = createServer({ name: 'shop', version: '1.0.0' })
 * server.tool('stock', { description: 'What is in stock' }, () => '3 loaves')
 * await server.listen()
 */
export function createServer(options: ServerOptions): Server {
  let engine: Engine | undefined
  const kit = kitOf(options, () => engine)
  const features = installServerFeatures(kit, options)
  const made = createEngine(options, kit, features)
  engine = made
  for (const feature of features) {
    feature.installed?.()
    if (feature.beside !== undefined) addExtraRoutes(made, feature.beside)
  }
  const listening = new Set<Listening>()
  const pending = (): Promise<unknown> | undefined => waitedFor(features)
  let serves = false
  const serving = (): void => {
    if (serves) return
    serves = true
    for (const feature of features) feature.serves?.()
  }
  const own: OwnMembers = {
    engine: made,
    audit: auditControl(kit.audit),
    use: layer => {
      kit.middleware.push(middlewareLayer(layer, kit.context))
      made.replan()
      return server
    },
    stdio: async () => {
      serving()
      await Promise.all([pending(), kit.opening.ready()])
      return serveStdio(made)
    },
    listen: async where => {
      serving()
      await Promise.all([pending(), kit.opening.ready()])
      const opened = await serveHttp(made, where)
      listening.add(opened)
      for (const { listens } of features) listens?.(opened.url)
      return opened
    },
    fetch: gated(serveFetch(made, {}), pending, serving),
    fetchWith: where => gated(serveFetch(made, where), pending, serving),
    close: () => closeAll(kit, features, made, listening),
    [Symbol.asyncDispose]: () => server.close(),
  }
  const accepting = (): Acceptor => {
    serving()
    return acceptorOf(made, pending())
  }
  const acceptor = { get: accepting, enumerable: true }
  const late = { acceptor, door: { ...acceptor, enumerable: false } }
  // The members that the features declare in their API types are those that they give here.
  const server = Object.defineProperties(Object.assign({}, ...features.map(each => each.server), own), late) as Server
  return server
}

type OwnMembers = Pick<
  Server,
  'engine' | 'audit' | 'use' | 'stdio' | 'listen' | 'fetch' | 'fetchWith' | 'close' | typeof Symbol.asyncDispose
>

function createEngine(options: ServerOptions, kit: ServerOwnKit, features: readonly InstalledFeature[]): Engine {
  const { clock, limits, trace, sessions, askMs, store, runners } = kit
  const engine: Engine = new Engine({
    role: 'server',
    info: infoOf(options),
    spoken: new SupportedRevisions(options.revisions),
    limits,
    sides: kit.all,
    middleware: kit.middleware,
    clock,
    sessions,
    trace,
    askTimeoutMs: askMs,
    ...Object.assign({}, ...features.map(each => each.engine)),
    ...(kit.shared && sessions ? { shared: { store, runners, sessions: () => shareSessions(engine, store) } } : {}),
  })
  engine.ports = kit.ports
  return engine
}

/** Loaded with the first session. */
async function shareSessions(engine: Engine, shared: () => Promise<Store>): Promise<SharedSessions> {
  const [{ sharedSessions }, store] = await Promise.all([import('../engine/shared-sessions.ts'), shared()])
  const { clock, limits, memories } = engine
  return sharedSessions({ engine, store, clock, idleMs: limits.sessionIdleMs, memories })
}

/** What has to be there before anybody is let in; undefined where all of it is. */
function waitedFor(features: readonly InstalledFeature[]): Promise<unknown> | undefined {
  const loading = features.map(each => each.loading?.()).filter(each => each !== undefined)
  return loading.length === 0 ? undefined : Promise.all(loading)
}

function gated(handler: FetchHandler, pending: () => Promise<unknown> | undefined, serving: () => void): FetchHandler {
  return (request, info) => {
    serving()
    const waiting = pending()
    return waiting === undefined ? handler(request, info) : waiting.then(() => handler(request, info))
  }
}

function acceptorOf(engine: Engine, waiting: Promise<unknown> | undefined): Acceptor {
  if (waiting === undefined) return engine
  return {
    accept: connection => void waiting.then(() => engine.accept(connection)),
    deliver: (text, caller, reply) => void waiting.then(() => engine.deliver(text, caller, reply)),
    listen: async (caller, lane) => {
      await waiting
      await engine.listen(caller, lane)
    },
    leave: (caller, reply) => void waiting.then(() => engine.leave(caller, reply)),
    refusalData: (caller, refusal) => engine.refusalData(caller, refusal),
  }
}

async function closeAll(
  { records, opening }: ServerOwnKit,
  features: readonly InstalledFeature[],
  engine: Engine,
  listening: ReadonlySet<Listening>,
): Promise<void> {
  for (const { stop } of [...features].reverse()) await stop?.()
  await Promise.all([engine.close(), ...[...listening].map(each => each.close())])
  for (const { close } of features) await close?.()
  await records.close()
  await opening.close()
}

/** Runs an author's middleware around every request. */
function middlewareLayer(middleware: ServerMiddleware, context: (exchange: Exchange) => CallContext): Layer {
  return {
    stage: 'enter',
    run: (exchange, next) => {
      const { params } = exchange
      // The routes of a server are those of its features, and the type names them all.
      const method = exchange.route.method.name as ServerCall['method']
      const call = { method, params, context: context(exchange) as Context } as ServerCall
      return middleware(call, async <C extends ServerCall>(changed: C) => {
        exchange.params = changed.params
        return (await next()) as ServerResults[C['method']]
      })
    },
  }
}

/** Checks the options, and makes the kit. A mistake in them has a stack that begins at the author's call of `createServer`. */
function kitOf(options: ServerOptions, engine: () => Engine | undefined): ReturnType<typeof createKit> {
  try {
    checkServerOptions(options, optionKinds)
    return createKit(options, engine)
  } catch (error) {
    // Not on every runtime.
    if (error instanceof TypeError) Error.captureStackTrace?.(error, createServer)
    throw error
  }
}
