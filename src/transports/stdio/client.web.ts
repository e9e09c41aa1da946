/** Where no program can be started. */
import { needsNode } from '../../core/required-node.web.ts'
import type { Connection } from '../../jsonrpc/connection.ts'

export function stdioClientConnection(): Connection {
  throw needsNode(
    'Starting a program ({ command })',
    'Connect to the http(s):// or ws(s):// address of a server; `vivarium gateway` gives one to a server on stdio',
  )
}
