/**
 * Events emitted by steps of transactions. When a step is rolled back, its events are not deleted, because they were already received;
 * instead each is followed by an event with the same name and payload that names it.
 */
import { problem } from '../../../core/problem.ts'
import { check, type Op, put } from '../../../stores/store.ts'
import type { EventData } from './entry.ts'
import type { EventsRuntimeParts } from './runtime.ts'

/** An event as published. */
interface EmittedEvent {
  readonly id: string
  readonly name: string
  readonly data: EventData
}

/** Limit of events per step. */
const most = 10_000
// Notes are kept at least a day.
const leastMs = 86_400_000

/** Remembers the events of steps, to compensate them. */
export class UndoableEvents {
  readonly #parts: EventsRuntimeParts
  /** Orders events of the same millisecond. */
  #count = 0

  constructor(parts: EventsRuntimeParts) {
    this.#parts = parts
  }

  /** Operations committed with an event of a step; they fail if the step was rolled back. */
  noting(place: string, { id, name, data }: EmittedEvent): readonly Op[] {
    const { hint: _, ...rest } = data
    const at = `${this.#parts.clock.now().toString(36).padStart(10, '0')}${(this.#count++).toString(36).padStart(8, '0')}${crypto.randomUUID().slice(0, 8)}`
    const note: EmittedEvent = { id, name, data: { ...rest, undoes: id } }
    return [check(this.#overKey(place), undefined), put(`${this.#prefix(place)}${at}`, JSON.stringify(note), { ttl: this.#ttl })]
  }

  /** Throws if the step was rolled back. */
  async refuse(place: string): Promise<void> {
    if ((await this.#parts.opened.get(this.#overKey(place))) === undefined) return
    throw problem(
      'TRANSACTION_CONFLICT',
      'The transaction has ended and this step was rolled back, so the step can no longer emit events',
    )
  }

  /** The compensating events of a step, last first, each with the key of the note about the original. From now on the step cannot emit. */
  async undo(place: string) {
    const { opened: store, trace } = this.#parts
    await store.commit([put(this.#overKey(place), '', { ttl: this.#ttl })])
    const found: { readonly note: string; readonly occurrence: EmittedEvent }[] = []
    for (let after: string | undefined; ; ) {
      const page = await store.scan(this.#prefix(place), after === undefined ? {} : { after })
      // The store contains only what this class has written.
      for (const { key, value } of page) {
        const emitted = JSON.parse(value) as EmittedEvent
        found.push({ note: key, occurrence: { ...emitted, id: `${emitted.id}/undone` } })
      }
      after = page.at(-1)?.key
      if (page.length > 0 && found.length < most) continue
      if (page.length > 0) trace('events-not-undone', { place, most })
      return found.toReversed()
    }
  }

  get #ttl(): number {
    return Math.max(leastMs, this.#parts.settings.keepMs)
  }

  #prefix(place: string): string {
    return `step-events/${this.#parts.name}/${place}/`
  }

  #overKey(place: string): string {
    return `step-events-over/${this.#parts.name}/${place}`
  }
}
