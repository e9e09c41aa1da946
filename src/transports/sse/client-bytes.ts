/**
 * Bytes that come in pieces and are wanted whole. Large pieces are kept as they are and joined once, at the end; small ones share
 * blocks, so that a peer that sends byte by byte cannot make each byte cost an object. What is given up was never copied.
 */
import { joinBytes } from '../../core/bytes.ts'
import { ConnectionError } from '../../jsonrpc/connection.ts'

const none = new Uint8Array(0)
/** Pieces from this size on are kept as they are. */
const largePiece = 2 * 1024
const blockBytes = 64 * 1024

export class ByteBuffer {
  readonly #pieces: Uint8Array[] = []
  /** Small pieces, one behind the other. */
  #block: Uint8Array = none
  #used = 0
  #length = 0

  get length(): number {
    return this.#length
  }

  push(piece: Uint8Array): void {
    if (piece.length === 0) return
    const first = this.#length === 0
    this.#length += piece.length
    // One piece alone is mostly all there is.
    if (first || piece.length >= largePiece) {
      this.#seal()
      this.#pieces.push(piece)
      return
    }
    if (this.#used + piece.length > this.#block.length) this.#makeRoom(piece.length)
    this.#block.set(piece, this.#used)
    this.#used += piece.length
  }

  /** All bytes so far; the buffer is empty afterwards. */
  take(): Uint8Array {
    this.#seal()
    const pieces = this.#pieces.splice(0)
    const [only = none] = pieces
    this.#length = 0
    this.#block = none
    return pieces.length < 2 ? only : joinBytes(pieces)
  }

  /** The block grows up to its full size, then a new one is begun. */
  #makeRoom(length: number): void {
    if (this.#block.length === blockBytes) this.#seal()
    const block = new Uint8Array(Math.min(blockBytes, Math.max(2 * (this.#used + length), 1024)))
    block.set(this.#block.subarray(0, this.#used))
    this.#block = block
  }

  /** What the block holds becomes a piece of its own size; the block can be filled again. */
  #seal(): void {
    if (this.#used === 0) return
    this.#pieces.push(this.#block.slice(0, this.#used))
    this.#used = 0
  }
}

/** Up to this many bytes of ASCII are put together by hand: asking the decoder takes longer, and a peer may send nothing but tiny lines. */
const fewBytes = 16
const strict = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** Bytes → text, refusing what is not UTF-8 instead of altering it. A byte order mark is kept. */
export function decodeUtf8(bytes: Uint8Array): string {
  const short = bytes.length <= fewBytes ? fromAscii(bytes) : undefined
  if (short !== undefined) return short
  try {
    return strict.decode(bytes)
  } catch (cause) {
    throw new ConnectionError('protocol', 'The server sent bytes that are not UTF-8; messages must be UTF-8 text', { cause })
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
