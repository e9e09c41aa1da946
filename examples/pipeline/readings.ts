/** What the warehouse has: rows of readings, as many as one likes, made while they are asked for. */

const chunkBytes = 65_536

/** Whole lines, `bytes` in all. Always the same ones. */
export async function* readings(bytes: number): AsyncGenerator<Uint8Array> {
  const encoder = new TextEncoder()
  let state = 1
  for (let left = bytes; left > 0; ) {
    const lines: string[] = []
    let length = 0
    while (length < Math.min(chunkBytes, left)) {
      state = (state * 48_271) % 2_147_483_647
      const line = `sensor-${state % 997},${(state / 1e6).toFixed(4)}`
      // The last one is cut, or filled up, so that all is as long as it should be.
      const room = Math.min(chunkBytes, left) - length - 1
      lines.push(line.length > room - 20 ? line.padEnd(room, '0').slice(0, room) : line)
      length += (lines.at(-1)?.length ?? 0) + 1
    }
    left -= length
    yield encoder.encode(`${lines.join('\n')}\n`)
  }
}
