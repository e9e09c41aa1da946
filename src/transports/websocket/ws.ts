/**
 * The only file that imports the package `ws`, an optional peer dependency. It is loaded when the first WebSocket is needed,
 * and wrapped in the few functions that the carrier uses.
 */
import type { ClientRequest, IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import type { RawData, WebSocket } from 'ws'

/** An open WebSocket, reduced to what the carrier uses. */
export interface Socket {
  /** Sends a message, or with `final: false` a fragment of one. */
  send(data: string | Buffer, final: boolean): void
  ping(): void
  pong(data: Buffer): void
  pause(): void
  resume(): void
  close(code?: number, reason?: string): void
  /** Closes at once, without a closing handshake. */
  terminate(): void
}

/** What a socket reports to its connection. */
export interface SocketEvents {
  /** A complete message. */
  message(data: Buffer, isText: boolean): void
  /** The other end answered a ping. */
  sign(): void
  /** The other end sent a ping. The connection answers, so that it can skip answers for a peer that does not read. */
  pinged(data: Buffer): void
  /** The socket failed; `ended` follows. */
  error(error: Error): void
  /** The socket is closed. Called once. */
  ended(code: number, reason: string): void
}

/** The handshake of a client. */
interface ConnectOptions {
  readonly protocols: readonly string[]
  readonly headers: Readonly<Record<string, string>>
  readonly maxPayload: number
  readonly handshakeTimeout: number
}

/** What a client socket reports, including the result of its handshake. */
interface ConnectEvents extends SocketEvents {
  /** The handshake succeeded; `stream` is the TCP or TLS socket below. */
  open(stream: Duplex): void
  /** The server answered the handshake with another status than 101. */
  refused(response: IncomingMessage): void
}

/** Answers an upgrade request; `done` gets the socket. The package itself refuses malformed requests. */
type Upgrade = (
  request: IncomingMessage,
  stream: Duplex,
  head: Buffer,
  done: (bind: (events: SocketEvents) => Socket) => void,
) => void

/** The functions of the package that the carrier uses. */
export interface Ws {
  /** Opens a client socket. */
  connect(url: URL, options: ConnectOptions, events: ConnectEvents): Socket
  /** Makes the function that accepts upgrade requests of a server. */
  upgrade(options: { readonly maxPayload: number; readonly protocol: string }): Upgrade
}

/** Loads the package; the error says how to install it. */
export async function loadWs(): Promise<Ws> {
  const ws = await import('ws').catch((cause: unknown) => {
    throw new Error('WebSockets need the package ws, which is not installed. Install it: npm i ws', { cause })
  })
  return {
    connect(url, { protocols, ...options }, events) {
      const socket = new ws.WebSocket(url, [...protocols], { ...options, perMessageDeflate: false, autoPong: false })
      let stream: Duplex | undefined
      socket.on('upgrade', response => {
        stream = response.socket
      })
      socket.on('open', () => stream !== undefined && events.open(stream))
      socket.on('unexpected-response', (_request: ClientRequest, response: IncomingMessage) => events.refused(response))
      return bindSocket(socket, events)
    },
    upgrade({ maxPayload, protocol }) {
      const server = new ws.WebSocketServer({
        noServer: true,
        clientTracking: false,
        perMessageDeflate: false,
        autoPong: false,
        maxPayload,
        handleProtocols: offered => offered.has(protocol) && protocol,
      })
      return (request, stream, head, done) =>
        server.handleUpgrade(request, stream, head, socket => done(events => bindSocket(socket, events)))
    },
  }
}

/** Connects the events of the package to ours. */
function bindSocket(socket: WebSocket, events: SocketEvents): Socket {
  socket.on('message', (data: RawData, isBinary: boolean) => events.message(asBuffer(data), !isBinary))
  socket.on('pong', () => events.sign())
  socket.on('ping', data => events.pinged(data))
  socket.on('error', error => events.error(error))
  socket.on('close', (code, reason) => events.ended(code, reason.toString()))
  return {
    send: (data, final) => socket.send(data, { binary: false, fin: final }),
    ping: () => socket.ping(),
    pong: data => socket.pong(data),
    pause: () => socket.pause(),
    resume: () => socket.resume(),
    close: (code = 1000, reason) => socket.close(code, reason),
    terminate: () => socket.terminate(),
  }
}

/** With its default setting the package delivers one Buffer per message, but its types allow more. */
function asBuffer(data: RawData): Buffer {
  if (Buffer.isBuffer(data)) return data
  return Array.isArray(data) ? Buffer.concat(data) : Buffer.from(data)
}
