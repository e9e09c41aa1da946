/**
 * Events that steps of a unit of work emit. What happened is not deleted when a step is taken back, since it was heard: another
 * event follows that says so, of the same name and payload, for the same who hear it.
 */
import type { Clock } from '../../../core/clock.ts'
import type { Trace } from '../../../core/log.ts'
import { problem } from '../../../core/problem.ts'
import { check, type Op, put, type Store } from '../../../stores/store.ts'
import type { EventData } from './entry.ts'

interface UndoableParts {
  readonly store: Store
  readonly clock: Clock
  /** The server's name. */
  readonly name: string
  /** How long events are kept. */
  readonly keepMs: number
  readonly trace: Trace
}

/** As it is published. */
interface Emitted {
  readonly id: string
  readonly name: string
  readonly data: EventData
}

/** What says that an event was taken back, and the note that it was emitted, which goes with that. */
interface Undone {
  readonly note: string
  readonly occurrence: Emitted
}

/** Of one step. */
const most = 10_000
const leastMs = 86_400_000

/** Events of steps that may be taken back: published only where the step was not. */
export class UndoableEvents {
  readonly #parts: UndoableParts
  /** Orders what is emitted within one moment. */
  #count = 0

  constructor(parts: UndoableParts) {
    this.#parts = parts
  }

  /** Written with an event of a step: it is published only where the step was not taken back. */
  noting(place: string, { id, name, data }: Emitted): readonly Op[] {
    const { hint: _, ...rest } = data
    const at = `${this.#parts.clock.now().toString(36).padStart(10, '0')}${(this.#count++).toString(36).padStart(8, '0')}${crypto.randomUUID().slice(0, 8)}`
    const note: Emitted = { id, name, data: { ...rest, undoes: id } }
    return [check(this.#overKey(place), undefined), put(`${this.#prefix(place)}${at}`, JSON.stringify(note), { ttl: this.#ttl })]
  }

  /** Throws where a step has no say any more. */
  async refuse(place: string): Promise<void> {
    if ((await this.#parts.store.get(this.#overKey(place))) === undefined) return
    throw problem('TRANSACTION_CONFLICT', 'The transaction is over: what this step did was taken back, and it tells nothing more')
  }

  /** What follows the events of a step, the last first. From here on it emits no more. */
  async undo(place: string): Promise<readonly Undone[]> {
    const { store, trace } = this.#parts
    await store.commit([put(this.#overKey(place), '', { ttl: this.#ttl })])
    const found: Undone[] = []
    for (let after: string | undefined; ; ) {
      const page = await store.scan(this.#prefix(place), after === undefined ? {} : { after })
      // Written by this package, into a store that is its own.
      for (const { key, value } of page) {
        const emitted = JSON.parse(value) as Emitted
        found.push({ note: key, occurrence: { ...emitted, id: `${emitted.id}/undone` } })
      }
      after = page.at(-1)?.key
      if (page.length > 0 && found.length < most) continue
      if (page.length > 0) trace('events-not-undone', { place, most })
      return found.toReversed()
    }
  }

  get #ttl(): number {
    return Math.max(leastMs, this.#parts.keepMs)
  }

  #prefix(place: string): string {
    return `step-events/${this.#parts.name}/${place}/`
  }

  #overKey(place: string): string {
    return `step-events-over/${this.#parts.name}/${place}`
  }
}
