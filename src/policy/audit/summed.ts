/**
 * Notes that a server can bring about as often as it likes, such as refusals for its rate: so many a second are written as they are,
 * of the rest only how many there were. A flood must not cost more to note than to refuse.
 */
import type { Clock } from '../../core/clock.ts'
import type { Note } from './book.ts'

interface SummedOptions {
  readonly clock: Clock
  readonly note: (note: Note) => void
  /** Of one server and rule, in one second. Default 50. */
  readonly whole?: number
}

interface Second {
  count: number
  /** The latest that was not written. */
  last: Note | undefined
}

const secondMs = 1_000

export class SummedNotes {
  readonly #options: SummedOptions
  readonly #whole: number
  readonly #seconds = new Map<string, Second>()

  constructor(options: SummedOptions) {
    this.#options = options
    this.#whole = options.whole ?? 50
  }

  note(note: Note): void {
    const key = `${note.why?.rule ?? note.kind} ${note.server}`
    const second = this.#seconds.get(key) ?? this.#begin(key)
    if (++second.count > this.#whole) second.last = note
    else this.#options.note(note)
  }

  /** Writes what has not been told yet. */
  close(): void {
    for (const key of this.#seconds.keys()) this.#end(key)
  }

  #begin(key: string): Second {
    const second: Second = { count: 0, last: undefined }
    this.#seconds.set(key, second)
    this.#options.clock.setTimeout(() => this.#end(key), secondMs, true)
    return second
  }

  #end(key: string): void {
    const second = this.#seconds.get(key)
    this.#seconds.delete(key)
    if (second?.last === undefined) return
    const { server, featureSet, kind, outcome, why } = second.last
    const detail = `and ${second.count - this.#whole} more like it within a second`
    this.#options.note({ server, featureSet, kind, outcome, why, detail })
  }
}
