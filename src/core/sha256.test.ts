import { createHash } from 'node:crypto'
import { expect, it } from 'vitest'
import { portableSha256, sha256 } from './sha256.ts'

const sizes = [0, 1, 55, 56, 57, 63, 64, 65, 119, 128, 1000, 100_003]

it.each([portableSha256, sha256])('%o gives the SHA-256 of every length, however it is cut', make => {
  for (const size of sizes) {
    const bytes = Uint8Array.from({ length: size }, (_, at) => (at * 31 + size) % 256)
    const wanted = createHash('sha256').update(bytes).digest('hex')
    for (const piece of [1, 7, 64, 100, 65_536]) {
      if (size / piece > 2000) continue
      const hash = make()
      for (let from = 0; from < size; from += piece) hash.update(bytes.subarray(from, from + piece))
      expect(hash.digest(), `${size} bytes in pieces of ${piece}`).toBe(wanted)
    }
  }
})
