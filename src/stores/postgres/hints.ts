/**
 * Wake-ups between processes: at most one notice without content every few milliseconds, on a connection of its own, so that
 * no commit waits for it. A lost connection is opened again; what was missed meanwhile is a wake-up for everybody.
 */
import type { Client } from './pg.ts'

const GATHER_MS = 5
const AGAIN_MS = 500

export class Hints {
  readonly #open: () => Client
  readonly #channel: string
  readonly #woken: () => void
  #client: Client | undefined
  /** Its own notices come back too; they are told apart by the connection that sent them. */
  #pid: number | undefined
  #timer: NodeJS.Timeout | undefined
  #telling = false
  #again = false
  #closed = false

  constructor(open: () => Client, channel: string, woken: () => void) {
    this.#open = open
    this.#channel = channel
    this.#woken = woken
  }

  async start(): Promise<void> {
    const client = this.#open()
    client.on('notification', message => {
      if (message.processId !== this.#pid) this.#woken()
    })
    client.on('error', () => this.#lost(client))
    client.on('end', () => this.#lost(client))
    await client.connect()
    const { rows } = await client.query<{ pid: number }>('SELECT pg_backend_pid() AS pid')
    await client.query(`LISTEN ${this.#channel}`)
    this.#pid = rows[0]?.pid
    this.#client = client
    if (this.#closed) await client.end()
  }

  /** Something was committed here. */
  tell(): void {
    this.#again = true
    if (this.#timer !== undefined || this.#telling || this.#closed) return
    this.#timer = setTimeout(() => void this.#notify(), GATHER_MS)
    this.#timer.unref()
  }

  /** One at a time: a connection takes no second statement before the first has ended. */
  async #notify(): Promise<void> {
    this.#timer = undefined
    this.#telling = true
    this.#again = false
    await this.#client?.query(`NOTIFY ${this.#channel}`).catch(() => {})
    this.#telling = false
    if (this.#again) this.tell()
  }

  async close(): Promise<void> {
    this.#closed = true
    clearTimeout(this.#timer)
    const client = this.#client
    this.#client = undefined
    await client?.end()
  }

  #lost(client: Client): void {
    if (this.#closed || this.#client !== client) return
    this.#client = undefined
    setTimeout(() => this.#reopen(), AGAIN_MS).unref()
  }

  #reopen(): void {
    if (this.#closed) return
    this.start().then(this.#woken, () => setTimeout(() => this.#reopen(), AGAIN_MS).unref())
  }
}
