/**
 * Bytes that come in pieces and are wanted whole. One piece costs no copy; many share one growing buffer, so that a
 * peer that sends byte by byte cannot make each byte cost an object.
 */
import { ConnectionError } from '../../jsonrpc/connection.ts'

const none = new Uint8Array(0)

export class ByteBuffer {
  #bytes: Uint8Array = none
  #length = 0
  #owned = false

  get length(): number {
    return this.#length
  }

  push(piece: Uint8Array): void {
    if (piece.length === 0) return
    if (this.#length === 0) {
      this.#bytes = piece
      this.#length = piece.length
      return
    }
    const length = this.#length + piece.length
    if (!this.#owned || length > this.#bytes.length) this.#grow(length)
    this.#bytes.set(piece, this.#length)
    this.#length = length
  }

  /** All bytes so far; the buffer is empty afterwards. */
  take(): Uint8Array {
    const bytes = this.#bytes.length === this.#length ? this.#bytes : this.#bytes.subarray(0, this.#length)
    this.#bytes = none
    this.#length = 0
    this.#owned = false
    return bytes
  }

  #grow(length: number): void {
    const grown = new Uint8Array(Math.max(2 * length, 1024))
    grown.set(this.#length === this.#bytes.length ? this.#bytes : this.#bytes.subarray(0, this.#length))
    this.#bytes = grown
    this.#owned = true
  }
}

const strict = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** Bytes → text, refusing what is not UTF-8 instead of altering it. A byte order mark is kept. */
export function decodeUtf8(bytes: Uint8Array): string {
  try {
    return strict.decode(bytes)
  } catch (cause) {
    throw new ConnectionError('protocol', 'The server sent bytes that are not UTF-8; messages must be UTF-8 text', { cause })
  }
}
