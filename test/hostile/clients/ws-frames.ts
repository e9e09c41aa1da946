/** WebSocket frames by hand (RFC 6455 §5.2), proper and improper ones. */

export const opcodes = { continuation: 0, text: 1, binary: 2, close: 8, ping: 9, pong: 10 } as const

export interface FrameOptions {
  readonly fin?: boolean
  readonly masked?: boolean
  /** The three reserved bits, as they stand in the first byte. */
  readonly reserved?: number
  /** What the head says of the length, if it lies. */
  readonly claims?: bigint
}

const key = Buffer.from([0x11, 0x22, 0x33, 0x44])

export function wsFrame(opcode: number, payload: string | Buffer = '', options: FrameOptions = {}): Buffer {
  const { fin = true, masked = true, reserved = 0 } = options
  const data = Buffer.from(payload)
  const length = options.claims ?? BigInt(data.length)
  const first = (fin ? 0x80 : 0) | reserved | opcode
  const bit = masked ? 0x80 : 0
  const head = lengthBytes(first, bit, length)
  if (!masked) return Buffer.concat([head, data])
  for (let at = 0; at < data.length; at++) data[at] = (data[at] as number) ^ (key[at % 4] as number)
  return Buffer.concat([head, key, data])
}

function lengthBytes(first: number, bit: number, length: bigint): Buffer {
  if (length < 126n) return Buffer.from([first, bit | Number(length)])
  if (length < 65_536n) return Buffer.from([first, bit | 126, Number(length >> 8n), Number(length & 255n)])
  const head = Buffer.alloc(10)
  head[0] = first
  head[1] = bit | 127
  head.writeBigUInt64BE(length, 2)
  return head
}

export interface Received {
  readonly opcode: number
  readonly payload: Buffer
  /** The last fragment of its message. */
  readonly final: boolean
}

/** Cuts what a server sent into frames, and gives the rest that is not whole. */
export function readFrames(data: Buffer): { frames: Received[]; rest: Buffer } {
  const frames: Received[] = []
  let rest = data
  for (;;) {
    const next = readFrame(rest)
    if (next === undefined) return { frames, rest }
    frames.push(next.frame)
    rest = rest.subarray(next.size)
  }
}

function readFrame(data: Buffer): { frame: Received; size: number } | undefined {
  if (data.length < 2) return undefined
  const short = (data[1] as number) & 127
  const head = short === 126 ? 4 : short === 127 ? 10 : 2
  if (data.length < head) return undefined
  const length = short === 126 ? data.readUInt16BE(2) : short === 127 ? Number(data.readBigUInt64BE(2)) : short
  if (data.length < head + length) return undefined
  const first = data[0] as number
  const frame = { opcode: first & 15, payload: data.subarray(head, head + length), final: first >= 0x80 }
  return { frame, size: head + length }
}
