/** A server behind a WebSocket: one frame a text message. */
import { clip } from '../../jsonrpc/limits.ts'
import { loadWs, type Socket } from '../../transports/websocket/ws.ts'
import { guardedBy } from './hello.ts'
import type { Pipe, PipeSink } from './pipe.ts'

export interface WebSocketPlace {
  readonly url: URL
  readonly headers: Readonly<Record<string, string>>
  /** What is offered. Default `mcp`, and nothing where the server takes none. */
  readonly protocols?: readonly string[] | undefined
}

export function webSocketPipe(place: WebSocketPlace): Pipe {
  let socket: Socket | undefined
  return {
    carrier: 'websocket',
    async start(sink) {
      const { protocols } = place
      if (protocols !== undefined) socket = await connectSocket(place, protocols, sink)
      else socket = await connectSocket(place, ['mcp'], sink).catch(() => connectSocket(place, [], sink))
    },
    async send(text) {
      if (socket === undefined) throw new Error('The socket is not open')
      socket.send(text, true)
      return {}
    },
    async close() {
      socket?.close()
      socket?.terminate()
    },
  }
}

/** Rejects when the server refuses the handshake. */
async function connectSocket({ url, headers }: WebSocketPlace, protocols: readonly string[], sink: PipeSink): Promise<Socket> {
  const ws = await loadWs()
  return new Promise((resolve, reject) => {
    let isOpen = false
    const options = { protocols, headers, maxPayload: 32 * 1024 * 1024, handshakeTimeout: 10_000 }
    const socket: Socket = ws.connect(url, options, {
      open() {
        isOpen = true
        resolve(socket)
      },
      refused(response) {
        reject(guardedBy(response.statusCode) ?? new Error(`The WebSocket was refused with HTTP status ${response.statusCode}`))
        socket.terminate()
      },
      message: (data, isText) => sink.frame(isText ? data.toString('utf8') : `(${data.length} bytes that are no text)`),
      sign() {},
      pinged: data => socket.pong(data),
      error: error => reject(error),
      ended(code, reason) {
        if (isOpen) sink.closed(`closed with ${code} ${clip(reason)}`)
      },
    })
  })
}
