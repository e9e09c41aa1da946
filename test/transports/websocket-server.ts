/** A WebSocket server on loopback for the tests of this folder. */
import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Connection } from '../../src/jsonrpc/connection.ts'
import { type WebSocketServerOptions, webSocketUpgrade } from '../../src/transports/websocket/server.ts'

export interface TestServer {
  readonly url: string
  readonly server: Server
  /** The next connection that comes in, not started. */
  accepted(): Promise<Connection>
  close(): Promise<void>
}

export async function testServer(options: WebSocketServerOptions = {}): Promise<TestServer> {
  const arrived: Connection[] = []
  const awaited: ((connection: Connection) => void)[] = []
  const server = createServer()
  const take = (connection: Connection) => {
    const next = awaited.shift()
    if (next === undefined) arrived.push(connection)
    else next(connection)
  }
  server.on('upgrade', await webSocketUpgrade(take, options))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return {
    url: `ws://127.0.0.1:${port}/ws`,
    server,
    accepted() {
      const connection = arrived.shift()
      return connection === undefined ? new Promise(done => awaited.push(done)) : Promise.resolve(connection)
    },
    async close() {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}
