/** For the tests of this folder: both ends of a connection in memory, a peer that speaks raw frames, a clock moved by hand. */
import type { Clock } from '../../src/core/clock.ts'
import type { Caller, Connection, Principal } from '../../src/jsonrpc/connection.ts'
import { isRecord, type Params } from '../../src/jsonrpc/message.ts'
import { memoryPair } from '../../src/transports/memory.ts'

export type Frame = Readonly<Record<string, unknown>>

/** The first end is the server's: its caller is `principal`. */
export function joined(principal?: Principal): readonly [Connection, Connection] {
  const [server, client] = memoryPair()
  const caller: Caller = { carrier: 'memory', connection: server, principal }
  const known: Connection = {
    carrier: 'memory',
    caller,
    start: sink => server.start(sink),
    send: frame => server.send(frame),
    close: () => server.close(),
  }
  return [known, client]
}

/** Speaks frames by hand. Requests of the other end are answered by `onRequest`. */
export class RawPeer {
  readonly said: Frame[] = []
  onRequest: ((request: Frame) => unknown) | undefined = undefined
  readonly #connection: Connection
  readonly #waiting = new Map<number, (answer: Frame) => void>()
  readonly #hearing = new Set<() => void>()
  #id = 0

  constructor(connection: Connection) {
    this.#connection = connection
    connection.start({ frame: text => this.#take(JSON.parse(text)), fault: () => {}, closed: () => {} })
  }

  request(method: string, params: Params = {}): Promise<Frame> {
    const id = ++this.#id
    return new Promise(resolve => {
      this.#waiting.set(id, resolve)
      this.send({ jsonrpc: '2.0', id, method, params })
    })
  }

  /** The result; a failure is an error of the test. */
  async result(method: string, params?: Params): Promise<Frame> {
    const answer = await this.request(method, params)
    if (!isRecord(answer['result'])) throw new Error(`${method}: ${JSON.stringify(answer)}`)
    return answer['result']
  }

  async code(method: string, params?: Params): Promise<unknown> {
    const { error } = await this.request(method, params)
    return isRecord(error) ? error['code'] : undefined
  }

  /** The first message of the other end that fits, now or later. */
  heard(method: string, fits: (params: Params) => boolean = () => true): Promise<Params> {
    return new Promise(resolve => {
      const look = (): void => {
        const found = this.said.find(({ method: name, params }) => name === method && isRecord(params) && fits(params))
        if (found === undefined) return
        this.#hearing.delete(look)
        resolve(found['params'] as Params)
      }
      this.#hearing.add(look)
      look()
    })
  }

  send(frame: Frame): void {
    this.#connection.send(JSON.stringify(frame))
  }

  #take(frame: Frame): void {
    if (frame['method'] === undefined) {
      this.#waiting.get(frame['id'] as number)?.(frame)
      return
    }
    this.said.push(frame)
    for (const look of [...this.#hearing]) look()
    if (frame['id'] === undefined || this.onRequest === undefined) return
    Promise.resolve(this.onRequest(frame)).then(result => this.send({ jsonrpc: '2.0', id: frame['id'], result }))
  }
}

/** Stands still until it is moved; what is due at once runs at once. */
export class ManualClock implements Clock {
  #now = Date.UTC(2026, 6, 28)
  readonly #timers = new Set<{ readonly at: number; readonly fn: () => void }>()

  now = (): number => this.#now

  setTimeout = (fn: () => void, ms: number): (() => void) => {
    if (ms <= 0) {
      const soon = setTimeout(fn)
      return () => clearTimeout(soon)
    }
    const timer = { at: this.#now + ms, fn }
    this.#timers.add(timer)
    return () => this.#timers.delete(timer)
  }

  advance(ms: number): void {
    this.#now += ms
    for (const timer of [...this.#timers].sort((a, b) => a.at - b.at))
      if (timer.at <= this.#now && this.#timers.delete(timer)) timer.fn()
  }
}
