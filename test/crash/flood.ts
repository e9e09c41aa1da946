/** One server that floods the host, and others that send now and then: how long do those wait for their answers and their turns? */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface, type Interface } from 'node:readline'
import { setTimeout as pause } from 'node:timers/promises'
import type { Flooded } from './flooder.ts'
import type { HostUse } from './inbox-host.ts'
import { drained } from './inbox-judge.ts'
import { type HostProcess, killHost, Sender, startHost } from './inbox-sender.ts'

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
  readonly flood: Flooded & { readonly seconds: number }
}

/** The 99th percentiles, in milliseconds. */
export interface Waits {
  readonly answerMs: number
  readonly turnMs: number
  readonly events: number
  readonly use: HostUse
}

const calm = ['calm-1', 'calm-2']
const everyMs = 10
type Done = Map<string, (at: number) => void>

export async function flood({ folder, perSecond, seconds, rounds }: FloodOptions): Promise<readonly FloodRound[]> {
  const senders = await Promise.all(calm.map(name => Sender.start(name, ['crash.events'])))
  const flooder = await Flooder.start(perSecond)
  const done: Done = new Map()
  const servers = { flood: flooder.url, ...Object.fromEntries(senders.map(({ name, url }) => [name, url])) }
  const store = `sqlite:${join(folder, 'flood.db')}`
  const told = { done: (eventId: string, at: number): void => done.get(eventId)?.(at) }
  const host = await startHost({ store, servers, modelMs: 0, tells: calm }, told)
  const found: FloodRound[] = []
  try {
    await measure(host, senders, done, seconds / 2, 'warm')
    for (let round = 0; round < rounds; round++) {
      const quiet = await measure(host, senders, done, seconds, `q${round}`)
      const began = performance.now()
      flooder.begin(`f${round}`)
      await pause(500)
      const flooded = await measure(host, senders, done, seconds, `l${round}`)
      const sent = { ...(await flooder.end()), seconds: (performance.now() - began) / 1000 }
      found.push({ calm: quiet, flooded, flood: sent })
      await drained(store)
    }
  } finally {
    await killHost(host)
    flooder.kill()
    for (const sender of senders) await sender.close()
  }
  return found
}

async function measure(host: HostProcess, senders: readonly Sender[], done: Done, seconds: number, name: string): Promise<Waits> {
  await host.use()
  const answers: number[] = []
  const turns: number[] = []
  const until = performance.now() + seconds * 1000
  const sendAll = async (sender: Sender): Promise<void> => {
    for (let n = 0; performance.now() < until; n++) {
      const eventId = `${sender.name}-${name}-${n}`
      const began = performance.now()
      const turn = new Promise<number>(resolve => done.set(eventId, resolve))
      const answer = await sender.push({ set: 'crash.events', eventId, channel: String(n % 7) })
      answers.push(performance.now() - began)
      if (!answer.accepted) throw new Error(`${eventId} was refused: ${answer.reason}`)
      turns.push((await turn) - began)
      done.delete(eventId)
      await pause(everyMs)
    }
  }
  await Promise.all(senders.map(sendAll))
  return { answerMs: p99(answers), turnMs: p99(turns), events: answers.length, use: await host.use() }
}

function p99(values: number[]): number {
  const sorted = values.sort((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * 0.99))] ?? 0
}

/** A process of its own, so that what it costs is not taken from the others but by the system. */
class Flooder {
  readonly url: string
  readonly #child: ChildProcess
  readonly #lines: Interface

  private constructor(child: ChildProcess, lines: Interface, url: string) {
    this.#child = child
    this.#lines = lines
    this.url = url
  }

  static async start(perSecond: number): Promise<Flooder> {
    const args = ['--disable-warning=ExperimentalWarning', join(import.meta.dirname, 'flooder.ts'), String(perSecond)]
    const child = spawn(process.execPath, args, { stdio: ['pipe', 'pipe', 'inherit'] })
    const lines = createInterface(child.stdout)
    const [url] = await once(lines, 'line')
    return new Flooder(child, lines, url)
  }

  begin(name: string): void {
    this.#child.stdin?.write(`flood ${name}\n`)
  }

  async end(): Promise<Flooded> {
    const said = once(this.#lines, 'line')
    this.#child.stdin?.write('stop\n')
    const [line] = await said
    return JSON.parse(line)
  }

  kill(): void {
    this.#child.kill('SIGKILL')
  }
}
