/** SHA-256 of what comes piece by piece: by the runtime where it can, else here, because the web's digest wants everything at once. */

interface Sha256 {
  update(bytes: Uint8Array): void
  /** Lower-case hexadecimal. Nothing can be added afterwards. */
  digest(): string
}

/** A SHA-256 hash that takes its input piece by piece. */
export function sha256(): Sha256 {
  const hash = globalThis.process?.getBuiltinModule?.('node:crypto')?.createHash('sha256')
  if (hash === undefined) return portableSha256()
  return { update: bytes => void hash.update(bytes), digest: () => hash.digest('hex') }
}

/** The first 32 bits of the fractional parts of the roots of the first primes (FIPS 180-4 §4.2.2, §5.3.3). */
function fractions(count: number, root: (prime: number) => number): Uint32Array {
  const found = new Uint32Array(count)
  for (let at = 0, number = 2; at < count; number++) {
    if (isPrime(number)) found[at++] = Math.floor((root(number) % 1) * 2 ** 32)
  }
  return found
}

function isPrime(number: number): boolean {
  for (let divisor = 2; divisor * divisor <= number; divisor++) if (number % divisor === 0) return false
  return true
}

const blockBytes = 64

/** FIPS 180-4 §6.2, in JavaScript alone. */
export function portableSha256(): Sha256 {
  const constants = fractions(64, Math.cbrt)
  const state = fractions(8, Math.sqrt)
  const schedule = new Uint32Array(64)
  const block = new Uint8Array(blockBytes)
  const view = new DataView(block.buffer)
  let filled = 0
  let total = 0

  function compress(): void {
    for (let at = 0; at < 16; at++) schedule[at] = view.getUint32(at * 4)
    for (let at = 16; at < 64; at++) {
      const [early, late] = [word(schedule, at - 15), word(schedule, at - 2)]
      const first = turned(early, 7) ^ turned(early, 18) ^ (early >>> 3)
      const second = turned(late, 17) ^ turned(late, 19) ^ (late >>> 10)
      schedule[at] = word(schedule, at - 16) + first + word(schedule, at - 7) + second
    }
    let [a, b, c, d, e, f, g, h] = state as unknown as [number, number, number, number, number, number, number, number]
    for (let at = 0; at < 64; at++) {
      const mixed = turned(e, 6) ^ turned(e, 11) ^ turned(e, 25)
      const first = (h + mixed + ((e & f) ^ (~e & g)) + word(constants, at) + word(schedule, at)) | 0
      const second = ((turned(a, 2) ^ turned(a, 13) ^ turned(a, 22)) + ((a & b) ^ (a & c) ^ (b & c))) | 0
      ;[h, g, f, e, d, c, b, a] = [g, f, e, (d + first) | 0, c, b, a, (first + second) | 0]
    }
    for (const [at, value] of [a, b, c, d, e, f, g, h].entries()) state[at] = word(state, at) + value
    filled = 0
  }

  function update(bytes: Uint8Array): void {
    total += bytes.length
    for (let from = 0; from < bytes.length; ) {
      const taken = bytes.subarray(from, from + blockBytes - filled)
      block.set(taken, filled)
      from += taken.length
      filled += taken.length
      if (filled === blockBytes) compress()
    }
  }

  return {
    update,
    digest() {
      const bits = total * 8
      update(Uint8Array.of(0x80))
      update(new Uint8Array((blockBytes + 56 - filled) % blockBytes))
      view.setUint32(56, Math.floor(bits / 2 ** 32))
      view.setUint32(60, bits % 2 ** 32)
      compress()
      return Array.from(state, each => each.toString(16).padStart(8, '0')).join('')
    },
  }
}

function word(words: Uint32Array, at: number): number {
  return words[at] as number
}

function turned(value: number, by: number): number {
  return (value >>> by) | (value << (32 - by))
}
