/**
 * What waits, in lanes: one at a time within a lane, in the order of acceptance; across lanes servers take turns, so that one with
 * much to do takes no more than its share from the others.
 */
import type { Cancel, Clock } from '../../core/clock.ts'
import type { Attempt, Todo } from './records.ts'

interface EventQueuesOptions {
  readonly clock: Clock
  /** Runs at once. */
  readonly concurrency: number
  /** Of one server. */
  readonly perServer: number
  /** Runs what stands at the head of a lane. What is not `gone` after that stays there. */
  readonly run: (server: string, items: readonly Item[]) => Promise<void>
}

/** Events that become one run, at most: what comes beyond opens the next window. */
const groupLimit = 100
/** Timers take no longer times. */
const longestMs = 2_000_000_000

/** The events that wait for their run, by server. */
export class EventQueues {
  readonly #options: EventQueuesOptions
  readonly #turns: RoundRobin
  readonly #timers = new Set<Cancel>()
  #running = 0
  #open = false
  readonly #idle = new Set<() => void>()

  constructor(options: EventQueuesOptions) {
    this.#options = options
    this.#turns = new RoundRobin(options.perServer)
  }

  open(): void {
    this.#open = true
    this.#pump()
  }

  /** Nothing begins any more. */
  close(): void {
    this.#open = false
    for (const cancel of this.#timers) cancel()
    this.#timers.clear()
  }

  /** Until nothing runs any more, or the time is over. */
  async ended(ms: number): Promise<void> {
    if (this.#running === 0) return
    const { promise, resolve } = Promise.withResolvers<void>()
    const cancel = this.#options.clock.setTimeout(resolve, ms, true)
    this.#idle.add(resolve)
    await promise
    cancel()
  }

  has(server: string, seq: string): boolean {
    return this.#turns.has(server, seq)
  }

  /** Takes a place in the order, for what is not yet written. */
  reserve(server: string, lane: string, seq: string): Item {
    const item: Item = { seq, state: 'coming', notBefore: 0, version: 0, todo: undefined, light: false, attempts: [] }
    insertBySeq(this.#turns.lane(server, lane).items, item)
    this.#turns.note(server, seq)
    return item
  }

  /** It will not come. */
  release(server: string, lane: string, item: Item): void {
    this.#remove(server, lane, [item])
  }

  /** It is there. */
  ready(server: string, lane: string, item: Item): void {
    item.state = 'ready'
    this.#look(server, this.#turns.lane(server, lane))
  }

  /** All that waits of a server is in its lanes: they may run. */
  activate(server: string): void {
    this.#turns.activate(server)
    this.#pump()
  }

  /** What waits only because it was withheld may run. */
  wake(): void {
    for (const { server, lane } of [...this.#turns.all()]) {
      for (const item of lane.items.filter(({ held }) => held === true)) {
        item.held = false
        item.notBefore = 0
      }
      this.#look(server, lane)
    }
  }

  /** Forgets what another process runs now; gives what that was. */
  drop(server: string): readonly Item[] {
    return this.#turns.drop(server)
  }

  #remove(server: string, name: string, gone: readonly Item[]): void {
    const lane = this.#turns.find(server, name)
    if (lane === undefined) return
    // Nearly always the head alone, of a lane that may be long.
    if (gone.length === 1 && lane.items[0] === gone[0]) lane.items.shift()
    else if (gone.length > 0) lane.items = lane.items.filter(item => !gone.includes(item))
    for (const { seq } of gone) this.#turns.forget(server, seq)
    this.#look(server, lane)
  }

  /** Whether its head can run, now or later. */
  #look(server: string, lane: InboxQueue): void {
    const [head] = lane.items
    if (head === undefined) return this.#turns.end(server, lane)
    if (lane.busy || head.state !== 'ready') return
    const wait = head.notBefore - this.#options.clock.now()
    if (wait > 0) return this.#later(server, lane, wait)
    this.#turns.queue(server, lane)
    this.#pump()
  }

  #later(server: string, lane: InboxQueue, wait: number): void {
    if (!this.#open) return
    lane.timer?.()
    const cancel = this.#options.clock.setTimeout(
      () => {
        this.#timers.delete(cancel)
        lane.timer = undefined
        this.#look(server, lane)
      },
      Math.min(wait, longestMs),
    )
    this.#timers.add(cancel)
    lane.timer = () => {
      this.#timers.delete(cancel)
      cancel()
    }
  }

  #pump(): void {
    while (this.#open && this.#running < this.#options.concurrency) {
      const next = this.#turns.next()
      if (next === undefined) return
      void this.#go(next.server, next.lane)
    }
  }

  async #go(server: string, lane: InboxQueue): Promise<void> {
    const items = batchOf(lane)
    if (items.length === 0) return
    // One that came before it may have taken its place meanwhile, and may have to wait.
    if ((items[0] as Item).notBefore > this.#options.clock.now()) return this.#look(server, lane)
    lane.busy = true
    this.#running++
    this.#turns.began(server)
    try {
      await this.#options.run(server, items)
    } finally {
      lane.busy = false
      this.#running--
      this.#turns.ended(server)
      this.#remove(
        server,
        lane.name,
        items.filter(({ state }) => state === 'gone'),
      )
      this.#pump()
      if (this.#running === 0) for (const resolve of this.#idle) resolve()
    }
  }
}

/** The head, and those that become one run with it. */
function batchOf({ items }: InboxQueue): readonly Item[] {
  const [head] = items
  if (head?.state !== 'ready') return []
  if (head.todo?.group === undefined) return [head]
  const { inferenceId } = head.todo
  return items.filter(({ state, todo }) => state === 'ready' && todo?.inferenceId === inferenceId).slice(0, groupLimit)
}

// Whose turn it is: servers one after the other, the lanes of each one after the other.

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
interface InboxQueue {
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
class RoundRobin {
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
function insertBySeq(items: Item[], item: Item): void {
  let at = items.length
  while (at > 0 && (items[at - 1] as Item).seq > item.seq) at--
  items.splice(at, 0, item)
}

// Events that become one run: the first opens a window and gives it its inference, those within it join.

/** A window that events may still join. */
interface Group {
  readonly inferenceId: string
  readonly until: number
}

/** They become one turn, which is one value of the store. */
const groupBytes = 2 * 1024 * 1024
const remembered = 10_000

/** The windows that are open. */
export class Groups {
  readonly #clock: Clock
  readonly #open = new Map<string, Group & { count: number; bytes: number }>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  join(key: string, withinMs: number, inferenceId: string, bytes: number): Group {
    const now = this.#clock.now()
    const open = this.#open.get(key)
    if (open !== undefined && open.until > now && open.count < groupLimit && open.bytes + bytes <= groupBytes) {
      open.count++
      open.bytes += bytes
      return open
    }
    if (this.#open.size >= remembered) this.#tidy(now)
    const group = { inferenceId, until: now + withinMs, count: 1, bytes }
    this.#open.set(key, group)
    return group
  }

  #tidy(now: number): void {
    for (const [key, { until }] of this.#open) if (until <= now) this.#open.delete(key)
    // Nothing is lost with one that is still open: its next event begins another.
    if (this.#open.size >= remembered) this.#open.clear()
  }
}
