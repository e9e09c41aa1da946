/**
 * One keep-alive connection with framing of its own: a request is bytes, an answer is a status, the head and a body.
 * node:http on this side would cost more than the servers measured.
 */
import { connect, type Socket } from 'node:net'

export interface HttpAnswer {
  readonly status: number
  readonly head: string
  readonly body: Buffer
}

const HEAD_END = Buffer.from('\r\n\r\n')
const LAST_CHUNK = Buffer.from('0\r\n\r\n')

export class HttpConnection {
  onAnswer: (answer: HttpAnswer) => void = () => {}
  onFailure: (error: Error) => void = () => {}
  readonly #socket: Socket
  #held: Buffer[] = []
  #heldBytes = 0
  /** Bytes still to wait for before the answer can be whole; 0 when the head is not known yet. */
  #needed = 0
  #closing = false

  private constructor(socket: Socket) {
    this.#socket = socket
    socket.setNoDelay(true)
    socket.on('data', (chunk: Buffer) => this.#take(chunk))
    socket.on('error', error => this.onFailure(error))
    socket.on('close', () => {
      if (!this.#closing) this.onFailure(new Error('the server closed the connection'))
    })
  }

  static open(port: number): Promise<HttpConnection> {
    return new Promise((resolve, reject) => {
      const socket = connect({ port, host: '127.0.0.1' })
      socket.once('error', reject)
      socket.once('connect', () => resolve(new HttpConnection(socket)))
    })
  }

  send(bytes: Buffer): void {
    this.#socket.write(bytes)
  }

  /** One request, one answer, outside any measurement. */
  exchange(bytes: Buffer): Promise<HttpAnswer> {
    return new Promise((resolve, reject) => {
      this.onAnswer = resolve
      this.onFailure = reject
      this.send(bytes)
    })
  }

  close(): void {
    this.#closing = true
    this.#socket.destroy()
  }

  #take(chunk: Buffer): void {
    this.#held.push(chunk)
    this.#heldBytes += chunk.length
    if (this.#heldBytes < this.#needed) return
    const bytes = this.#held.length === 1 ? chunk : Buffer.concat(this.#held)
    const parsed = parse(bytes)
    if (typeof parsed === 'number') {
      this.#held = [bytes]
      this.#needed = parsed
      return
    }
    this.#held = []
    this.#heldBytes = 0
    this.#needed = 0
    this.onAnswer(parsed)
  }
}

/** The answer, or how many bytes are needed before trying again. */
function parse(bytes: Buffer): HttpAnswer | number {
  const headEnd = bytes.indexOf(HEAD_END)
  if (headEnd < 0) return 0
  const head = bytes.toString('latin1', 0, headEnd)
  const status = Number(head.slice(9, 12))
  const start = headEnd + HEAD_END.length
  const length = /\r\ncontent-length: *(\d+)/i.exec(head)
  if (length !== null) {
    const end = start + Number(length[1])
    return bytes.length < end ? end : { status, head, body: bytes.subarray(start, end) }
  }
  if (!/\r\ntransfer-encoding: *chunked/i.test(head)) return { status, head, body: bytes.subarray(start) }
  // One request at a time, so the last chunk can only be at the end; a look-alike in the text fails in `unchunk`.
  const whole = bytes.subarray(-LAST_CHUNK.length).equals(LAST_CHUNK)
  const body = whole ? unchunk(bytes.subarray(start)) : undefined
  return body === undefined ? 0 : { status, head, body }
}

function unchunk(bytes: Buffer): Buffer | undefined {
  const pieces: Buffer[] = []
  let at = 0
  for (;;) {
    const lineEnd = bytes.indexOf('\r\n', at)
    if (lineEnd < 0) return undefined
    const size = Number.parseInt(bytes.toString('latin1', at, lineEnd), 16)
    if (size === 0) return pieces.length === 1 ? pieces[0] : Buffer.concat(pieces)
    at = lineEnd + 2 + size + 2
    if (at > bytes.length) return undefined
    pieces.push(bytes.subarray(lineEnd + 2, lineEnd + 2 + size))
  }
}
