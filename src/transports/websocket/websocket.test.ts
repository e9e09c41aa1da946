/** Both ends of a WebSocket over loopback, under the contract of all connections. */

import { connectionContract } from '../../../test/transports/contract.ts'
import { testServer } from '../../../test/transports/websocket-server.ts'
import type { Connection, Outgoing, Sink } from '../../jsonrpc/connection.ts'
import { webSocketClientConnection } from './client.ts'
import { webSocketClientConnection as webClientConnection } from './client.web.ts'

/** The serving end, which comes into being only when the client is started. */
class Coming implements Connection {
  readonly carrier = 'websocket'
  readonly #coming: Promise<Connection>
  #come: Connection | undefined = undefined

  constructor(coming: Promise<Connection>) {
    this.#coming = coming
  }

  async start(sink: Sink): Promise<void> {
    this.#come = await this.#coming
    await this.#come.start(sink)
  }

  send(frame: string, outgoing?: Outgoing): void | Promise<void> {
    return this.#come?.send(frame, outgoing)
  }

  async close(): Promise<void> {
    await this.#come?.close()
  }
}

connectionContract('websocket', async () => {
  const server = await testServer()
  const left = webSocketClientConnection(server.url)
  return { left, right: new Coming(server.accepted()), cleanup: () => server.close() }
})

connectionContract("websocket of the platform's own", async () => {
  const server = await testServer()
  const left = webClientConnection(server.url)
  return { left, right: new Coming(server.accepted()), cleanup: () => server.close() }
})
