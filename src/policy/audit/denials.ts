/** What is refused over and over, in the audit log: the first of a kind at once, the others of that minute as one, so that nobody can flood it. */
import type { Cancel, Clock } from '../../core/clock.ts'
import type { Note } from './host-audit.ts'

const everyMs = 60_000

/** `note` writes one line about so many of a kind, of which this is the last. */
interface DenialsParts<What> {
  readonly clock: Clock
  /** Kinds of one minute that are told apart; all others count as one. */
  readonly most: number
  /** How many of a kind have a line of their own. Default 1. */
  readonly each?: number
  note(what: What, times: number): void
}

/** Writes the first refusals of a kind one by one, and the others of that minute as one line with a count. */
export class Denials<What> {
  readonly #parts: DenialsParts<What>
  readonly #counts = new Map<string, { seen: number; times: number; what: What }>()
  #timer: Cancel | undefined = undefined

  constructor(parts: DenialsParts<What>) {
    this.#parts = parts
  }

  /** `others`: what is noted where too many kinds are told apart already. `many`: what is kept of it where it is only counted. */
  add(kind: string, what: What, others: What, many = what): void {
    const known = this.#counts.has(`=${kind}`) || this.#counts.size < this.#parts.most
    const [key, one, counted] = known ? [`=${kind}`, what, many] : ['', others, others]
    const count = this.#counts.get(key) ?? { seen: 0, times: 0, what: counted }
    this.#counts.set(key, count)
    this.#timer ??= this.#parts.clock.setTimeout(() => this.flush(), everyMs, true)
    if (count.seen++ < (this.#parts.each ?? 1)) return this.#parts.note(one, 1)
    count.times++
    count.what = counted
  }

  flush(): void {
    this.#timer?.()
    this.#timer = undefined
    for (const { times, what } of this.#counts.values()) if (times > 0) this.#parts.note(what, times)
    this.#counts.clear()
  }
}

// Notes that a server can bring about as often as it likes, such as refusals for its rate: so many a second are written as they are,
// of the rest only how many there were. A flood must not cost more to note than to refuse.

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

/** Writes so many notes of a kind a second, and of the others how many there were. */
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
    const detail = `and ${second.count - this.#whole} more of the same kind within one second`
    this.#options.note({ server, featureSet, kind, outcome, why, detail })
  }
}
