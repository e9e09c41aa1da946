/**
 * Who runs the events of a server: one process at a time. Another takes over once that one has let go or is silent for longer than
 * its lease; whatever the silent one still writes fails, since every write of a run checks who the owner is.
 */
import type { Runners } from '../../core/journal/runners.ts'
import { check, type Op, put, remove, type Store } from '../../stores/store.ts'
import { inboxOwnerKey } from './records.ts'

/** Which process works on the events of a server. */
export class Owners {
  readonly #store: Store
  readonly #runners: Runners
  /** Servers that are ours, by the version of the record that says so. */
  readonly #owned = new Map<string, number>()

  constructor(store: Store, runners: Runners) {
    this.#store = store
    this.#runners = runners
  }

  owns(server: string): boolean {
    return this.#owned.has(server)
  }

  get servers(): readonly string[] {
    return [...this.#owned.keys()]
  }

  /** Holds only as long as it is ours. Undefined where it is not. */
  fence(server: string): Op | undefined {
    const version = this.#owned.get(server)
    return version === undefined ? undefined : check(inboxOwnerKey(server), version)
  }

  /** Whether it is ours now. */
  async take(server: string): Promise<boolean> {
    if (this.#owned.has(server)) return true
    const key = inboxOwnerKey(server)
    const found = await this.#store.get(key)
    if (found !== undefined && found.value !== this.#runners.id && (await this.#runners.isAlive(found.value))) return false
    const when = found === undefined ? { ifAbsent: true } : { ifVersion: found.version }
    const outcome = await this.#store.commit([put(key, this.#runners.id, when)])
    if (!outcome.ok) return false
    this.#owned.set(server, outcome.results[0]?.version ?? 0)
    return true
  }

  /** Another has it. */
  lost(server: string): void {
    this.#owned.delete(server)
  }

  /** Others need not wait for the lease to end. */
  async letGo(): Promise<void> {
    for (const [server, version] of this.#owned) await this.#store.commit([remove(inboxOwnerKey(server), version)])
    this.#owned.clear()
  }
}
