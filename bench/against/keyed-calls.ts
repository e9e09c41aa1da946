/**
 * Calls under idempotency keys in this process: `keyed-calls.ts STORE fresh|repeat`, no store meaning no key. Each line on stdin is a number of
 * milliseconds; the answer is a line with what the calls of that time cost.
 */
import { createInterface } from 'node:readline'
import { freshRound, openKeyedCalls } from '../sections/idempotency.ts'

const [store = '', which] = process.argv.slice(2)
const calls = await openKeyedCalls(store === '' ? undefined : store)

for await (const line of createInterface({ input: process.stdin })) {
  const ms = Number(line)
  const { cpuMicros, calls: count } =
    which === 'fresh' && store !== ''
      ? await freshRound(calls, store, ms)
      : await calls.round(ms, store !== '', which === 'repeat')
  process.stdout.write(`${JSON.stringify({ cost: cpuMicros * count, count })}\n`)
}
await calls.close()
process.exit(0)
