/**
 * Event queues: events of one queue (lane) run one at a time, in the order of acceptance. Servers take turns, so that a busy one does not
 * delay the others. `Groups` merges events into one run.
 */
import type { Cancel, Clock } from '../../core/clock.ts'
import { waitAtMost } from '../waiting.ts'
import type { Attempt, Todo } from './records.ts'

interface EventQueuesOptions {
  readonly clock: Clock
  /** Concurrent runs. */
  readonly concurrency: number
  /** Concurrent runs per server. */
  readonly perServer: number
  /** Runs the head of a lane. Items that are not `gone` afterwards stay there. */
  readonly run: (server: string, items: readonly Item[]) => Promise<void>
}

/** Events per group; the next one opens a new window. */
const groupLimit = 100
/** The longest delay that timers accept. */
const longestMs = 2_000_000_000

/** An event in a lane. */
export interface Item {
  /** Its place in the order. */
  seq: string
  /** `coming`: not stored yet; `gone`: done, or no longer ours. */
  state: 'coming' | 'ready' | 'gone'
  /** When it may run, in milliseconds since the epoch. */
  notBefore: number
  /** It was withheld, so `wake` may release it early. */
  held?: boolean
  /** The version of its record in the store. */
  version: number
  /** The stored work. */
  todo: Todo | undefined
  /** Its content is only in the store, to save memory. */
  light: boolean
  attempts: readonly Attempt[]
}

/** Events that run one at a time, in the order of acceptance. */
interface Lane {
  readonly server: string
  readonly name: string
  items: Item[]
  busy: boolean
  queued: boolean
  timer: Cancel | undefined
}

interface Server {
  readonly lanes: Map<string, Lane>
  /** Lanes that could run. */
  readonly queue: Lane[]
  /** The sequence numbers of all its events. */
  readonly seqs: Set<string>
  running: number
}

/** The waiting events, by server and lane. Turns go round robin over servers, and over the lanes of each. */
export class EventQueues {
  readonly #options: EventQueuesOptions
  /** In turn order: a server that had its turn moves to the end. */
  readonly #servers = new Map<string, Server>()
  /** Servers that are completely loaded and may run. */
  readonly #active = new Set<string>()
  readonly #timers = new Set<Cancel>()
  #running = 0
  #open = false
  /** Callbacks for when nothing runs. */
  readonly #idle = new Set<() => void>()

  constructor(options: EventQueuesOptions) {
    this.#options = options
  }

  /** Starts to run events. */
  open(): void {
    this.#open = true
    this.#pump()
  }

  /** Starts no further runs. */
  close(): void {
    this.#open = false
    for (const cancel of this.#timers) cancel()
    this.#timers.clear()
  }

  /** Waits until nothing runs, or the time is over. */
  async ended(ms: number): Promise<void> {
    if (this.#running === 0) return
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#idle.add(resolve)
    await waitAtMost(this.#options.clock, ms, promise)
  }

  /** Whether an event is in a lane. */
  has(server: string, seq: string): boolean {
    return this.#servers.get(server)?.seqs.has(seq) ?? false
  }

  /** Takes a place in the order for an event that is not stored yet. */
  reserve(server: string, lane: string, seq: string): Item {
    const item: Item = { seq, state: 'coming', notBefore: 0, version: 0, todo: undefined, light: false, attempts: [] }
    insertBySeq(this.#lane(server, lane).items, item)
    this.#server(server).seqs.add(seq)
    return item
  }

  /** Gives up a reserved place. */
  release(server: string, lane: string, item: Item): void {
    this.#remove(server, lane, [item])
  }

  /** The event is stored and may run. */
  ready(server: string, lane: string, item: Item): void {
    item.state = 'ready'
    this.#look(this.#lane(server, lane))
  }

  /** All waiting events of a server are loaded: they may run. */
  activate(server: string): void {
    this.#active.add(server)
    this.#pump()
  }

  /** Lets events run that were withheld. */
  wake(): void {
    for (const lane of [...this.#servers.values()].flatMap(({ lanes }) => [...lanes.values()])) {
      for (const item of lane.items.filter(({ held }) => held === true)) {
        item.held = false
        item.notBefore = 0
      }
      this.#look(lane)
    }
  }

  /** Forgets the events of a server that another process runs now, and returns them. */
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

  #server(name: string): Server {
    let server = this.#servers.get(name)
    if (server === undefined) {
      server = { lanes: new Map(), queue: [], seqs: new Set(), running: 0 }
      this.#servers.set(name, server)
    }
    return server
  }

  #lane(server: string, name: string): Lane {
    const { lanes } = this.#server(server)
    let lane = lanes.get(name)
    if (lane === undefined) {
      lane = { server, name, items: [], busy: false, queued: false, timer: undefined }
      lanes.set(name, lane)
    }
    return lane
  }

  #remove(server: string, name: string, gone: readonly Item[]): void {
    const known = this.#servers.get(server)
    const lane = known?.lanes.get(name)
    if (known === undefined || lane === undefined) return
    // Nearly always only the head, and a lane may be long.
    if (gone.length === 1 && lane.items[0] === gone[0]) lane.items.shift()
    else if (gone.length > 0) lane.items = lane.items.filter(item => !gone.includes(item))
    for (const { seq } of gone) known.seqs.delete(seq)
    this.#look(lane)
  }

  /** Queues a lane, now or later, if its head can run; forgets it where it is empty. */
  #look(lane: Lane): void {
    const [head] = lane.items
    if (head === undefined) return this.#end(lane)
    if (lane.busy || head.state !== 'ready') return
    const wait = head.notBefore - this.#options.clock.now()
    if (wait > 0) return this.#later(lane, wait)
    if (!lane.queued) this.#server(lane.server).queue.push(lane)
    lane.queued = true
    this.#pump()
  }

  /** Removes an empty lane, and a server without lanes. */
  #end(lane: Lane): void {
    const known = this.#servers.get(lane.server)
    if (known === undefined || lane.busy) return
    lane.timer?.()
    known.lanes.delete(lane.name)
    this.#endServer(lane.server, known)
  }

  #endServer(name: string, { lanes, running }: Server): void {
    if (lanes.size === 0 && running === 0) this.#servers.delete(name)
  }

  /** Looks at a lane again when its head is due. */
  #later(lane: Lane, wait: number): void {
    if (!this.#open) return
    lane.timer?.()
    const due = (): void => {
      this.#timers.delete(cancel)
      lane.timer = undefined
      this.#look(lane)
    }
    const cancel = this.#options.clock.setTimeout(due, Math.min(wait, longestMs))
    this.#timers.add(cancel)
    lane.timer = () => {
      this.#timers.delete(cancel)
      cancel()
    }
  }

  /** Starts runs while there is capacity. */
  #pump(): void {
    while (this.#open && this.#running < this.#options.concurrency) {
      const lane = this.#next()
      if (lane === undefined) return
      void this.#go(lane)
    }
  }

  /** The next lane that may run. */
  #next(): Lane | undefined {
    for (const [name, server] of this.#servers) {
      if (server.running >= this.#options.perServer || !this.#active.has(name)) continue
      const lane = server.queue.shift()
      if (lane === undefined) continue
      lane.queued = false
      if (lane.busy || lane.items.length === 0) return this.#next()
      this.#servers.delete(name)
      this.#servers.set(name, server)
      return lane
    }
    return undefined
  }

  async #go(lane: Lane): Promise<void> {
    const items = batchOf(lane)
    if (items.length === 0) return
    // An earlier event may have been inserted meanwhile, with a later due time.
    if ((items[0] as Item).notBefore > this.#options.clock.now()) return this.#look(lane)
    lane.busy = true
    this.#running++
    this.#server(lane.server).running++
    try {
      await this.#options.run(lane.server, items)
    } finally {
      lane.busy = false
      this.#running--
      this.#ended(lane.server)
      const gone = items.filter(({ state }) => state === 'gone')
      this.#remove(lane.server, lane.name, gone)
      this.#pump()
      if (this.#running === 0) for (const resolve of this.#idle) resolve()
    }
  }

  /** A run of a server has ended; the server may have been dropped meanwhile. */
  #ended(name: string): void {
    const server = this.#servers.get(name)
    if (server === undefined) return
    server.running = Math.max(0, server.running - 1)
    this.#endServer(name, server)
  }
}

/** The head, with the other events of its group. */
function batchOf({ items }: Lane): readonly Item[] {
  const [head] = items
  if (head?.state !== 'ready') return []
  if (head.todo?.group === undefined) return [head]
  const { inferenceId } = head.todo
  return items.filter(({ state, todo }) => state === 'ready' && todo?.inferenceId === inferenceId).slice(0, groupLimit)
}

/** Inserts in order; starts at the end, where most events belong. */
function insertBySeq(items: Item[], item: Item): void {
  let at = items.length
  while (at > 0 && (items[at - 1] as Item).seq > item.seq) at--
  items.splice(at, 0, item)
}

// Groups: the first event opens a window and gives it an inference id; events within the window join it.

/** An open window. */
interface Group {
  readonly inferenceId: string
  readonly until: number
}

/** Bytes per group, because the turn becomes one value in the store. */
const groupBytes = 2 * 1024 * 1024
/** Open windows. */
const remembered = 10_000

/** The open windows. */
export class Groups {
  readonly #clock: Clock
  readonly #open = new Map<string, Group & { count: number; bytes: number }>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Joins the open window of a key, or opens one. */
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

  /** Removes closed windows. */
  #tidy(now: number): void {
    for (const [key, { until }] of this.#open) if (until <= now) this.#open.delete(key)
    // Dropping an open window loses no event: the next one opens another.
    if (this.#open.size >= remembered) this.#open.clear()
  }
}
