/**
 * Replacements for the carriers that need Node, in the build for browsers and Workers. Each throws an error that names the
 * alternative on that platform. One file, because the build maps several modules to it.
 */
import { needsNode } from '../core/web.ts'

export { httpLimits } from './http/limits.ts'

/** Replaces `http/listen.ts`: on these platforms the runtime listens and passes requests to `server.fetch`. */
export async function listenHttp(): Promise<never> {
  throw needsNode('server.listen', 'Pass the requests of the platform to server.fetch: export default { fetch: server.fetch }')
}

/** Replaces `stdio/client.ts`: no process can be started. */
export function stdioClientConnection(): never {
  throw needsNode(
    'Starting a program ({ command })',
    'Connect to the http(s):// or ws(s):// address of a server; `vivarium gateway` provides one for a server on stdio',
  )
}

/** Replaces `stdio/server.ts`: there is no standard input or output. */
export function stdioServerConnection(): never {
  throw needsNode('Serving on stdio', 'Pass the requests of the platform to server.fetch')
}

/** Replaces `websocket/server.ts`: sockets cannot be upgraded. */
export function webSocketUpgrade(): never {
  throw needsNode(
    'Serving WebSockets (wsPath)',
    'Pass the requests of the platform to server.fetch, which serves Streamable HTTP',
  )
}

/** Replaces the guard of `websocket/server.ts`. */
export const authorizerGuard: () => never = webSocketUpgrade
