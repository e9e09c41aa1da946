/** Who sends events to the host of the crash tests: over one connection, again after each end of it, until every one is answered. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { PushAnswer, PushEvent } from '../../src/features/live/push-events/messages.ts'
import type { InboxHostSpec } from './inbox-host.ts'

export interface InboxHost {
  readonly child: ChildProcess
  readonly port: number
}

export async function startInboxHost(spec: InboxHostSpec): Promise<InboxHost> {
  const args = ['--disable-warning=ExperimentalWarning', join(import.meta.dirname, 'inbox-host.ts'), JSON.stringify(spec)]
  const child = spawn(process.execPath, args, { stdio: ['pipe', 'pipe', 'inherit'] })
  child.stdin.on('error', () => {})
  const [line] = await once(createInterface(child.stdout), 'line')
  return { child, port: Number(line) }
}

/** Tells it to close what it has, and waits for its end. */
export async function endInboxHost({ child }: InboxHost): Promise<void> {
  const over = once(child, 'exit')
  child.stdin?.end()
  await over
}

export interface Told {
  readonly answer: PushAnswer | { readonly failed: string }
  /** When it came, by the clock that only goes forward. */
  readonly at: number
}

/** One connection to one life of a host. */
export class Line {
  readonly #socket: Socket
  readonly #waiting = new Map<number, (told: Told | undefined) => void>()
  #id = 0
  #over = false

  constructor(port: number, onDone?: (eventId: string, at: number) => void) {
    this.#socket = connect(port, '127.0.0.1').setNoDelay(true)
    this.#socket.on('error', () => {})
    this.#socket.once('close', () => this.#end())
    if (onDone !== undefined) this.#socket.write('listen\n')
    const reader = createInterface(this.#socket).on('error', () => {})
    reader.on('line', line => {
      const at = performance.now()
      const said = JSON.parse(line)
      if (said.done !== undefined) return onDone?.(said.done, at)
      this.#waiting.get(said.id)?.({ answer: said.answer, at })
      this.#waiting.delete(said.id)
    })
  }

  /** Undefined where the host ended before it answered. */
  send(server: string, event: PushEvent): Promise<Told | undefined> {
    if (this.#over) return Promise.resolve(undefined)
    const id = ++this.#id
    return new Promise(resolve => {
      this.#waiting.set(id, resolve)
      this.#socket.write(`${JSON.stringify({ id, server, event })}\n`)
    })
  }

  close(): void {
    this.#socket.destroy()
  }

  #end(): void {
    this.#over = true
    for (const resolve of this.#waiting.values()) resolve(undefined)
    this.#waiting.clear()
  }
}

export function eventOf(eventId: string, origin: Record<string, unknown>): PushEvent {
  const content = [{ type: 'text', text: `Something happened: ${eventId}` }] as const
  return { featureSet: 'crash.events', eventId, timestamp: '2026-01-23T10:30:00Z', origin, content }
}
