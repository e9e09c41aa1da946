/** Bytes as they may come from a stream, and ways to cut them. */
import type { Source } from './source.ts'

const texts = [
  'a',
  '{"jsonrpc":"2.0","id":1,"method":"ping"}',
  'é',
  '雪',
  '😀',
  '\u{feff}',
  '\u2028',
  '\u0000',
  'data: x',
  ' ',
  '\t',
  '"',
  '\\',
].map(text => Buffer.from(text))
/** Not UTF-8: half characters, overlong ones, surrogates, bytes that never occur. */
const broken = [[0x80], [0xc3], [0xe9, 0x9b], [0xf0, 0x9f, 0x98], [0xc0, 0xaf], [0xed, 0xa0, 0x80], [0xff], [0xf5, 0x80]].map(
  bytes => Buffer.from(bytes),
)

/** Pieces one after the other; `own` are those that mean something to whoever reads. */
export function stream(source: Source, own: readonly Buffer[], most = 24): Buffer {
  const pieces = source.list(most, () => {
    const kind = source.int(16)
    if (kind < 7) return source.pick(own)
    if (kind < 13) return source.pick(texts)
    if (kind === 13) return source.once(4) ? source.pick(broken) : source.pick(texts)
    if (kind === 14) return Buffer.from([source.once(8) ? source.int(256) : source.int(128)])
    return Buffer.alloc(source.int(64), 'x')
  })
  // Rarely a lot: what is linear on little must be so on much.
  if (source.once(1_000)) pieces.push(repeated(source, own))
  return Buffer.concat(pieces)
}

/** As much as a socket gives at once. */
function repeated(source: Source, own: readonly Buffer[]): Buffer {
  const unit = Buffer.concat([source.pick(texts), source.pick(own)])
  return Buffer.alloc(1 + source.int(64 * 1024), unit)
}

/** Where the bytes are cut: now and then one by one, or in the worst places. */
export function cuts(source: Source, bytes: Buffer): Buffer[] {
  const way = source.int(8)
  if (way === 0) return [bytes]
  const chunks: Buffer[] = []
  const largest = way === 1 ? 1 : Math.max(2, bytes.length >> source.int(6))
  for (let at = 0; at < bytes.length; ) {
    const size = bytes.length > 10_000 ? Math.max(largest, 500) : way === 1 ? 1 : source.int(largest + 1)
    chunks.push(bytes.subarray(at, at + size))
    at += size
    if (chunks.length > 400) {
      chunks.push(bytes.subarray(at))
      break
    }
  }
  return chunks
}
