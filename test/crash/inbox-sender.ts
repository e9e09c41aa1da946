/** Both ends of the crash tests of the inbox: live servers that push events and outlive the host, and the host as a process. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { createServer, type FeatureSet, type PushAnswer } from '../../src/server/index.ts'
import type { HostUse, InboxHostSpec } from './inbox-host.ts'

/** What a server pushes, as both ends of a test name it. */
export interface Sent {
  readonly set: string
  readonly eventId: string
  /** Undefined: the event says no origin, and keeps its order within the set. */
  readonly channel: string | undefined
}

/** A live server on a WebSocket. What no host has answered it sends again, to whichever host comes next. */
export class Sender {
  readonly name: string
  readonly url: string
  readonly #sets: ReadonlyMap<string, FeatureSet>
  readonly #close: () => Promise<void>

  private constructor(name: string, url: string, sets: ReadonlyMap<string, FeatureSet>, close: () => Promise<void>) {
    this.name = name
    this.url = url
    this.#sets = sets
    this.#close = close
  }

  static async start(name: string, sets: readonly string[]): Promise<Sender> {
    const server = createServer({ name, version: '1.0.0', log: 'silent' })
    const made = sets.map(
      set => [set, server.featureSet(set, { description: 'Things that happen', uses: ['pushEvents'] })] as const,
    )
    const { url } = await server.listen({ wsPath: '/ws' })
    return new Sender(name, url.replace(/^http/, 'ws').replace(/\/mcp$/, '/ws'), new Map(made), () => server.close())
  }

  /** What a host made of it, however many hosts that takes. */
  async push({ set, eventId, channel }: Sent): Promise<PushAnswer> {
    const origin = channel === undefined ? {} : { origin: { channel } }
    const pushed = await this.#sets.get(set)?.push({ eventId, content: `Something happened: ${eventId}`, ...origin })
    if (pushed === undefined) throw new Error(`${this.name} has no set ${set}`)
    return pushed.answered
  }

  close(): Promise<void> {
    return this.#close()
  }
}

export interface HostProcess {
  readonly child: ChildProcess
  /** What it took since it was last asked. */
  use(): Promise<HostUse>
}

export interface HostEvents {
  /** The first server is connected: from now on events can be accepted. */
  readonly serving?: () => void
  /** A turn is committed; only of servers that the spec tells of. */
  readonly done?: (eventId: string, at: number) => void
  /** It ended in another way than by SIGKILL or by being told to. */
  readonly failed?: (reason: Error) => void
}

/** Resolves when it is up. */
export async function startHost(spec: InboxHostSpec, events: HostEvents = {}): Promise<HostProcess> {
  const args = ['--disable-warning=ExperimentalWarning', join(import.meta.dirname, 'inbox-host.ts'), JSON.stringify(spec)]
  const child = spawn(process.execPath, args, { stdio: ['pipe', 'pipe', 'inherit'] })
  child.stdin.on('error', () => {})
  const up = Promise.withResolvers<void>()
  const uses: ((use: HostUse) => void)[] = []
  createInterface(child.stdout).on('line', line => {
    if (line === 'serving') events.serving?.()
    else if (line === 'up') up.resolve()
    else if (line.startsWith('use ')) uses.shift()?.(JSON.parse(line.slice(4)))
    else if (line.startsWith('done ')) events.done?.(line.slice(5), performance.now())
  })
  child.once('exit', (code, signal) => {
    const reason = new Error(`The host ended by ${signal ?? code}`)
    if (code !== 0 && signal !== 'SIGKILL') events.failed?.(reason)
    up.reject(reason)
  })
  await up.promise
  const use = (): Promise<HostUse> => {
    child.stdin.write('use\n')
    return new Promise(resolve => uses.push(resolve))
  }
  return { child, use }
}

/** Tells it to close what it has, and waits for its end. */
export async function endHost({ child }: HostProcess): Promise<void> {
  const over = once(child, 'exit')
  child.stdin?.end()
  await over
}

export async function killHost({ child }: HostProcess): Promise<void> {
  const dead = once(child, 'exit')
  child.kill('SIGKILL')
  await dead
}
