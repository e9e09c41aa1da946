/** Opening a server to the world: stdio, HTTP (with the old pair and WebSocket beside it), or web-standard fetch. */
import { checkResource } from '../auth/resource/options.ts'
import type { Authorizer } from '../core/credentials.ts'
import { checkOptions, type KindsOf } from '../core/options.ts'
import type { Engine } from '../engine/engine.ts'
import type { Acceptor } from '../jsonrpc/connection.ts'
import type { FetchHandler, FetchInfo } from '../transports/http/fetch.ts'
import type { GivenHttpLimits, HttpLimits } from '../transports/http/limits.ts'
import type { UpgradeHandler } from '../transports/http/listen.ts'
import type { Listening, ListenOptions } from '../transports/http/listening.ts'
import { checkNames, type GuardNames, isLoopbackHost } from '../transports/http/names.ts'
import { type Auth, loadAuthorizer, namedHosts } from './auth.ts'
import { givenLimits } from './options.ts'
import { extraRoutesOf, openStreams } from './streams.ts'

/** Options of `server.listen`. */
export interface ServeHttpOptions
  extends Omit<ListenOptions, 'identify' | 'authorizer' | 'streams' | 'document' | 'downloads' | 'limits'> {
  /** Limits of connections, streams and queues that differ from the defaults. */
  readonly limits?: GivenHttpLimits
  /**
   * Whose tokens are accepted: the result of `oauth`, or `'none'`. Required if others can reach the address. Default: on
   * loopback, everybody may call.
   */
  readonly auth?: Auth
  /**
   * Whether resumable streams of 2025-11-25 begin with an empty event, so that a client that is disconnected early can resume.
   * Set it to false for clients that take the event for a broken message, such as the AI SDK 1.x. Default true.
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

/** Options of `server.fetchWith` and of the adapters for web frameworks. */
export interface FetchOptions extends GuardNames {
  /** Whose tokens are accepted: the result of `oauth`, or `'none'`. Default: everybody may call. */
  readonly auth?: Auth
  /** Whether resumable streams of 2025-11-25 begin with an empty event. Default true. */
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
      `Listening on ${options.host} lets other machines reach this server without authorization. Listen on 127.0.0.1, set auth: oauth({ … }), or set auth: 'none' to allow it`,
    )
  }
  // The port may be known only later; but what others call a public address, nobody here can know.
  let url: string | undefined
  const [authorizer, { httpLimits, listenHttp, renamedHttpLimits }] = await Promise.all([
    loadAuthorizer(auth, engine, isLoopbackHost(options.host) ? () => url : undefined),
    import('../transports/http/listen.ts'),
  ])
  const given = givenLimits('listen: limits', renamedHttpLimits(options.limits ?? {}), httpLimits)
  const limits = { frameBytes: engine.limits.frameBytes, ...given }
  const streams = await openStreams(engine, { limits, priming })
  const onUpgrade = options.wsPath === undefined ? {} : { onUpgrade: await webSockets(engine, authorizer, streams.limits) }
  const guarded = authorizer === undefined ? {} : { authorizer, hosts: namedHosts(options) }
  const onError = (error: Error): void => {
    engine.trace('listener', error)
    options.onError?.(error)
  }
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
  const acceptor: Acceptor = {
    deliver: (text, caller, reply) => engine.deliver(text, { ...caller, ephemeral: true }, reply),
    listen: (caller, lane) => engine.listen(caller, lane),
    leave: (caller, reply) => engine.leave(caller, reply),
    accept: connection => engine.accept(connection),
    refusalData: (caller, refusal) => engine.refusalData(caller, refusal),
  }
  if (auth !== undefined && auth !== 'none') checkResource(auth)
  let handler: Promise<FetchHandler> | undefined
  return async (request: Request, info?: FetchInfo) => {
    handler ??= Promise.all([
      import('../transports/http/fetch.ts'),
      loadAuthorizer(auth, engine),
      openStreams(engine, { priming }),
    ]).then(([module, authorizer, streams]) => {
      const guarded = authorizer === undefined ? {} : { hosts: namedHosts(options), authorizer }
      const limits = { frameBytes: engine.limits.frameBytes }
      return module.fetchHandler(acceptor, { ...options, ...guarded, ...extraRoutesOf(engine), limits, streams })
    })
    return (await handler)(request, info)
  }
}

// As much of Node's requests and answers as the signatures of adapters name, so that our types can be read without those of
// Node. What is given is the real thing, of `node:http`.

/** The part of a `node:http` request that adapters use. */
export interface NodeRequest {
  /** The HTTP method. */
  readonly method?: string | undefined
  /** The path and query of the request. */
  readonly url?: string | undefined
  /** The request headers, with lower-case names. */
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  /** The request headers as they were sent: names and values in turn. */
  readonly rawHeaders: readonly string[]
  /** The socket of the connection. */
  readonly socket: object
}

/** The part of a `node:http` response that adapters use. */
export interface NodeResponse {
  /** The HTTP status. */
  statusCode: number
  /** Whether the head was sent. */
  readonly headersSent: boolean
  /** Whether the response has ended. */
  readonly writableEnded: boolean
  /** Sets a response header. */
  setHeader(name: string, value: string | number | readonly string[]): unknown
}
