/** One server that floods the host, and others that send now and then: how long do those wait for their answers and their turns? */
import { type ChildProcess, spawn } from 'node:child_process'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { endInboxHost, eventOf, Line, startInboxHost } from './inbox-sender.ts'

export interface FloodOptions {
  readonly folder: string
  /** Events a second. */
  readonly perSecond: number
  /** Of each part. */
  readonly seconds: number
  readonly rounds: number
}

export interface FloodRound {
  readonly calm: Waits
  readonly flooded: Waits
}

/** The 99th percentiles, in milliseconds. */
export interface Waits {
  readonly answerMs: number
  readonly turnMs: number
}

const calm = ['calm-1', 'calm-2']
const everyMs = 10

export async function flood({ folder, perSecond, seconds, rounds }: FloodOptions): Promise<readonly FloodRound[]> {
  const host = await startInboxHost({ store: `sqlite:${join(folder, 'flood.db')}`, turnMs: 0 })
  const done = new Map<string, (at: number) => void>()
  const line = new Line(host.port, (eventId, at) => done.get(eventId)?.(at))
  const found: FloodRound[] = []
  try {
    await measure(line, done, seconds / 2, 'warm')
    for (let round = 0; round < rounds; round++) {
      const quiet = await measure(line, done, seconds, `q${round}`)
      const flooding = startFlood(host.port, perSecond, `f${round}`)
      await pause(500)
      const flooded = await measure(line, done, seconds, `l${round}`)
      flooding.kill('SIGKILL')
      found.push({ calm: quiet, flooded })
      // What is left of the flood is run before the next round, at most for a while.
      await pause(2_000)
    }
  } finally {
    line.close()
    host.child.kill('SIGKILL')
    await endInboxHost(host).catch(() => {})
  }
  return found
}

async function measure(line: Line, done: Map<string, (at: number) => void>, seconds: number, name: string): Promise<Waits> {
  const answers: number[] = []
  const turns: number[] = []
  const until = performance.now() + seconds * 1000
  const sendAll = async (server: string): Promise<void> => {
    for (let n = 0; performance.now() < until; n++) {
      const eventId = `${server}-${name}-${n}`
      const began = performance.now()
      const turn = new Promise<number>(resolve => done.set(eventId, resolve))
      const told = await line.send(server, eventOf(eventId, { n: n % 7 }))
      if (told === undefined || 'failed' in told.answer || !told.answer.accepted) throw new Error(`${eventId} was not accepted`)
      answers.push(told.at - began)
      turns.push((await turn) - began)
      done.delete(eventId)
      await pause(everyMs)
    }
  }
  await Promise.all(calm.map(sendAll))
  return { answerMs: p99(answers), turnMs: p99(turns) }
}

function p99(values: number[]): number {
  const sorted = values.sort((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * 0.99))] ?? 0
}

function startFlood(port: number, perSecond: number, name: string): ChildProcess {
  const args = [
    '--disable-warning=ExperimentalWarning',
    join(import.meta.dirname, 'flooder.ts'),
    String(port),
    String(perSecond),
    name,
  ]
  return spawn(process.execPath, args, { stdio: ['ignore', 'ignore', 'inherit'] })
}
