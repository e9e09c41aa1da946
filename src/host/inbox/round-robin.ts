/** Whose turn it is: servers one after the other, the lanes of each one after the other. */
import type { Cancel } from '../../core/clock.ts'
import type { Attempt, Todo } from './records.ts'

/** An event in a lane. */
export interface Item {
  seq: string
  /** `coming`: not yet written; `gone`: done, or no longer ours. */
  state: 'coming' | 'ready' | 'gone'
  notBefore: number
  /** It waits because it was withheld, not because of its time. */
  held?: boolean
  /** Of its record. */
  version: number
  /** What there is to do. */
  todo: Todo | undefined
  /** Its contents are on the store only. */
  light: boolean
  attempts: readonly Attempt[]
}

/** Events that run one at a time, in the order of acceptance. */
export interface InboxQueue {
  readonly name: string
  items: Item[]
  busy: boolean
  queued: boolean
  timer: Cancel | undefined
}

interface Server {
  readonly lanes: Map<string, InboxQueue>
  /** Lanes that could run. */
  readonly queue: InboxQueue[]
  /** Every place that is taken. */
  readonly seqs: Set<string>
  running: number
}

/** Takes from each server in turn, so that none keeps the others waiting. */
export class RoundRobin {
  readonly #perServer: number
  /** In the order in which they had their turn: whoever had it goes to the end. */
  readonly #servers = new Map<string, Server>()
  /** Servers whose lanes may run: all that waits of them is known. */
  readonly #active = new Set<string>()

  constructor(perServer: number) {
    this.#perServer = perServer
  }

  lane(server: string, name: string): InboxQueue {
    const { lanes } = this.#server(server)
    let lane = lanes.get(name)
    if (lane === undefined) {
      lane = { name, items: [], busy: false, queued: false, timer: undefined }
      lanes.set(name, lane)
    }
    return lane
  }

  find(server: string, name: string): InboxQueue | undefined {
    return this.#servers.get(server)?.lanes.get(name)
  }

  has(server: string, seq: string): boolean {
    return this.#servers.get(server)?.seqs.has(seq) ?? false
  }

  note(server: string, seq: string): void {
    this.#server(server).seqs.add(seq)
  }

  forget(server: string, seq: string): void {
    this.#servers.get(server)?.seqs.delete(seq)
  }

  *all(): Generator<{ readonly server: string; readonly lane: InboxQueue }> {
    for (const [server, { lanes }] of this.#servers) for (const lane of lanes.values()) yield { server, lane }
  }

  queue(server: string, lane: InboxQueue): void {
    if (lane.queued) return
    lane.queued = true
    this.#server(server).queue.push(lane)
  }

  /** A lane without anything in it is forgotten. */
  end(server: string, lane: InboxQueue): void {
    const known = this.#servers.get(server)
    if (known === undefined || lane.busy || lane.items.length > 0) return
    lane.timer?.()
    known.lanes.delete(lane.name)
    if (known.lanes.size === 0 && known.running === 0) this.#servers.delete(server)
  }

  activate(server: string): void {
    this.#active.add(server)
  }

  /** Forgets a server; gives what was in its lanes. */
  drop(server: string): readonly Item[] {
    this.#active.delete(server)
    const dropped: Item[] = []
    for (const lane of this.#servers.get(server)?.lanes.values() ?? []) {
      lane.timer?.()
      dropped.push(...lane.items)
      lane.items = []
    }
    this.#servers.delete(server)
    return dropped
  }

  next(): { readonly server: string; readonly lane: InboxQueue } | undefined {
    for (const [server, known] of this.#servers) {
      if (known.running >= this.#perServer || !this.#active.has(server)) continue
      const lane = known.queue.shift()
      if (lane === undefined) continue
      lane.queued = false
      if (lane.busy || lane.items.length === 0) return this.next()
      this.#servers.delete(server)
      this.#servers.set(server, known)
      return { server, lane }
    }
    return undefined
  }

  began(server: string): void {
    this.#server(server).running++
  }

  ended(server: string): void {
    const known = this.#servers.get(server)
    if (known === undefined) return
    known.running = Math.max(0, known.running - 1)
    if (known.lanes.size === 0 && known.running === 0) this.#servers.delete(server)
  }

  #server(name: string): Server {
    let server = this.#servers.get(name)
    if (server === undefined) {
      server = { lanes: new Map(), queue: [], seqs: new Set(), running: 0 }
      this.#servers.set(name, server)
    }
    return server
  }
}

/** Most come last. */
export function insertBySeq(items: Item[], item: Item): void {
  let at = items.length
  while (at > 0 && (items[at - 1] as Item).seq > item.seq) at--
  items.splice(at, 0, item)
}
