/** The stage on a pipe of a child, on a WebSocket, and in memory: lines that carry frames both ways. */
import { once } from 'node:events'
import { createServer, type Socket } from 'node:net'
import { createInterface } from 'node:readline'
import type { Connection } from '../../../jsonrpc/connection.ts'
import { memoryPair } from '../../../transports/memory.ts'
import { promised } from '../../wire/let-go.ts'
import type { Book } from './book.ts'
import type { Way } from './script.ts'

export interface DuplexStage {
  readonly book: Book
  take(text: string, way: Way): void
}

/** Lines, newest last; the newest is where things are said unasked. */
export class Lines {
  readonly #open: { readonly line: number; write(text: string): void; end(): void }[] = []
  readonly #stage: DuplexStage

  constructor(stage: DuplexStage) {
    this.#stage = stage
  }

  /** Frames of a new line are given to what is returned. */
  add(write: (text: string) => void, end: () => void): { heard(text: string): void; ended(): void } {
    const { book, take } = this.#stage
    const line = book.newLine()
    const entry = { line, write, end }
    this.#open.push(entry)
    const way: Way = {
      line,
      write: text => {
        book.told(text, line)
        write(text)
      },
      finish: text => {
        if (text !== undefined) way.write(text)
      },
      cut: end,
    }
    return {
      heard: text => take(text, way),
      ended: () => {
        const at = this.#open.indexOf(entry)
        if (at < 0) return
        this.#open.splice(at, 1)
        book.left(line)
      },
    }
  }

  unasked(text: string): boolean {
    const newest = this.#open.at(-1)
    if (newest === undefined) return false
    this.#stage.book.told(text, newest.line)
    newest.write(text)
    return true
  }

  hangUp(): void {
    this.#open.at(-1)?.end()
  }

  /** Resolves when the client has let go of all lines. */
  async quiet(ms: number): Promise<void> {
    await this.#stage.book.until(() => (this.#open.length === 0 ? true : undefined), ms)
  }

  close(): void {
    for (const { end } of [...this.#open]) end()
  }
}

/** A process that is nothing but a pipe to this one. */
const RELAY =
  "const s=require('net').connect(+process.argv[1],'127.0.0.1');process.stdin.pipe(s);s.pipe(process.stdout);s.on('close',()=>process.exit(0)).on('error',()=>process.exit(1))"

export interface Duplex {
  readonly target: { readonly command: string; readonly args: readonly string[] }
  readonly lines: Lines
  close(): Promise<void>
}

export async function stdioStage(stage: DuplexStage): Promise<Duplex> {
  const lines = new Lines(stage)
  const sockets = new Set<Socket>()
  const server = createServer(socket => {
    sockets.add(socket)
    const line = lines.add(
      text => void socket.write(`${text}\n`),
      () => void socket.end(),
    )
    socket.on('error', () => {})
    socket.on('close', () => {
      sockets.delete(socket)
      line.ended()
    })
    createInterface({ input: socket })
      .on('line', text => line.heard(text))
      // It repeats the errors of its socket, which are heard there.
      .on('error', () => {})
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as { port: number }
  return {
    target: { command: process.execPath, args: ['-e', RELAY, String(port)] },
    lines,
    close: async () => {
      for (const socket of sockets) socket.destroy()
      server.close()
      await once(server, 'close')
    },
  }
}

/** What a connection brings, said line by line. */
export function attach(connection: Connection, lines: Lines): void {
  const line = lines.add(
    text => void promised(() => connection.send(text)).catch(() => {}),
    () => void promised(() => connection.close()).catch(() => {}),
  )
  const sink = { frame: (text: string) => line.heard(text), fault: () => {}, closed: () => line.ended() }
  promised(() => connection.start(sink)).catch(() => line.ended())
}

export function memoryStage(stage: DuplexStage): { target: Connection; lines: Lines } {
  const lines = new Lines(stage)
  const [near, far] = memoryPair()
  attach(far, lines)
  return { target: near, lines }
}
