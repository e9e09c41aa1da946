/** Where there is no standard input and output. */
import { needsNode } from '../../core/required-node.web.ts'
import type { Connection } from '../../jsonrpc/connection.ts'

export function stdioServerConnection(): Connection {
  throw needsNode('Serving on stdio', 'Give the requests of the platform to server.fetch')
}
