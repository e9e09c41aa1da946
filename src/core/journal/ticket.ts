/** The right, and the duty, to do an operation that was claimed and to say how it ended. */
import { put, remove } from '../../stores/ops.ts'
import type { Op, Store } from '../../stores/store.ts'
import type { Clock } from '../clock.ts'
import { type Operation, readOperation, writeOperation } from './operation.ts'
import type { Unsettled } from './unsettled.ts'

interface Held {
  readonly store: Store
  readonly clock: Clock
  readonly place: string
  readonly operation: Operation
  readonly version: number
  /** The length of the record as it was written. */
  readonly length: number
  readonly unsettled: Unsettled
  /** Characters that its account may still keep. */
  readonly left: () => number
}

export class Ticket {
  readonly #held: Held
  readonly #ended: (grown: number, freed: boolean) => void
  #length: number
  #open = true

  /** `ended` hears by how much the record has grown. */
  constructor(held: Held, ended: (grown: number, freed: boolean) => void) {
    this.#held = held
    this.#length = held.length
    this.#ended = ended
  }

  get operation(): Operation {
    return this.#held.operation
  }

  /** Characters that may be kept of its outcome: what is longer than the rest of the share is not kept, only that it was done. */
  get capacity(): number {
    return this.#held.left()
  }

  /**
   * It has ended, and a repetition gets this outcome again. `also` is written in the same commit. Gives the record as it stands,
   * or undefined where another took over because this process was silent for too long: then the outcome is theirs to tell.
   * `mostMs`: remembered no longer than that.
   */
  settle(status: 'done' | 'failed', outcome: unknown, also: readonly Op[] = [], mostMs?: number): Promise<Operation | undefined> {
    const operation: Operation = { ...this.#held.operation, status, outcome, endedAt: this.#held.clock.now() }
    const ttl = Math.min(operation.ttlMs, mostMs ?? operation.ttlMs)
    return this.#end(async () => ((await this.#replace(operation, also, ttl)) ? operation : undefined), false)
  }

  /** It did not begin, or may be tried anew: the key is as if it had never been used. */
  async release(also: readonly Op[] = []): Promise<void> {
    await this.#end(() => this.#held.store.commit([remove(this.#held.place, this.#held.version), ...also]), true)
  }

  /** It waits for an answer of its caller, for so long: whoever brings it goes on with the same operation. */
  async pause(ms: number): Promise<void> {
    await this.#end(() => this.#replace({ ...this.#held.operation, status: 'waiting' }, [], ms), false)
  }

  /** It was begun and this process cannot say how it ends, only why it does not know. */
  async lose(lostBy: string, also: readonly Op[] = []): Promise<void> {
    const { operation, clock } = this.#held
    const lost: Operation = { ...operation, status: 'indeterminate', lostBy, endedAt: clock.now() }
    await this.#end(() => this.#replace(lost, also), false)
  }

  async #end<T>(write: () => Promise<T>, freed: boolean): Promise<T> {
    if (!this.#open) throw new Error('This operation has been brought to an end already')
    this.#open = false
    try {
      return await write()
    } catch (error) {
      // Written when the store is back, so that whoever repeats it is not told for ever that it runs.
      this.#held.unsettled.add(this.#held.place, write, this.#length)
      throw error
    } finally {
      this.#ended((freed ? 0 : this.#length) - this.#held.length, freed)
    }
  }

  async #replace(operation: Operation, also: readonly Op[], ttl = operation.ttlMs): Promise<boolean> {
    const { store, place, version } = this.#held
    const text = writeOperation(operation)
    this.#length = text.length
    const write = (ifVersion: number): readonly Op[] => [put(place, text, { ifVersion, ttl }), ...also]
    if ((await store.commit(write(version))).ok) return true
    // Others took us for dead and wrote that the end is unknown. We know it, so it stands corrected.
    const entry = await store.get(place)
    if (entry === undefined) return false
    const found = readOperation(entry.value)
    return found.id === operation.id && found.status === 'indeterminate' && (await store.commit(write(entry.version))).ok
  }
}
