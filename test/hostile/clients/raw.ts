/** Bare sockets: every byte is the attacker's own. */
import { connect, type Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'

export interface Answer {
  /** 0: there was none. */
  readonly status: number
  readonly headers: ReadonlyMap<string, string>
  readonly body: string
  /** All that came, head included. */
  readonly bytes: number
}

export const noAnswer: Answer = { status: 0, headers: new Map(), body: '', bytes: 0 }

export class Line {
  readonly socket: Socket
  /** What came so far, as latin1: byte for byte. */
  text = ''
  /** True when the other end has closed, or the line broke. */
  closed = false
  readonly #wakers: (() => void)[] = []

  constructor(port: number) {
    this.socket = connect({ port, host: '127.0.0.1', noDelay: true })
    this.socket.on('error', () => {})
    this.socket.on('data', chunk => {
      this.text += chunk.toString('latin1')
      this.#wake()
    })
    this.socket.on('end', () => this.#ended())
    this.socket.on('close', () => this.#ended())
  }

  async opened(): Promise<this> {
    if (this.socket.connecting) {
      await new Promise<void>(done => {
        this.socket.once('connect', done)
        this.socket.once('close', () => done())
      })
    }
    return this
  }

  write(data: string | Buffer): boolean {
    return this.socket.destroyed || this.closed ? false : this.socket.write(data)
  }

  /** Waits until what came fits, the line is closed, or the time is over; tells whether it fits. */
  async until(fits: (text: string) => boolean, ms = 5_000): Promise<boolean> {
    const end = performance.now() + ms
    while (!fits(this.text)) {
      const left = end - performance.now()
      if (this.closed || left <= 0) return false
      const stop = new AbortController()
      await Promise.race([new Promise<void>(done => this.#wakers.push(done)), delay(left, undefined, { signal: stop.signal })])
      stop.abort()
    }
    return true
  }

  /** Waits for the end of the line; true if it came in time. */
  async ended(ms = 5_000): Promise<boolean> {
    await this.until(() => this.closed, ms)
    return this.closed
  }

  end(): void {
    this.socket.destroy()
  }

  reset(): void {
    this.socket.resetAndDestroy()
  }

  #ended(): void {
    this.closed = true
    this.#wake()
  }

  #wake(): void {
    for (const fn of this.#wakers.splice(0)) fn()
  }
}

/** Sends one request on a line that is kept, and reads its answer. */
export async function ask(line: Line, data: Buffer, ms = 20_000): Promise<Answer> {
  line.text = ''
  line.write(data)
  await line.until(text => isComplete(text), ms)
  return parseAnswer(line.text)
}

/** Sends bytes on a line of their own, and reads until the other end closes or says nothing more in time. */
export async function fire(port: number, data: string | Buffer, ms = 5_000): Promise<Answer> {
  const line = new Line(port)
  line.write(data)
  await line.until(text => isComplete(text), ms)
  line.end()
  return parseAnswer(line.text)
}

/** True once the head says how long the body is and that much has come. Without a length only the end of the line tells. */
function isComplete(text: string): boolean {
  const head = text.indexOf('\r\n\r\n')
  if (head === -1) return false
  const top = text.slice(0, head).toLowerCase()
  const length = /\ncontent-length: *(\d+)/.exec(top)?.[1]
  if (length !== undefined) return text.length >= head + 4 + Number(length)
  if (/^http\/1\.\d (1\d\d|204)/.test(top)) return true
  return top.includes('transfer-encoding: chunked') && text.endsWith('\r\n0\r\n\r\n')
}

export function parseAnswer(text: string): Answer {
  const head = text.indexOf('\r\n\r\n')
  const status = Number(/^HTTP\/1\.\d (\d{3})/.exec(text)?.[1] ?? 0)
  if (status === 0) return { ...noAnswer, bytes: text.length }
  const lines = (head === -1 ? text : text.slice(0, head)).split('\r\n').slice(1)
  const headers = new Map(
    lines.map(line => [line.slice(0, line.indexOf(':')).toLowerCase(), line.slice(line.indexOf(':') + 1).trim()]),
  )
  const rest = head === -1 ? '' : text.slice(head + 4)
  const body = headers.get('transfer-encoding') === 'chunked' ? unchunk(rest) : rest
  return { status, headers, body: Buffer.from(body, 'latin1').toString('utf8'), bytes: text.length }
}

function unchunk(text: string): string {
  let body = ''
  for (let at = 0; at < text.length; ) {
    const end = text.indexOf('\r\n', at)
    const size = Number.parseInt(text.slice(at, end), 16)
    if (end === -1 || !(size > 0)) break
    body += text.slice(end + 2, end + 2 + size)
    at = end + 4 + size
  }
  return body
}
