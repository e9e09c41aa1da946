/** A server as a child process: one frame a line, and all that its standard output says, frame or not. */
import { realClock } from '../../core/clock.ts'
import { settlesWithin } from '../../core/deadlines.ts'
import type { Acceptor } from '../../jsonrpc/connection.ts'
import { clip } from '../../jsonrpc/limits.ts'
import { memoryPair } from '../../transports/memory.ts'
import { RunningCommand } from '../../transports/stdio/command.ts'
import { loadWs, type Socket } from '../../transports/websocket/ws.ts'
import { Failed, type Subject } from '../scenario.ts'
import { guardedBy } from './envelope.ts'
import type { ChildControl, Pipe, PipeSink } from './raw-peer.ts'

const stderrLines = 20
const exitMs = 500
/** A line that never ends is not kept. */
const longestLine = 64 * 1024 * 1024

/** Starts the process, and speaks with it by lines. */
export function stdioPipe(subject: Subject): Pipe {
  const stderr: string[] = []
  let running: RunningCommand | undefined
  const write = (bytes: string | Uint8Array): Promise<void> =>
    new Promise((resolve, reject) => {
      if (running === undefined) reject(new Error('The process has not been started'))
      else running.input.write(bytes, error => (error ? reject(inputClosed(error)) : resolve()))
    })
  return {
    carrier: 'stdio',
    async start(sink) {
      const keep = (line: string): void => {
        stderr.push(line)
        if (stderr.length > stderrLines) stderr.shift()
      }
      running = new RunningCommand({ ...subject, stderr: keep, closeMs: 1500, killMs: 1500 }, realClock)
      running.input.on('error', () => {})
      readLines(running, sink, stderr)
      await running.started
    },
    async send(text) {
      await write(`${text}\n`)
      return {}
    },
    child: childControl(() => running, stderr, write),
    async close() {
      running?.input.end()
      running?.output.resume()
      await running?.end()
    },
  }
}

/** It runs, and takes nothing more. */
function inputClosed(error: Error): Failed {
  return new Failed(`The process no longer reads its standard input (${error.message})`)
}

function readLines(running: RunningCommand, sink: PipeSink, stderr: readonly string[]): void {
  let rest = ''
  running.output.setEncoding('utf8')
  running.output.on('data', (text: string) => {
    const lines = (rest + text).split('\n')
    rest = lines.pop() ?? ''
    for (const line of lines) sink.frame(line.endsWith('\r') ? line.slice(0, -1) : line)
    if (rest.length <= longestLine) return
    rest = ''
    sink.closed(`a line is longer than ${longestLine} characters`)
  })
  running.output.once('close', () => {
    if (rest !== '') sink.frame(rest)
    // Its output may close a little before it has ended.
    settlesWithin(running.exited, exitMs, realClock).finally(() => sink.closed(ending(running, stderr)))
  })
}

/** How it ended, and what it said last: mostly the reason. */
function ending({ status }: RunningCommand, stderr: readonly string[]): string {
  const words = stderr.findLast(line => /error|exception|fatal/i.test(line)) ?? stderr.findLast(line => line.trim() !== '')
  const said = words === undefined ? '' : `; its standard error says: ${words.trim()}`
  if (status === undefined) return `the process closed its standard output${said}`
  const { code, signal } = status
  return `${signal === undefined ? `the process ended with code ${code ?? 'unknown'}` : `the process was ended by ${signal}`}${said}`
}

function childControl(
  running: () => RunningCommand | undefined,
  stderr: readonly string[],
  write: ChildControl['write'],
): ChildControl {
  return {
    write,
    stderr,
    endInput: () => void running()?.input.end(),
    exited: async ms => {
      const command = running()
      return command === undefined || settlesWithin(command.exited, ms, realClock)
    },
    get status() {
      return running()?.status
    },
  }
}

// ── A server behind a WebSocket: one frame a text message.

/** Where a server is reached over WebSocket. */
interface WebSocketPlace {
  readonly url: URL
  readonly headers: Readonly<Record<string, string>>
  /** What is offered. Default `mcp`, and nothing where the server takes none. */
  readonly protocols?: readonly string[] | undefined
}

/** Connects with the subprotocol `mcp`, or without where the server knows none. */
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
      socket.send(text)
      return {}
    },
    async close() {
      socket?.close(1000)
      socket?.terminate()
    },
  }
}

/** Rejects when the server refuses the handshake. */
async function connectSocket({ url, headers }: WebSocketPlace, protocols: readonly string[], sink: PipeSink): Promise<Socket> {
  const ws = await loadWs()
  return new Promise((resolve, reject) => {
    const options = { headers, maxPayload: 32 * 1024 * 1024, handshakeTimeout: 10_000 }
    const socket = ws.connect(url, protocols, options)
    socket.on('open', () => {
      socket.on('close', (code, reason) => sink.closed(`closed with ${code} ${clip(reason.toString())}`))
      resolve(socket)
    })
    socket.on('unexpected-response', (_request, { statusCode }) => {
      reject(guardedBy(statusCode) ?? new Error(`The WebSocket was refused with HTTP status ${statusCode}`))
      socket.terminate()
    })
    socket.on('message', (data, isBinary) => {
      const bytes = data as Buffer
      sink.frame(isBinary ? `(${bytes.length} bytes that are not text)` : bytes.toString('utf8'))
    })
    socket.on('ping', data => socket.pong(data))
    socket.on('error', reject)
  })
}

// ── A server in this process, reached through its door.

/** Speaks with a server of this process. */
export function memoryPipe(acceptor: Acceptor): Pipe {
  const [near, far] = memoryPair()
  return {
    carrier: 'memory',
    async start(sink) {
      acceptor.accept(far)
      await near.start({
        frame: text => sink.frame(text),
        fault: fault => sink.frame(fault.message),
        closed: reason => sink.closed(reason?.message ?? 'closed'),
      })
    },
    async send(text) {
      await near.send(text)
      return {}
    },
    close: () => near.close(),
  }
}
