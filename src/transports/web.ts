/** The carriers that need sockets of their own or processes, in the build for browsers and Workers: each refuses, and names what there is instead. */
import { needsNode } from '../core/web.ts'
import type { Connection, Door } from '../jsonrpc/connection.ts'
import type { Listening, ListenOptions } from './http/listening.ts'

export { httpLimits } from './http/limits.ts'

/** Stands in for `http/listen.ts`: the platform listens, and brings requests. */
export async function listenHttp(_door: Door, _options?: ListenOptions): Promise<Listening> {
  throw needsNode('server.listen', 'Give the requests of the platform to server.fetch: export default { fetch: server.fetch }')
}

/** Stands in for `stdio/client.ts`: no program can be started. */
export function stdioClientConnection(): Connection {
  throw needsNode(
    'Starting a program ({ command })',
    'Connect to the http(s):// or ws(s):// address of a server; `vivarium gateway` gives one to a server on stdio',
  )
}

/** Stands in for `stdio/server.ts`: there is no standard input and output. */
export function stdioServerConnection(): Connection {
  throw needsNode('Serving on stdio', 'Give the requests of the platform to server.fetch')
}

/** Stands in for `websocket/server.ts`: sockets cannot be upgraded. */
export function webSocketUpgrade(): never {
  throw needsNode(
    'Serving WebSockets (wsPath)',
    'Give the requests of the platform to server.fetch, which speaks Streamable HTTP',
  )
}

/** Stands in for the guard in `websocket/server.ts`. */
export const authorizerGuard: () => never = webSocketUpgrade
