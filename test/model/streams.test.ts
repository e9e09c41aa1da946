/**
 * A client that listens to what is said unasked, whose stream breaks again and again, and which each time comes back to any of
 * several servers on one store: it hears all that each of them says after the first event it got there, in order and once.
 */
import { setTimeout as wait } from 'node:timers/promises'
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { createServer, type Server } from '../../src/server/index.ts'
import { memoryStore } from '../../src/stores/memory.ts'
import type { Store } from '../../src/stores/store.ts'
import { Stream } from '../event-stream.ts'
import { type Frame, helloParams } from '../spec/wire.ts'

const runs = Number(process.env['VIVARIUM_MODEL_RUNS'] ?? 40)
const replicas = 3

type Command = { readonly say: number } | { readonly go: number } | 'hear' | 'settle'

const command: fc.Arbitrary<Command> = fc.oneof(
  { weight: 4, arbitrary: fc.record({ say: fc.nat({ max: replicas - 1 }) }) },
  { weight: 3, arbitrary: fc.record({ go: fc.nat({ max: replicas - 1 }) }) },
  { weight: 2, arbitrary: fc.constant<Command>('hear') },
  { weight: 1, arbitrary: fc.constant<Command>('settle') },
)

function replica(store: Store): Server {
  const server = createServer({ name: 'replica', version: '1.0.0', log: 'silent', store })
  server.resource('note://{by}/{id}', { name: 'note' }, () => 'a note')
  return server
}

class World {
  readonly #servers: readonly Server[]
  readonly #headers: Record<string, string>
  /** What each has said since the client first came there, */
  readonly #said = new Map<number, string[]>()
  /** and what of it was heard. */
  readonly #heard = new Map<number, string[]>()
  #stream: Stream
  #at = 0
  #count = 0

  private constructor(servers: readonly Server[], headers: Record<string, string>, stream: Stream) {
    this.#servers = servers
    this.#headers = headers
    this.#stream = stream
    this.#said.set(0, [])
  }

  static async begin(servers: readonly Server[]): Promise<World> {
    const hello = { id: 1, method: 'initialize', params: helloParams('2025-11-25', {}) }
    const opened = await ask(servers[0] as Server, 'POST', {}, hello)
    const headers = { 'mcp-session-id': opened.headers.get('mcp-session-id') ?? '' }
    await ask(servers[0] as Server, 'POST', headers, { method: 'notifications/initialized' })
    for (let by = 0; by < replicas; by++)
      for (let id = 0; id < 40; id++) {
        const params = { uri: `note://${by}/${id}` }
        await ask(servers[0] as Server, 'POST', headers, { id: 2, method: 'resources/subscribe', params })
      }
    const cutting = new AbortController()
    return new World(
      servers,
      headers,
      new Stream(await ask(servers[0] as Server, 'GET', headers, undefined, cutting.signal), cutting),
    )
  }

  async run(command: Command): Promise<void> {
    if (command === 'settle') await new Promise(setImmediate)
    else if (command === 'hear') await this.#hearOne()
    else if ('say' in command) this.#say(command.say)
    else await this.#go(command.go)
  }

  /** Each says a last word, and all is heard up to these. */
  async end(): Promise<void> {
    for (const by of this.#said.keys()) this.#say(by)
    while (this.#owed > 0) await this.#next()
    expect(this.#heard).toEqual(new Map([...this.#said].filter(([, said]) => said.length > 0)))
    this.#stream.cut()
  }

  #say(by: number): void {
    const uri = `note://${by}/${this.#count++ % 40}`
    // A server that was never visited knows nobody who listens.
    this.#said.get(by)?.push(uri)
    this.#servers[by]?.resourceUpdated(uri)
  }

  async #go(to: number): Promise<void> {
    if (this.#stream.lastId === undefined) await this.#stream.begun()
    this.#stream.cut()
    const cutting = new AbortController()
    const headers = { ...this.#headers, 'last-event-id': this.#stream.lastId ?? '' }
    this.#stream = new Stream(
      await ask(this.#servers[to] as Server, 'GET', headers, undefined, cutting.signal),
      cutting,
      headers['last-event-id'],
    )
    expect(this.#stream.status).toBe(200)
    this.#at = to
    if (this.#said.has(to)) return
    // Only an id tells elsewhere that it was here.
    await this.#stream.begun()
    this.#said.set(to, [])
  }

  async #hearOne(): Promise<void> {
    if (this.#owed > 0) await this.#next()
  }

  get #owed(): number {
    const count = (lists: ReadonlyMap<number, string[]>): number =>
      [...lists.values()].reduce((sum, list) => sum + list.length, 0)
    return count(this.#said) - count(this.#heard)
  }

  async #next(): Promise<void> {
    const late = wait(10_000, undefined, { ref: false }).then(() => {
      throw new Error(`Not heard: ${JSON.stringify([...this.#said])}, but ${JSON.stringify([...this.#heard])}`)
    })
    const event = (await Promise.race([this.#stream.next(), late])) as { params: { uri: string } } | undefined
    // Let go in good order: whoever is comes back.
    if (event === undefined) return this.#go(this.#at)
    const { params } = event
    const by = Number(params.uri.split('/')[2])
    this.#heard.set(by, [...(this.#heard.get(by) ?? []), params.uri])
  }
}

function ask(
  server: Server,
  method: string,
  headers: Record<string, string>,
  body?: Frame,
  signal?: AbortSignal,
): Promise<Response> {
  const sent = { accept: 'application/json, text/event-stream', 'content-type': 'application/json', ...headers }
  const text = body === undefined ? {} : { body: JSON.stringify({ jsonrpc: '2.0', ...body }) }
  return server.fetch(new Request('http://localhost/mcp', { method, headers: sent, ...text, ...(signal && { signal }) }))
}

it('all that is said from the first visit on is heard in order and once, wherever the stream breaks and goes on', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(command, { minLength: 5, maxLength: 30 }), async commands => {
      const store = memoryStore()
      const servers = Array.from({ length: replicas }, () => replica(store))
      try {
        const world = await World.begin(servers)
        for (const each of commands) await world.run(each)
        await world.end()
      } finally {
        await Promise.all(servers.map(server => server.close()))
      }
    }),
    { numRuns: runs },
  )
}, 120_000)
