/** The one place that knows the package `ws`, an optional peer: it is loaded when the first WebSocket is wanted. */
import type { ClientRequest, IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import type { RawData, WebSocket } from 'ws'

/** An open socket, as much of it as we need. */
export interface Socket {
  /** A message, or with `final: false` a part of one. */
  send(data: string | Buffer, final: boolean): void
  ping(): void
  pong(data: Buffer): void
  pause(): void
  resume(): void
  close(code?: number, reason?: string): void
  /** Ends it at once, without a farewell. */
  terminate(): void
}

export interface SocketEvents {
  message(data: Buffer, isText: boolean): void
  /** The other end has shown that it lives. */
  sign(): void
  /** The other end has asked for a sign of life; it is for us to answer, or not to pile up answers. */
  pinged(data: Buffer): void
  error(error: Error): void
  /** The end; called once. */
  ended(code: number, reason: string): void
}

interface ConnectOptions {
  readonly protocols: readonly string[]
  readonly headers: Readonly<Record<string, string>>
  readonly maxPayload: number
  readonly handshakeTimeout: number
}

interface ConnectEvents extends SocketEvents {
  open(stream: Duplex): void
  /** The server has answered, but not with an upgrade. */
  refused(response: IncomingMessage): void
}

/** Answers an upgrade request; `done` gets the socket. What is no proper request is refused by the package itself. */
type Upgrade = (
  request: IncomingMessage,
  stream: Duplex,
  head: Buffer,
  done: (bind: (events: SocketEvents) => Socket) => void,
) => void

export interface Ws {
  connect(url: URL, options: ConnectOptions, events: ConnectEvents): Socket
  upgrade(options: { readonly maxPayload: number; readonly protocol: string }): Upgrade
}

/** Loads the package ws. */
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

/** By its default setting the package gives one Buffer a message; its types do not know that. */
function asBuffer(data: RawData): Buffer {
  if (Buffer.isBuffer(data)) return data
  return Array.isArray(data) ? Buffer.concat(data) : Buffer.from(data)
}
