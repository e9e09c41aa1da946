/** Opening a server to the world: stdio, HTTP (with the old pair and WebSocket beside it), or web-standard fetch. */
import { checkResource } from '../auth/resource/options.ts'
import type { Authorizer } from '../core/credentials.ts'
import { checkOptions, type KindsOf } from '../core/options.ts'
import type { Engine } from '../engine/engine.ts'
import type { Door } from '../jsonrpc/connection.ts'
import type { FetchHandler, FetchInfo } from '../transports/http/fetch.ts'
import type { HttpLimits } from '../transports/http/limits.ts'
import type { UpgradeHandler } from '../transports/http/listen.ts'
import type { Listening, ListenOptions } from '../transports/http/listening.ts'
import { checkNames, type GuardNames, isLoopbackHost } from '../transports/http/names.ts'
import { type Auth, loadAuthorizer, namedHosts } from './auth.ts'
import { givenLimits } from './options.ts'
import { extraRoutesOf, openStreams } from './streams.ts'

/** How a server listens on HTTP. */
export interface ServeHttpOptions extends Omit<ListenOptions, 'identify' | 'authorizer' | 'streams' | 'document' | 'downloads'> {
  /** Whose tokens are taken, by `oauth`. A bind that others can reach needs it, or 'none' in words. */
  readonly auth?: Auth
  /**
   * Whether streams of 2025-11-25 that can be resumed open with an empty event, so that a reader who is cut off early can come back.
   * Default true. False for clients that take the empty event for a broken message, such as the AI SDK 1.x.
   */
  readonly priming?: boolean
}

const listenKinds: KindsOf<ServeHttpOptions> = {
  port: 'number',
  host: 'string',
  path: 'string',
  ssePath: 'string',
  wsPath: 'string',
  closeMs: 'number',
  onDenied: 'function',
  pages: 'any',
  onError: 'function',
  limits: 'object',
  hosts: 'any',
  origins: 'any',
  auth: 'any',
  priming: 'boolean',
}

/** What the other faces of a server can be told. */
export interface FetchOptions extends GuardNames {
  /** Whose tokens are taken, by `oauth`. Default: whoever calls is let in. */
  readonly auth?: Auth
  /** Whether streams of 2025-11-25 that can be resumed open with an empty event. Default true. */
  readonly priming?: boolean
}

/** Serves one client on standard input and output; settles when it has gone. */
export async function serveStdio(engine: Engine): Promise<void> {
  const { stdioServerConnection } = await import('../transports/stdio/server.ts')
  const conversation = engine.accept(stdioServerConnection({ limits: engine.limits }))
  await new Promise<void>(resolve => conversation.onEnd(resolve))
}

/** Listens on HTTP. Carriers are loaded here, so that a program that never listens never loads them. */
export async function serveHttp(engine: Engine, options: ServeHttpOptions = {}): Promise<Listening> {
  checkOptions('listen', options, listenKinds)
  const { auth, priming, ...rest } = options
  if (!isLoopbackHost(options.host) && auth === undefined) {
    throw new Error(
      `Listening on ${options.host} lets others reach this server without authorization. Bind to 127.0.0.1, give auth: oauth({ … }), or say auth: 'none'`,
    )
  }
  // The port may be known only later; but what others call a public address, nobody here can know.
  let url: string | undefined
  const [authorizer, { httpLimits, listenHttp }] = await Promise.all([
    loadAuthorizer(auth, engine, isLoopbackHost(options.host) ? () => url : undefined),
    import('../transports/http/listen.ts'),
  ])
  const limits = { frameBytes: engine.limits.frameBytes, ...givenLimits('listen: limits', options.limits ?? {}, httpLimits) }
  const streams = await openStreams(engine, { limits, priming })
  const onUpgrade = options.wsPath === undefined ? {} : { onUpgrade: await webSockets(engine, authorizer, streams.limits) }
  const guarded = authorizer === undefined ? {} : { authorizer, hosts: namedHosts(options) }
  const onError = (error: Error): void => engine.trace('listener', error)
  const listening = await listenHttp(engine, {
    ...rest,
    limits,
    streams,
    ...extraRoutesOf(engine),
    ...guarded,
    ...onUpgrade,
    onError,
  })
  url = listening.url
  return listening
}

async function webSockets(
  engine: Engine,
  authorizer: Authorizer | undefined,
  { expiredMs }: HttpLimits,
): Promise<UpgradeHandler> {
  const { authorizerGuard, webSocketUpgrade } = await import('../transports/websocket/server.ts')
  const guard = authorizer === undefined ? {} : { guard: authorizerGuard(authorizer), expiredMs, clock: engine.clock }
  return webSocketUpgrade(connection => engine.accept(connection), { limits: engine.limits, ...guard })
}

/** The web-standard face. Another process may get the next request, so what cannot travel is not promised. */
export function serveFetch(engine: Engine, options: FetchOptions): FetchHandler {
  const { auth, priming } = options
  checkNames(options)
  const door: Door = {
    deliver: (text, caller, reply) => engine.deliver(text, { ...caller, ephemeral: true }, reply),
    listen: (caller, lane) => engine.listen(caller, lane),
    leave: (caller, reply) => engine.leave(caller, reply),
    accept: connection => engine.accept(connection),
    refusalData: (caller, refusal) => engine.refusalData(caller, refusal),
  }
  if (auth !== undefined && auth !== 'none') checkResource(auth)
  let face: Promise<FetchHandler> | undefined
  return async (request: Request, info?: FetchInfo) => {
    face ??= Promise.all([
      import('../transports/http/fetch.ts'),
      loadAuthorizer(auth, engine),
      openStreams(engine, { priming }),
    ]).then(([module, authorizer, streams]) => {
      const guarded = authorizer === undefined ? {} : { hosts: namedHosts(options), authorizer }
      const limits = { frameBytes: engine.limits.frameBytes }
      return module.fetchHandler(door, { ...options, ...guarded, ...extraRoutesOf(engine), limits, streams })
    })
    return (await face)(request, info)
  }
}

// As much of Node's requests and answers as the signatures of adapters name, so that our types can be read without those of
// Node. What is given is the real thing, of `node:http`.

/** A request of `node:http`. */
export interface NodeRequest {
  readonly method?: string | undefined
  readonly url?: string | undefined
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly rawHeaders: readonly string[]
  readonly socket: object
}

/** A response of `node:http`. */
export interface NodeResponse {
  statusCode: number
  readonly headersSent: boolean
  readonly writableEnded: boolean
  setHeader(name: string, value: string | number | readonly string[]): unknown
}
