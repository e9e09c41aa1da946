/**
 * Which operations have chunks in the store, and until when. All that this process keeps there is bounded: what has ended first
 * gives way. What a process left behind when it died is forgotten by others.
 */
import type { Cancel, Clock } from '../../../core/clock.ts'
import { lastPosition } from '../../../core/feed/last-position.ts'
import type { Journal } from '../../../core/journal/journal.ts'
import type { Trace } from '../../../core/log-trace.ts'
import { isRecord } from '../../../jsonrpc/message.ts'
import { put, remove, trim } from '../../../stores/ops.ts'
import type { Op } from '../../../stores/store.ts'
import { logOf } from './distant.ts'

export interface ShelfParts {
  readonly journal: Journal
  readonly clock: Clock
  readonly trace: Trace
  readonly keepMs: number
}

const prefix = 'stream/'
/** Characters of all chunks that this process keeps. */
const most = 64 * 1024 * 1024

export class Shelf {
  readonly #parts: ShelfParts
  #timer: Cancel | undefined = undefined
  #length = 0
  /** What has ended, oldest first, with its length. */
  readonly #ended = new Map<string, { readonly length: number; readonly cancel: Cancel }>()

  constructor(parts: ShelfParts) {
    this.#parts = parts
    this.#sweep()
  }

  /** Whether there is no room for the chunks of another one. */
  get full(): boolean {
    return this.#length >= most
  }

  weigh(length: number): void {
    this.#length += length
    for (const id of this.#ended.keys()) {
      if (!this.full) return
      this.#expire(id)
    }
  }

  /** It has ended, and is kept for those who come back. */
  keep(id: string, length: number): void {
    const { clock, keepMs } = this.#parts
    this.#ended.set(id, { length, cancel: clock.setTimeout(() => this.#expire(id), keepMs, true) })
  }

  #expire(id: string): void {
    const { length = 0, cancel } = this.#ended.get(id) ?? {}
    cancel?.()
    this.#ended.delete(id)
    this.#length -= length
    this.forget(id).catch(error => this.#parts.trace('chunks-not-forgotten', error))
  }

  /** The step that notes it: it may be forgotten after that time, once the process that runs it is gone or it has ended. */
  put(id: string, ms: number): Op {
    const { journal, clock } = this.#parts
    return put(prefix + id, JSON.stringify({ runner: journal.runners.id, until: clock.now() + ms }))
  }

  /** The steps that forget it. */
  async forgetting(id: string): Promise<readonly Op[]> {
    const end = await lastPosition(this.#parts.journal.store, logOf(id), 0)
    return [trim(logOf(id), end + 1), remove(prefix + id)]
  }

  async forget(id: string): Promise<void> {
    await this.#parts.journal.store.commit(await this.forgetting(id))
  }

  close(): void {
    this.#timer?.()
    for (const { cancel } of this.#ended.values()) cancel()
  }

  #sweep(): void {
    const { clock, trace, keepMs } = this.#parts
    this.#timer = clock.setTimeout(() => this.#sweep(), keepMs, true)
    this.#look().catch(error => trace('streams-not-swept', error))
  }

  async #look(): Promise<void> {
    const { journal, clock } = this.#parts
    for (let after: string | undefined; ; ) {
      const page = await journal.store.scan(prefix, after === undefined ? {} : { after })
      for (const { key, value } of page) {
        const { runner, until } = readNote(value)
        if (until > clock.now() || runner === journal.runners.id || (await journal.runners.isAlive(runner))) continue
        await this.forget(key.slice(prefix.length))
      }
      after = page.at(-1)?.key
      if (after === undefined) return
    }
  }
}

function readNote(text: string): { readonly runner: string; readonly until: number } {
  const note: unknown = JSON.parse(text)
  if (isRecord(note) && typeof note['runner'] === 'string' && typeof note['until'] === 'number')
    return { runner: note['runner'], until: note['until'] }
  throw new Error('A note of a stream cannot be read: was it written by another program?')
}
