/**
 * Parses server-sent events from bytes that arrive in pieces of any size (WHATWG HTML, "Interpreting an event stream"), and
 * holds the byte buffer and the strict UTF-8 decoder that body readers share with it. Stricter than a browser: bytes that are
 * not UTF-8 and events beyond the limits are refused, not replaced or buffered.
 */
import { joinBytes } from '../../core/base64.ts'
import { ConnectionError } from '../../jsonrpc/connection.ts'

/** The bounds of one event. */
interface SseLimits {
  /** Bytes between two blank lines, field names and comments included. */
  readonly eventBytes: number
  /** Lines of data in one event. Default 65,536. */
  readonly lines?: number
}

const lf = 0x0a
const cr = 0x0d
const colon = 0x3a
const space = 0x20
/** Ids that can be sent back in a Last-Event-ID header. A stream cannot be resumed after an event with any other id. */
const sendable = /^\P{Cc}{1,1024}$/u

/**
 * Takes chunks and calls back once per complete event. An event that the end of the stream cuts off is discarded, as the
 * standard requires.
 */
export class SseParser {
  /** The id to send as Last-Event-ID to continue after the last complete event; undefined if there is none. */
  lastId: string | undefined
  /** The reconnection delay that the server sent last (`retry`). */
  retryMs: number | undefined

  readonly #onEvent: (data: string, type: string) => void
  readonly #maxBytes: number
  readonly #maxLines: number
  /** The start of a line whose end has not arrived yet. */
  readonly #partial = new ByteBuffer()
  /** The first line was seen; only there can a byte order mark stand. */
  #begun = false
  /** The last chunk ended with CR: a leading LF of the next one belongs to the same line end. */
  #afterCr = false
  /** Bytes and data lines of the current event. */
  #bytes = 0
  #lines = 0
  #data = ''
  #type = ''
  #id: string | undefined

  /** `onEvent` gets an empty `type` for plain messages, as on the wire. `lastId` is already updated when it is called. */
  constructor(limits: SseLimits, onEvent: (data: string, type: string) => void, lastId?: string) {
    this.#maxBytes = limits.eventBytes
    this.#maxLines = limits.lines ?? 65_536
    this.#onEvent = onEvent
    this.lastId = lastId
    this.#id = lastId
  }

  /** Parses one chunk. Throws ConnectionError (`too-large`, `protocol`); the parser must not be used afterwards. */
  push(bytes: Uint8Array): void {
    if (bytes.length === 0) return
    let at = this.#afterCr && bytes[0] === lf ? 1 : 0
    this.#afterCr = false
    // Both positions are kept between lines, so that each byte is searched at most once for LF and once for CR.
    let nextLf = bytes.indexOf(lf, at)
    let nextCr = bytes.indexOf(cr, at)
    while (nextLf !== -1 || nextCr !== -1) {
      const byCr = nextCr !== -1 && (nextLf === -1 || nextCr < nextLf)
      const end = byCr ? nextCr : nextLf
      this.#line(bytes, at, end)
      at = end + 1
      if (byCr) {
        if (at === bytes.length) this.#afterCr = true
        else if (bytes[at] === lf) at++
        nextCr = bytes.indexOf(cr, at)
      }
      if (nextLf !== -1 && nextLf < at) nextLf = bytes.indexOf(lf, at)
    }
    if (at === bytes.length) return
    this.#partial.push(at === 0 ? bytes : bytes.subarray(at))
    if (this.#bytes + this.#partial.length > this.#maxBytes) throw this.#tooLarge()
  }

  /** One complete line, joined with the part that came in earlier chunks. */
  #line(bytes: Uint8Array, start: number, end: number): void {
    if (this.#partial.length === 0) {
      this.#field(bytes, start, end)
      return
    }
    this.#partial.push(bytes.subarray(start, end))
    const line = this.#partial.take()
    this.#field(line, 0, line.length)
  }

  /** Interprets one line: blank (end of event), data, or another field. */
  #field(line: Uint8Array, from: number, end: number): void {
    this.#bytes += end - from
    if (this.#bytes > this.#maxBytes) throw this.#tooLarge()
    let start = from
    if (!this.#begun) {
      this.#begun = true
      if (line[start] === 0xef && line[start + 1] === 0xbb && line[start + 2] === 0xbf && end - start >= 3) start += 3
    }
    if (start === end) this.#dispatch()
    else if (isData(line, start, end)) this.#addData(decodeUtf8(line.subarray(valueStart(line, start + 5, end), end)))
    else if (mayBeField(line[start])) this.#named(decodeUtf8(line.subarray(start, end)))
  }

  #addData(value: string): void {
    if (++this.#lines > this.#maxLines) throw this.#tooLarge()
    this.#data = this.#lines === 1 ? value : `${this.#data}\n${value}`
  }

  /** Fields other than `data:`, and `data` without a colon. */
  #named(line: string): void {
    const at = line.indexOf(':')
    const name = at === -1 ? line : line.slice(0, at)
    const value = at === -1 ? '' : line.slice(line.charCodeAt(at + 1) === space ? at + 2 : at + 1)
    if (name === 'event') this.#type = value
    else if (name === 'data') this.#addData(value)
    else if (name === 'retry') {
      if (/^[0-9]+$/.test(value)) this.retryMs = Number(value)
    } else if (name === 'id' && !value.includes('\0')) this.#id = sendable.test(value) ? value : undefined
  }

  /** A blank line: the event is complete. */
  #dispatch(): void {
    const data = this.#data
    const type = this.#type
    const complete = this.#lines > 0
    this.#bytes = 0
    this.#lines = 0
    this.#data = ''
    this.#type = ''
    // Not earlier: a stream must not be resumed after an event that never arrived completely.
    this.lastId = this.#id
    if (complete) this.#onEvent(data, type === 'message' ? '' : type)
  }

  #tooLarge(): ConnectionError {
    return new ConnectionError(
      'too-large',
      `The server sent an event of more than ${this.#maxBytes} bytes or ${this.#maxLines} lines, which is this client's limit; raise limits.frameBytes if that is expected`,
    )
  }
}

/** Compares `data:` byte by byte, without decoding: every message passes here. */
function isData(line: Uint8Array, at: number, end: number): boolean {
  return (
    end - at >= 5 &&
    line[at] === 0x64 &&
    line[at + 1] === 0x61 &&
    line[at + 2] === 0x74 &&
    line[at + 3] === 0x61 &&
    line[at + 4] === colon
  )
}

/** True for the first letters of data, event, id and retry. Comments and unknown fields are not decoded. */
function mayBeField(first: number | undefined): boolean {
  return first === 0x64 || first === 0x65 || first === 0x69 || first === 0x72
}

/** One space after the colon does not belong to the value. */
function valueStart(line: Uint8Array, at: number, end: number): number {
  return at < end && line[at] === space ? at + 1 : at
}

// A buffer for bytes that arrive in pieces and are needed as a whole. Large pieces are kept and joined once at the end; small
// ones are copied into shared blocks, so that a peer that sends byte by byte does not cost one object per byte.

const none = new Uint8Array(0)
/** Pieces of at least this size are kept without copying. */
const largePiece = 2 * 1024
const blockBytes = 64 * 1024

/** Collects bytes until they are taken as one array. */
export class ByteBuffer {
  readonly #pieces: Uint8Array[] = []
  /** Small pieces, one after the other. */
  #block: Uint8Array = none
  #used = 0
  #length = 0

  /** Bytes collected so far. */
  get length(): number {
    return this.#length
  }

  /** Adds a piece. The array is kept, so the caller must not reuse it. */
  push(piece: Uint8Array): void {
    if (piece.length === 0) return
    const first = this.#length === 0
    this.#length += piece.length
    // The first piece is often the only one, so it is not copied.
    if (first || piece.length >= largePiece) {
      this.#seal()
      this.#pieces.push(piece)
      return
    }
    if (this.#used + piece.length > this.#block.length) this.#freeCapacity(piece.length)
    this.#block.set(piece, this.#used)
    this.#used += piece.length
  }

  /** Returns all bytes and empties the buffer. */
  take(): Uint8Array {
    this.#seal()
    const pieces = this.#pieces.splice(0)
    const [only = none] = pieces
    this.#length = 0
    this.#block = none
    return pieces.length < 2 ? only : joinBytes(pieces)
  }

  /** The block doubles up to its full size; then a new one is started. */
  #freeCapacity(length: number): void {
    if (this.#block.length === blockBytes) this.#seal()
    const block = new Uint8Array(Math.min(blockBytes, Math.max(2 * (this.#used + length), 1024)))
    block.set(this.#block.subarray(0, this.#used))
    this.#block = block
  }

  /** Turns the content of the block into a piece of its own. */
  #seal(): void {
    if (this.#used === 0) return
    this.#pieces.push(this.#block.slice(0, this.#used))
    this.#used = 0
  }
}

/** ASCII up to this length is decoded by hand: calling the decoder takes longer, and a peer may send only tiny lines. */
const fewBytes = 16
const strict = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** Decodes UTF-8. Throws on invalid bytes instead of replacing them. Keeps a byte order mark. */
export function decodeUtf8(bytes: Uint8Array): string {
  const short = bytes.length <= fewBytes ? fromAscii(bytes) : undefined
  if (short !== undefined) return short
  try {
    return strict.decode(bytes)
  } catch (cause) {
    throw new ConnectionError('protocol', 'The server sent bytes that are not valid UTF-8; messages must be UTF-8 text', {
      cause,
    })
  }
}

function fromAscii(bytes: Uint8Array): string | undefined {
  let text = ''
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at] as number
    if (byte >= 0x80) return undefined
    text += String.fromCharCode(byte)
  }
  return text
}
