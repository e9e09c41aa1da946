/**
 * Loaded with `--import` into measured HTTP servers, so that no server's own code knows of the bench.
 * SIGUSR2: collect garbage (needs --expose-gc) and report the heap on stderr. End of stdin: the runner is gone, so leave.
 */
import { setTimeout as sleep } from 'node:timers/promises'

process.on('SIGUSR2', async () => {
  // Several passes with pauses: finalisers and weak references are cleared between turns of the loop.
  for (let pass = 0; pass < 4; pass++) {
    globalThis.gc?.()
    await sleep(20)
  }
  const { heapUsed, external, rss } = process.memoryUsage()
  process.stderr.write(`heap ${JSON.stringify({ heapUsed, external, rss })}\n`)
})

process.stdin.on('end', () => process.exit(0))
process.stdin.resume()
