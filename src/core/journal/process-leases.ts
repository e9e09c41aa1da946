/**
 * Which processes are alive: each holds a lease while it has something running. A record whose runner has no lease is of a
 * process that died in the midst of it.
 */
import { put, type Store } from '../../stores/store.ts'
import type { Cancel, Clock } from '../clock.ts'

interface RunnersOptions {
  readonly store: Store
  readonly clock: Clock
  /** Unguessable, and new for each process. */
  readonly id: string
  /** How long others wait before they take a silent process for dead. Default 6 s. */
  readonly leaseMs?: number
}

/** Shows by a lease in the store that this process is alive, and tells whether others are. */
export class ProcessLeases {
  readonly id: string
  readonly leaseMs: number
  readonly #store: Store
  readonly #clock: Clock
  /** Until when our own lease surely lasts. */
  #until = 0
  #renewing: Promise<void> | undefined
  #timer: Cancel | undefined
  #held = 0

  constructor(options: RunnersOptions) {
    this.id = options.id
    this.leaseMs = options.leaseMs ?? 6_000
    this.#store = options.store
    this.#clock = options.clock
  }

  /** Something begins to run here. Undefined where the lease lasts already, so that most calls wait for nothing. */
  hold(): Promise<void> | undefined {
    this.#held++
    this.#plan()
    return this.#until - this.#clock.now() > this.leaseMs / 2 ? undefined : this.#renew()
  }

  /** It has ended. */
  release(): void {
    this.#held--
  }

  async isAlive(id: string): Promise<boolean> {
    return id === this.id || (await this.#store.get(leaseKey(id))) !== undefined
  }

  close(): void {
    this.#timer?.()
    this.#timer = undefined
  }

  #renew(): Promise<void> {
    this.#renewing ??= this.#write().finally(() => {
      this.#renewing = undefined
    })
    return this.#renewing
  }

  async #write(): Promise<void> {
    // Counted from before the write: the lease may last longer than we think, never shorter.
    const until = this.#clock.now() + this.leaseMs
    await this.#store.commit([put(leaseKey(this.id), '', { ttl: this.leaseMs })])
    this.#until = until
  }

  #plan(): void {
    this.#timer ??= this.#clock.setTimeout(() => this.#tick(), this.leaseMs / 3, true)
  }

  #tick(): void {
    this.#timer = undefined
    if (this.#held === 0) return
    // A renewal that fails is tried again at the next tick; if none succeeds, others take over, as they should.
    this.#renew().catch(() => {})
    this.#plan()
  }
}

function leaseKey(id: string): string {
  return `runner/${id}`
}
