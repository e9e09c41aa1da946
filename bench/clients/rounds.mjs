/**
 * What every measured client process does: connect, say so, then one round per line on stdin. A round keeps `inFlight`
 * calls of `echo` going for `ms` and prints the CPU this process used for them, all threads included.
 */
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'

const FILLER = 'the quick brown fox jumps over the lazy dog, and the dog does not even wake up from it '
let count = 0

/** The server for stdio clients, which start it themselves. */
export const floorCommand = {
  command: process.execPath,
  args: [fileURLToPath(new URL('../servers/floor-stdio.mjs', import.meta.url)), 'tools'],
}

/** `open(place)` connects and returns `{ call(text) → Promise<text>, close() }`. */
export async function serveRounds(open) {
  const { call, close } = await open(JSON.parse(process.argv[2]))
  process.stdout.write('connected\n')
  for await (const line of createInterface({ input: process.stdin })) {
    const { inFlight, ms } = JSON.parse(line)
    process.stdout.write(`${JSON.stringify(await round(call, inFlight, ms))}\n`)
  }
  await close()
  process.exit(0)
}

async function round(call, inFlight, ms) {
  let calls = 0
  const started = performance.now()
  const before = process.cpuUsage()
  async function lane() {
    while (performance.now() - started < ms) {
      const text = `${++count} ${FILLER}`
      if ((await call(text)) !== text) throw new Error('the echo is not what was sent')
      calls++
    }
  }
  await Promise.all(Array.from({ length: inFlight }, lane))
  const { user, system } = process.cpuUsage(before)
  return { calls, cpuMicros: user + system, ms: performance.now() - started }
}
