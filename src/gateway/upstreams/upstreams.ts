/** Connects the upstreams of a gateway, lists them, follows their changes, and restarts those whose entries change. */

import type { ConnectOptions } from '../../client/api.ts'
import { Client } from '../../client/client.ts'
import type { ChangeKind } from '../../client/index.ts'
import type { Target } from '../../client/target.ts'
import type { Clock } from '../../core/clock.ts'
import type { Why } from '../../core/suggestion.ts'
import { listTools } from '../../features/mcp/tools/messages.ts'
import type { HostServer, ServerPort } from '../../host/servers/server.ts'
import { type ConfigEffect, Servers } from '../../host/servers/servers.ts'
import { ConnectionError } from '../../jsonrpc/connection.ts'
import { isRecord } from '../../jsonrpc/message.ts'
import { LaunchHeldError } from '../../policy/pins/launches.ts'
import { version } from '../../revisions/revision.ts'
import { referenceOf } from '../bridge/failures.ts'
import type { UpstreamCall } from '../bridge/upstream-call.ts'
import { UpstreamConnection, type UpstreamConnectionPort } from '../bridge/upstream-connection.ts'
import type { GatewayOptions } from '../gateway.ts'
import { CredentialsNeeded, type CredentialsParts, credentialsWhy } from './auth.ts'
import { ConnectLimit, type GatewayServer, same, upstreamEntry } from './entry.ts'
import { type Offer, readOffer } from './offer.ts'

/** What upstreams need from the rest of the gateway. */
interface UpstreamsPort extends UpstreamConnectionPort {
  readonly clock: Clock
  /** Randomises reconnect delays. */
  readonly random: () => number
  /** Checks tool definitions against their pins. */
  readonly pins: ServerPort['pins']
  readonly credentials: CredentialsParts
  /** Throws where a changed command or address is held for approval. */
  admit(upstream: string, target: Target, pinned: boolean): Promise<void>
  /** An upstream is connected. */
  up(upstream: string, revision: string | undefined): void
  /** Called with the standard error of command servers. */
  readonly stderr?: ((server: string, line: string) => void) | undefined
  /** The largest message of an upstream, in bytes. */
  readonly frameBytes?: number | undefined
  /** The naming option of the gateway. */
  readonly names?: GatewayOptions['names'] | undefined
  /** The upstream announced a change of a list. */
  announced(upstream: string, list: ChangeKind): void
  /** Shows the lists of an upstream. */
  show(upstream: string, offer: Offer): void
  /** Hides the entries of an upstream. */
  hide(upstream: string): void
}

/** A connected upstream. */
interface Use {
  readonly client: Client
  readonly line: UpstreamConnection
  /** Pauses the timeout of a call while its client is asked. */
  readonly waits: (held: boolean, upstreamCall: UpstreamCall) => void
}

/** One server of the options, ready to connect. */
interface PlannedUpstream extends ReturnType<typeof upstreamEntry> {
  readonly option: GatewayServer
}

/** Servers by name, in config order. */
type Plan = ReadonlyMap<string, PlannedUpstream>

/** A call to an upstream that is down starts a reconnect, but not more often than this. */
const retryMs = 1_000

/** How long calls under way may take when their upstream is removed. */
const leaveMs = 10_000
/** How often that is checked. */
const lookMs = 50
/** Upstreams that connect and list at the same time. */
const atOnce = 16
/** How long a doubted upstream may take to answer. */
const doubtMs = 5_000
/** The longest reconnect delay for a URL, which is cheap to try. */
const soonMs = 4_000
/** The longest delay while a sign-in or approval is missing: these happen outside the gateway and should be noticed soon. */
const besideMs = 15_000
/** Limit of a call that no client waits for; others end when their client cancels. */
const callMs = 600_000

/** The lists whose changes an upstream announces. Without detailed capabilities all are assumed. */
function announcedBy(client: Client): readonly ChangeKind[] {
  const { capabilities } = client
  const { detailedCapabilities } = Client.caller(client).session.opened.revision
  const tells = (kind: string): boolean => {
    const said = capabilities[kind]
    return !detailedCapabilities || (isRecord(said) && said['listChanged'] === true)
  }
  return (['tools', 'prompts', 'resources'] as const).filter(tells)
}

/** Creates `waits` for a connection. */
function waitsOn(client: Client): Use['waits'] {
  const { session } = Client.caller(client)
  return (held, { id }) => {
    if (id !== undefined) session.opened.conversation.calls?.hold(id, held)
  }
}

/** A log entry for an upstream that went down. */
class ServerDown extends Error {
  override readonly name = 'ServerDown'
  readonly code: string

  constructor({ code, message, fix }: Why) {
    super(`${message}. ${fix}`)
    this.code = code
    // The stack shows where the failure was noticed, not its cause.
    delete this.stack
  }
}

/** Connects the servers behind a gateway, lists them, and restarts them when their entries change. */
export class Upstreams {
  readonly #port: UpstreamsPort
  /** The connection manager of the host. */
  readonly #servers: Servers
  /** The latest listing of each upstream. */
  readonly #listing = new Map<string, Promise<void>>()
  /** When each upstream was last retried by a call. */
  readonly #retried = new Map<string, number>()
  readonly #uses = new WeakMap<Client, Use>()
  readonly #gate = new ConnectLimit(atOnce)
  #planned: Plan = new Map()
  /** Numbers entries, so that a new entry differs from the previous one of the same name. */
  #made = 0
  /** Upstreams that are being removed. */
  readonly #leaving = new Set<string>()
  #closed = false
  #applying: Promise<unknown> = Promise.resolve()
  /** Connections that are being checked. */
  readonly #doubted = new WeakSet<Client>()
  /** The last reason for each upstream that is down. */
  readonly #fell = new Map<string, Why>()
  /** The call registry of the newest connection, by upstream. */
  readonly #lines = new Map<string, UpstreamConnection>()

  constructor(port: UpstreamsPort) {
    this.#port = port
    this.#servers = new Servers({
      clock: port.clock,
      random: port.random,
      pins: port.pins,
      options: name => this.#options(name),
      changed: server => this.#changed(server),
      // The pins report held tools themselves.
      heldBack: () => {},
      note: (kind, server, outcome, why, detail) => this.#note(server, why, { kind, server, outcome, why, detail }),
      stderr: port.stderr && ((server, line) => this.#planned.get(server)?.writeStderr(line)),
      explain: ({ name }, reason) => (reason instanceof LaunchHeldError ? reason.why : credentialsWhy(name, reason)),
      mostMs: ({ name }, reason) => {
        if (reason instanceof LaunchHeldError || credentialsWhy(name, reason) !== undefined) return besideMs
        return this.#planned.get(name)?.address === undefined ? undefined : soonMs
      },
    })
  }

  /** Prepares servers without starting anything; throws on a mistake. An unchanged entry keeps its plan, and so its connection. */
  plan(servers: Readonly<Record<string, GatewayServer>>): Plan {
    const plan = new Map<string, PlannedUpstream>()
    for (const [name, option] of Object.entries(servers)) {
      const before = this.#planned.get(name)
      if (before !== undefined && same(before.option, option)) plan.set(name, before)
      else plan.set(name, this.#prepare(name, option))
    }
    return plan
  }

  /** Starts, stops and restarts servers to match the plan. Those that end get time to answer calls under way. */
  apply(plan: Plan): Promise<ConfigEffect> {
    const applying = this.#apply(plan)
    this.#applying = applying.catch(() => {})
    return applying
  }

  async #apply(plan: Plan): Promise<ConfigEffect> {
    const before = this.#planned
    this.#planned = plan
    const leaving = [...before].filter(([name, planned]) => plan.get(name) !== planned)
    // First start what is new while the old ones still serve, then drain and replace the changed ones.
    const staying = [...plan].filter(([name]) => !leaving.some(([left]) => left === name))
    const first = await this.#become([...staying, ...leaving])
    if (leaving.length === 0) return first
    await this.#leave(leaving.map(([name]) => name))
    const then = await this.#become(plan)
    // An entry that ended before it was let in gives its place back.
    for (const [, { entry }] of leaving) this.#gate.leave(entry.digest)
    return { ...then, started: [...first.started, ...then.started] }
  }

  #become(plan: Iterable<readonly [string, PlannedUpstream]>): Promise<ConfigEffect> {
    // After close, nothing may start that would never be stopped.
    if (this.#closed) return Promise.resolve({ started: [], stopped: [], restarted: [], updated: [] })
    return this.#servers.apply(new Map([...plan].map(([name, { entry }]) => [name, entry])))
  }

  /** Settles when each upstream was listed or failed once. */
  async ready(): Promise<void> {
    await this.#servers.tried()
    await Promise.allSettled(this.#listing.values())
  }

  /** In config order. */
  list(): readonly HostServer[] {
    return [...this.#planned.keys()].flatMap(name => this.#servers.get(name) ?? [])
  }

  /** The connection for a call. Where it is down, starts a reconnect and returns the reason. */
  use(name: string): Use | { readonly why: Why | undefined } {
    const server = this.#servers.get(name)
    const client = server?.client
    const use = client === undefined ? undefined : this.#uses.get(client)
    if (use !== undefined) return use
    this.#retry(name)
    return { why: server?.why }
  }

  /** A call could not be delivered. A refused connection is closed; after a lost one the upstream is checked with a request. */
  doubt(name: string, client: Client, error: ConnectionError): void {
    const { session } = Client.caller(client)
    if (session.opened.conversation.ended || this.#doubted.has(client)) return
    // 403 concerns a single call; other credential failures concern the whole upstream.
    const unwanted = error.cause instanceof CredentialsNeeded && error.status !== 403
    if (error.kind === 'refused' || unwanted) return void session.close(error)
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

  /** Whether calls are under way. */
  get busy(): boolean {
    return !this.#closed && this.list().some(({ name }) => this.#isBusy(name))
  }

  /** The connection of an upstream, where it is connected. */
  client(name: string): Client | undefined {
    return this.#servers.get(name)?.client
  }

  /** How it is reached. */
  carrier(name: string): PlannedUpstream['carrier'] {
    return this.#planned.get(name)?.carrier
  }

  /** The prefix of its names. */
  prefix(name: string): string | undefined {
    return this.#planned.get(name)?.prefix
  }

  /** Reconnects now. */
  retry(name: string): void {
    this.#servers.retry(name)
  }

  /** Lists the tools of an upstream again. */
  relist(name: string): void {
    this.#servers.relist(name)
  }

  /** Disconnects all upstreams. */
  async close(): Promise<void> {
    this.#closed = true
    await this.#applying
    await this.#servers.close()
  }

  /** An option as a planned server, whose connection waits for the gate and the launch check. */
  #prepare(name: string, option: GatewayServer): PlannedUpstream {
    const made = upstreamEntry(name, option, this.#port)
    const { target } = made.entry
    const digest = `${this.#made++} ${name}`
    const gated = async (): Promise<Target> => {
      await this.#gate.enter(digest)
      const opening = typeof target === 'function' ? await target() : target
      await this.#port.admit(name, opening, made.pinned)
      return opening
    }
    return { ...made, option, entry: { ...made.entry, target: gated, digest } }
  }

  /** Reports why an upstream is down, once per reason. */
  #note(server: string, why: Why | undefined, detail: Readonly<Record<string, unknown>>): void {
    const before = this.#fell.get(server)
    if (why === undefined) {
      this.#fell.delete(server)
      return this.#port.up(server, this.client(server)?.revision)
    }
    const known = before?.message === why.message ? before : undefined
    const reference = referenceOf(why, known)
    this.#fell.set(server, why)
    if (known !== undefined) return this.#port.trace('upstream', { ...detail, reference })
    this.#port.trace('upstream-down', { server, reference, error: new ServerDown(why) })
  }

  /** Hides upstreams and waits, up to a limit, until their calls have ended. */
  async #leave(names: readonly string[]): Promise<void> {
    for (const name of names) {
      this.#leaving.add(name)
      this.#port.hide(name)
    }
    const { clock } = this.#port
    for (let waitedMs = 0; waitedMs < leaveMs && !this.#closed && names.some(name => this.#isBusy(name)); waitedMs += lookMs)
      await new Promise<void>(resolve => clock.setTimeout(resolve, lookMs, true))
    for (const name of names) this.#leaving.delete(name)
  }

  /** Whether calls are under way at an upstream. */
  #isBusy(name: string): boolean {
    const client = this.client(name)
    return client !== undefined && this.#uses.get(client)?.line.busy === true
  }

  /** Reconnects, at most once per `retryMs`. */
  #retry(name: string): void {
    const now = this.#port.clock.now()
    if (now - (this.#retried.get(name) ?? Number.NEGATIVE_INFINITY) < retryMs) return
    this.#retried.set(name, now)
    this.#servers.retry(name)
  }

  /** Connect options; each connection gets its own call registry. */
  #options(name: string): ConnectOptions {
    const line = new UpstreamConnection(name, this.#port)
    this.#lines.set(name, line)
    const { clock, frameBytes } = this.#port
    const limits = frameBytes === undefined ? {} : { limits: { ...this.#planned.get(name)?.entry.connect?.limits, frameBytes } }
    return { info: { name: 'vivarium-gateway', version }, relay: line.relaying, timeout: callMs, retry: false, clock, ...limits }
  }

  /** An upstream connected, disconnected, or changed its tools. */
  #changed(server: HostServer): void {
    const { name, client, status } = server
    if (status === 'down' || status === 'refused') this.#passed(name)
    if (client === undefined || status !== 'up' || this.#leaving.has(name)) return this.#port.hide(name)
    const line = this.#lines.get(name)
    const first = !this.#uses.has(client) && line !== undefined
    if (first) this.#uses.set(client, { client, line, waits: waitsOn(client) })
    this.#list(server, client)
    if (!first) return
    const beside = announcedBy(client)
    for (const kind of beside) void this.#follow(server, client, kind, beside)
  }

  /** Lists an upstream. Listings run one after the other, and only the newest is carried out. */
  #list(server: HostServer, client: Client): void {
    const { name } = server
    const before = this.#listing.get(name) ?? Promise.resolve()
    const look = async (): Promise<void> => {
      if (this.#listing.get(name) !== listing || server.client !== client) return
      const failed = (list: string, error: unknown): void => this.#port.trace('upstream-list', { server: name, list, error })
      const tools = async () => (await server.tools()).map(({ tool }) => tool)
      const offer = await readOffer(client, tools, failed)
      if (server.client === client && !this.#leaving.has(name)) this.#port.show(name, offer)
    }
    // A failed listing must not block the next one.
    const listing = before.then(look).catch(error => this.#port.trace('upstream-list', { server: name, error }))
    this.#listing.set(name, listing)
    listing.finally(() => this.#passed(name))
  }

  /** Gives the place at the gate to the next upstream. */
  #passed(name: string): void {
    const entry = this.#planned.get(name)?.entry
    if (entry !== undefined) this.#gate.leave(entry.digest)
  }

  /** Follows the announcements of one list. */
  async #follow(server: HostServer, client: Client, kind: ChangeKind, beside: readonly ChangeKind[]): Promise<void> {
    try {
      for await (const _ of client.changes(kind, { beside })) {
        this.#port.announced(server.name, kind)
        // The connection manager lists tools itself.
        if (kind !== 'tools') this.#list(server, client)
      }
    } catch {
      // The upstream announces no changes, or the connection ended, which is noticed elsewhere.
    }
  }
}
