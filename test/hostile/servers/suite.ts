/**
 * Hostile servers against our client. Each attack runs against a client in a process of its own, and is handled well when the client
 * does what the attack's sentence says, at no more than 32 MiB and 50 ms in any turn of its event loop, by processor time and by the
 * clock on the wall. Others on the machine stall a turn too, so a long one is run again, at once and at the end of the suite; it counts when
 * every run had one.
 */
import { fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { createServer, jsonSchema } from 'vivarium/server'
import type { HostileCase, HostileSuite, Verdict } from '../case.ts'
import type { Attack } from './attack.ts'
import { attacks } from './attacks.ts'
import type { Cost } from './measure.ts'

const maxMiB = 32
const maxMs = 50
/** How often an attack is run before a long turn counts. */
const mostRuns = 5
const deadlineMs = 120_000

interface Outcome {
  readonly well: boolean
  readonly detail: string
  readonly cost?: Cost
}

export const hostileServers: HostileSuite = {
  title: 'hostile servers against the client',
  async open() {
    const honest = createServer({ name: 'honest', version: '1.0.0' })
    const output = { type: 'object', properties: { said: { type: 'string', pattern: '^f' } }, required: ['said'] }
    honest.tool('fine', { description: 'Says fine', output: jsonSchema(output) }, () => ({ said: 'fine' }))
    const { url } = await honest.listen()
    const cases = attacks.map((attack): HostileCase => ({ key: attack.key, name: attack.name, run: () => judged(attack, url) }))
    return { cases, close: () => honest.close() }
  },
}

async function judged(attack: Attack, honest: string): Promise<Verdict> {
  for (let run = 1; ; run++) {
    const { well, detail, cost } = await once(attack, honest)
    if (!well || cost === undefined) return { well: false, detail }
    const { heldMiB, residentMiB, turnMs, stallMs } = cost
    const seen = `+${heldMiB.toFixed(1)} MiB (resident +${residentMiB.toFixed(0)}), ${turnMs.toFixed(0)} ms: ${detail}`
    if (heldMiB > maxMiB) return { well: false, detail: seen }
    const longest = Math.max(turnMs, stallMs)
    if (longest <= maxMs) return { well: true, detail: run === 1 ? seen : `${seen} (run ${run})` }
    if (run === mostRuns)
      return { well: false, slow: true, detail: `a turn took ${longest.toFixed(0)} ms, as in all ${run} runs; ${seen}` }
  }
}

async function once(attack: Attack, honest: string): Promise<Outcome> {
  const peer = await attack.serve?.()
  try {
    const outcome = await inProcess([attack.key, peer?.url ?? '', honest])
    const complaint = outcome.well ? peer?.complaint?.() : undefined
    return complaint === undefined ? outcome : { ...outcome, well: false, detail: complaint }
  } finally {
    await peer?.close()
  }
}

function inProcess(args: readonly string[]): Promise<Outcome> {
  const script = fileURLToPath(new URL('./client-process.ts', import.meta.url))
  const child = fork(script, args, { execArgv: ['--expose-gc'], stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })
  return new Promise(resolve => {
    const late = setTimeout(() => {
      resolve({ well: false, detail: `not done within ${deadlineMs / 1000} s` })
      child.kill('SIGKILL')
    }, deadlineMs)
    let outcome: Outcome = { well: false, detail: 'the client ended without a word' }
    child.on('message', message => {
      outcome = message as Outcome
    })
    child.on('exit', (code, signal) => {
      clearTimeout(late)
      resolve(code === 0 ? outcome : { well: false, detail: `the client ended with ${signal ?? code}: ${outcome.detail}` })
    })
  })
}
