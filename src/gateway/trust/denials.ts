/** Callers whose token is not taken, in the audit log: the first of an address at once, the others of that minute as one, so that nobody can flood it. */
import type { Cancel, Clock } from '../../core/clock.ts'
import { clip } from '../../jsonrpc/limits.ts'

const everyMs = 60_000
/** Addresses of one minute that are told apart. */
const mostAddresses = 100
const others = 'elsewhere'

export class Denials {
  readonly #clock: Clock
  readonly #note: (from: string, times: number, status: number) => void
  readonly #counts = new Map<string, { times: number; status: number }>()
  #timer: Cancel | undefined = undefined

  constructor(clock: Clock, note: (from: string, times: number, status: number) => void) {
    this.#clock = clock
    this.#note = note
  }

  add(address: string | undefined, status: number): void {
    const given = clip(address ?? others)
    const from = this.#counts.has(given) || this.#counts.size < mostAddresses ? given : others
    const before = this.#counts.get(from)
    if (before !== undefined) {
      before.times++
      before.status = status
      return
    }
    this.#counts.set(from, { times: 0, status })
    this.#note(from, 1, status)
    this.#timer ??= this.#clock.setTimeout(() => this.flush(), everyMs, true)
  }

  flush(): void {
    this.#timer?.()
    this.#timer = undefined
    for (const [from, { times, status }] of this.#counts) if (times > 0) this.#note(from, times, status)
    this.#counts.clear()
  }
}
