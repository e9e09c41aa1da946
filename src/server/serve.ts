/** Opening a server to the world: stdio, HTTP (with the old pair and WebSocket beside it), or web-standard fetch. */
import type { Engine } from '../engine/engine.ts'
import type { Door } from '../jsonrpc/connection.ts'
import type { FetchHandler, FetchInfo } from '../transports/http/fetch.ts'
import type { Listening, ListenOptions } from '../transports/http/listen.ts'
import { checkNames, type GuardNames } from '../transports/http/names.ts'
import { givenLimits } from './options.ts'

export interface ServeHttpOptions extends Omit<ListenOptions, 'onUpgrade' | 'identify' | 'streams'> {
  /** A bind that others can reach needs authorization, or this in words. */
  readonly auth?: 'none'
}

export type FetchOptions = GuardNames

/** Serves one client on standard input and output; settles when it has gone. */
export async function serveStdio(engine: Engine): Promise<void> {
  const { stdioServerConnection } = await import('../transports/stdio/server.ts')
  const conversation = engine.accept(stdioServerConnection({ limits: engine.limits }))
  await new Promise<void>(resolve => conversation.onEnd(resolve))
}

/** Listens on HTTP. Carriers are loaded here, so that a program that never listens never loads them. */
export async function serveHttp(engine: Engine, options: ServeHttpOptions = {}): Promise<Listening> {
  const { auth, ...rest } = options
  if (!isLoopback(options.host) && auth !== 'none') {
    throw new Error(
      `Listening on ${options.host} lets others reach this server without authorization. Bind to 127.0.0.1, or say auth: 'none'`,
    )
  }
  const { httpLimits, listenHttp, Streams } = await import('../transports/http/listen.ts')
  const limits = { frameBytes: engine.limits.frameBytes, ...givenLimits('listen: limits', options.limits ?? {}, httpLimits) }
  const streams = new Streams({ limits })
  engine.onSessionEnd(id => streams.forget(id))
  const onUpgrade = options.wsPath === undefined ? {} : { onUpgrade: await webSockets(engine) }
  return listenHttp(engine, { ...rest, limits, streams, ...onUpgrade, onError: error => engine.trace('listener', error) })
}

async function webSockets(engine: Engine): Promise<NonNullable<ListenOptions['onUpgrade']>> {
  const { webSocketUpgrade } = await import('../transports/websocket/server.ts')
  return webSocketUpgrade(connection => engine.accept(connection), { limits: engine.limits })
}

/** The web-standard face. Another process may get the next request, so what cannot travel is not promised. */
export function fetchFace(engine: Engine, options: FetchOptions): FetchHandler {
  checkNames(options)
  const door: Door = {
    deliver: (text, caller, reply) => engine.deliver(text, { ...caller, ephemeral: true }, reply),
    listen: (caller, lane) => engine.listen(caller, lane),
    leave: (caller, reply) => engine.leave(caller, reply),
    accept: connection => engine.accept(connection),
  }
  let face: Promise<FetchHandler> | undefined
  return async (request: Request, info?: FetchInfo) => {
    face ??= import('../transports/http/fetch.ts').then(({ fetchHandler }) => fetchHandler(door, options))
    return (await face)(request, info)
  }
}

function isLoopback(host: string | undefined): boolean {
  return host === undefined || host === 'localhost' || host === '::1' || host.startsWith('127.')
}
