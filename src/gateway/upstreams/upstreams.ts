/** The servers behind a gateway: each connected by itself, listed, and looked at again when it says that something changed. */

import type { ChangeKind } from '../../client/changes.ts'
import { Client } from '../../client/client.ts'
import type { ConnectOptions } from '../../client/options.ts'
import type { Target } from '../../client/target.ts'
import type { Clock } from '../../core/clock.ts'
import { version } from '../../core/version.ts'
import type { Why } from '../../core/why.ts'
import { listTools } from '../../features/mcp/tools/messages.ts'
import { type KnownServer, knownServer, type ServerOption } from '../../host/servers/entry.ts'
import type { HostServer, ServerPort } from '../../host/servers/server.ts'
import { Servers } from '../../host/servers/servers.ts'
import { ConnectionError } from '../../jsonrpc/connection.ts'
import { isRecord } from '../../jsonrpc/message.ts'
import type { Flight } from '../bridge/flight.ts'
import { Line, type LinePort } from '../bridge/line.ts'
import { Gate } from './gate.ts'
import { type Offer, readOffer } from './offer.ts'

export interface UpstreamsPort extends LinePort {
  readonly clock: Clock
  readonly random: () => number
  readonly pins: ServerPort['pins']
  readonly stderr?: ((server: string, line: string) => void) | undefined
  /** The upstream says that one of its lists is another one now. */
  announced(upstream: string, list: ChangeKind): void
  show(upstream: string, offer: Offer): void
  hide(upstream: string): void
}

/** An upstream that is there. */
export interface Use {
  readonly client: Client
  readonly line: Line
  /** Time stands still for a call while its caller is asked. */
  readonly waits: (held: boolean, flight: Flight) => void
}

/** An upstream that is down is tried at once when it is called, but not more often than this. */
const retryMs = 1_000

/** How many are connected to and listed at a time. */
const atOnce = 16
/** How long a server may take to show that it is there. */
const doubtMs = 5_000
/** An address costs little to try: it is back soon after it is there again. */
const soonMs = 4_000
/** A call ends by itself when its caller has gone; this only bounds what nobody waits for. */
const callMs = 600_000

/** The lists of whose changes it tells. The dialect does without saying so. */
function announcedBy({ capabilities, revision }: Client): readonly ChangeKind[] {
  const tells = (kind: string): boolean => {
    const said = capabilities[kind]
    return revision === 's3' || (isRecord(said) && said['listChanged'] === true)
  }
  return (['tools', 'prompts', 'resources'] as const).filter(tells)
}

function waitsOn(client: Client): Use['waits'] {
  const { session } = Client.caller(client)
  return (held, { id }) => {
    if (id !== undefined) session.opened.conversation.calls?.hold(id, held)
  }
}

export class Upstreams {
  readonly #port: UpstreamsPort
  readonly #servers: Servers
  readonly #listing = new Map<string, Promise<void>>()
  readonly #retried = new Map<string, number>()
  readonly #uses = new WeakMap<Client, Use>()
  readonly #gate = new Gate(atOnce)
  /** Those that are no commands. */
  readonly #addresses = new Set<string>()
  readonly #doubted = new WeakSet<Client>()
  /** Of the connection that is being opened. */
  readonly #lines = new Map<string, Line>()

  constructor(port: UpstreamsPort) {
    this.#port = port
    this.#servers = new Servers({
      clock: port.clock,
      random: port.random,
      pins: port.pins,
      options: name => this.#options(name),
      changed: server => this.#changed(server),
      heldBack: held => port.trace('tool-held', held.why),
      note: (kind, server, outcome, why, detail) => port.trace('upstream', { kind, server, outcome, why, detail }),
      stderr: port.stderr,
      mostMs: ({ name }) => (this.#addresses.has(name) ? soonMs : undefined),
    })
  }

  async start(servers: Readonly<Record<string, ServerOption>>): Promise<void> {
    const known = new Map<string, KnownServer>()
    for (const [name, option] of Object.entries(servers)) {
      const entry = knownServer(name, option)
      const { target } = entry
      const gated = async (): Promise<Target> => {
        await this.#gate.enter(name)
        return typeof target === 'function' ? target() : target
      }
      known.set(name, { ...entry, target: gated })
      if (typeof target === 'string' || target instanceof URL) this.#addresses.add(name)
    }
    await this.#servers.apply(known)
  }

  /** Settles when each came up once and was listed, or failed once. */
  async ready(): Promise<void> {
    await this.#servers.tried()
    await Promise.allSettled(this.#listing.values())
  }

  list(): readonly HostServer[] {
    return this.#servers.list()
  }

  /** For a call: one that is down is tried again, so that it is back as soon as it is there. */
  use(name: string): Use | { readonly why: Why | undefined } {
    const server = this.#servers.get(name)
    const client = server?.client
    const use = client === undefined ? undefined : this.#uses.get(client)
    if (use !== undefined) return use
    this.#retry(name)
    return { why: server?.why }
  }

  /** A call could not be delivered. What was refused is gone; what was lost may have been one connection of many: it is asked. */
  doubt(name: string, client: Client, error: ConnectionError): void {
    const { session } = Client.caller(client)
    if (session.opened.conversation.ended || this.#doubted.has(client)) return
    if (error.kind === 'refused') return void session.close(error)
    if (error.kind !== 'lost') return
    this.#doubted.add(client)
    session
      .request(listTools, {}, { timeoutMs: doubtMs })
      .catch(said => {
        if (said instanceof ConnectionError) return session.close(said)
        return this.#port.trace('upstream', { server: name, error: said })
      })
      .finally(() => this.#doubted.delete(client))
  }

  client(name: string): Client | undefined {
    return this.#servers.get(name)?.client
  }

  retry(name: string): void {
    this.#servers.retry(name)
  }

  /** Looks again at the tools of one. */
  relist(name: string): void {
    this.#servers.relist(name)
  }

  async close(): Promise<void> {
    await this.#servers.close()
  }

  #retry(name: string): void {
    const now = this.#port.clock.now()
    if (now - (this.#retried.get(name) ?? Number.NEGATIVE_INFINITY) < retryMs) return
    this.#retried.set(name, now)
    this.#servers.retry(name)
  }

  #options(name: string): ConnectOptions {
    const line = new Line(name, this.#port)
    this.#lines.set(name, line)
    const { clock } = this.#port
    return { info: { name: 'vivarium-gateway', version }, relay: line.relaying, timeout: callMs, retry: false, clock }
  }

  #changed(server: HostServer): void {
    const { name, client, status } = server
    if (status === 'down' || status === 'refused') this.#gate.leave(name)
    if (client === undefined || status !== 'up') return this.#port.hide(name)
    const line = this.#lines.get(name)
    const first = !this.#uses.has(client) && line !== undefined
    if (first) this.#uses.set(client, { client, line, waits: waitsOn(client) })
    this.#list(server, client)
    if (!first) return
    const beside = announcedBy(client)
    for (const kind of beside) void this.#follow(server, client, kind, beside)
  }

  /** One after the other, and the last one counts. */
  #list(server: HostServer, client: Client): void {
    const { name } = server
    const before = this.#listing.get(name) ?? Promise.resolve()
    const look = async (): Promise<void> => {
      if (this.#listing.get(name) !== listing || server.client !== client) return
      const failed = (list: string, error: unknown): void => this.#port.trace('upstream-list', { server: name, list, error })
      const tools = async () => (await server.tools()).map(({ tool }) => tool)
      const offer = await readOffer(client, tools, failed)
      if (server.client === client) this.#port.show(name, offer)
    }
    // One that fails must not keep those after it from being tried.
    const listing = before.then(look).catch(error => this.#port.trace('upstream-list', { server: name, error }))
    this.#listing.set(name, listing)
    listing.finally(() => this.#gate.leave(name))
  }

  async #follow(server: HostServer, client: Client, kind: ChangeKind, beside: readonly ChangeKind[]): Promise<void> {
    try {
      for await (const _ of client.changes(kind, { beside })) {
        this.#port.announced(server.name, kind)
        // Tools are looked at by whoever keeps the connection.
        if (kind !== 'tools') this.#list(server, client)
      }
    } catch {
      // It announces no changes, or is gone: the one is its right, the other is noticed elsewhere.
    }
  }
}
