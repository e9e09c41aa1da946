/** Raw servers on a pipe of a real child, and on a WebSocket. */
import { once } from 'node:events'
import { createServer, type Socket } from 'node:net'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { WebSocketServer } from 'ws'
import type { RawServer } from './raw-server.ts'
import { type Answer, type Frame, Script } from './script.ts'

type Answers = Readonly<Record<string, Answer>>

/** The part of a raw server that sends and is answered over one line. */
function duplex(script: Script, send: (frame: Frame) => void): Pick<RawServer, 'ask' | 'tell' | 'answerTo' | 'begin'> {
  return {
    begin: (method, params, id = script.nextId()) => {
      send({ jsonrpc: '2.0', id, method, params })
      return id
    },
    tell: (method, params) => send({ jsonrpc: '2.0', method, params }),
    answerTo: id => script.until(() => script.heard.find(frame => frame['id'] === id && frame['method'] === undefined)),
    async ask(method, params, id) {
      return this.answerTo(this.begin(method, params, id))
    },
  }
}

function take(script: Script, text: string, send: (frame: Frame) => void): void {
  const frame = JSON.parse(text) as Frame
  script.note(frame)
  script.answer(frame).then(answer => {
    if (answer !== undefined) send(answer)
  })
}

export async function stdioServer(answers: Answers): Promise<RawServer> {
  const script = new Script(answers)
  const sockets = new Set<Socket>()
  let latest: Socket | undefined
  const write = (text: string): void => void latest?.write(text)
  const send = (frame: Frame): void => write(`${JSON.stringify(frame)}\n`)
  const server = createServer(socket => {
    sockets.add(socket)
    latest = socket
    socket.on('error', () => {})
    createInterface({ input: socket }).on('line', line => take(script, line, send))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as { port: number }
  return {
    ...duplex(script, send),
    carrier: 'stdio',
    script,
    write,
    target: { command: process.execPath, args: [fileURLToPath(new URL('relay.mjs', import.meta.url)), String(port)] },
    options: { revisions: ['2025-11-25', '2024-11-05'] },
    async close() {
      for (const socket of sockets) socket.destroy()
      server.close()
      await once(server, 'close')
    },
  }
}

export async function webSocketServer(answers: Answers): Promise<RawServer> {
  const script = new Script(answers)
  const server = new WebSocketServer({ port: 0, host: '127.0.0.1' })
  await once(server, 'listening')
  const write = (text: string): void => {
    for (const socket of server.clients) socket.send(text)
  }
  const send = (frame: Frame): void => write(JSON.stringify(frame))
  server.on('connection', socket => {
    socket.on('message', data => take(script, String(data), send))
  })
  const { port } = server.address() as { port: number }
  return {
    ...duplex(script, send),
    carrier: 'websocket',
    script,
    write,
    target: `ws://127.0.0.1:${port}`,
    options: { revisions: ['2025-11-25', '2024-11-05'] },
    async close() {
      for (const socket of server.clients) socket.terminate()
      server.close()
      await once(server, 'close')
    },
  }
}
