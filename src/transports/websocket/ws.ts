/**
 * The only file that imports the package `ws`, an optional peer dependency. It is loaded when the first WebSocket is needed.
 */
import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import type { WebSocket } from 'ws'

export type { WebSocket as Socket } from 'ws'

/** The handshake of a client. */
interface ConnectOptions {
  readonly headers: Readonly<Record<string, string>>
  readonly maxPayload: number
  readonly handshakeTimeout: number
}

/** Answers an upgrade request; `done` gets the socket. The package itself refuses malformed requests. */
type Upgrade = (request: IncomingMessage, stream: Duplex, head: Buffer, done: (socket: WebSocket) => void) => void

/** Pongs are left to the connection, so that it can skip answers for a peer that does not read. */
const shared = { perMessageDeflate: false, autoPong: false }

/** Loads the package; the error says how to install it. */
export async function loadWs() {
  const ws = await import('ws').catch((cause: unknown) => {
    throw new Error('WebSockets need the package ws, which is not installed. Run npm install ws', { cause })
  })
  return {
    /** Opens a client socket. */
    connect(url: URL, protocols: readonly string[], options: ConnectOptions): WebSocket {
      return new ws.WebSocket(url, [...protocols], { ...options, ...shared })
    },
    /** Makes the function that accepts upgrade requests of a server. */
    upgrade(maxPayload: number, protocol: string): Upgrade {
      const handleProtocols = (offered: ReadonlySet<string>) => offered.has(protocol) && protocol
      const server = new ws.WebSocketServer({ noServer: true, clientTracking: false, maxPayload, handleProtocols, ...shared })
      return (request, stream, head, done) => server.handleUpgrade(request, stream, head, done)
    },
  }
}
