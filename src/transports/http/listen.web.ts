/** Where the platform listens, and brings requests. */
import { needsNode } from '../../core/required-node.web.ts'
import type { Door } from '../../jsonrpc/connection.ts'
import type { Listening, ListenOptions } from './listening.ts'

export { httpLimits } from './limits.ts'

export async function listenHttp(_door: Door, _options?: ListenOptions): Promise<Listening> {
  throw needsNode('server.listen', 'Give the requests of the platform to server.fetch: export default { fetch: server.fetch }')
}
