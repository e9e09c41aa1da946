/** The servers behind a gateway: each connected by itself, listed, and looked at again when it says that something changed. */

import type { ConnectOptions } from '../../client/api.ts'
import { Client } from '../../client/client.ts'
import type { ChangeKind } from '../../client/index.ts'
import type { Target } from '../../client/target.ts'
import type { Clock } from '../../core/clock.ts'
import type { Why } from '../../core/suggestion.ts'
import { listTools } from '../../features/mcp/tools/messages.ts'
import type { KnownServer } from '../../host/servers/entry.ts'
import type { HostServer, ServerPort } from '../../host/servers/server.ts'
import { type Applied, Servers } from '../../host/servers/servers.ts'
import { ConnectionError } from '../../jsonrpc/connection.ts'
import { isRecord } from '../../jsonrpc/message.ts'
import { LaunchHeld } from '../../policy/pins/launches.ts'
import { version } from '../../revisions/revision.ts'
import { referenceOf } from '../bridge/failures.ts'
import type { UpstreamCall } from '../bridge/upstream-call.ts'
import { UpstreamConnection, type UpstreamConnectionPort } from '../bridge/upstream-connection.ts'
import type { GatewayOptions } from '../gateway.ts'
import { CredentialsNeeded, type CredentialsParts, credentialsWhy } from './auth.ts'
import { addressOf, Gate, type GatewayServer, pinsLaunch, prefixIn, same, upstreamEntry, voiceOf } from './entry.ts'
import { type Offer, readOffer } from './offer.ts'

/** What upstreams need of the gateway. */
export interface UpstreamsPort extends UpstreamConnectionPort {
  readonly clock: Clock
  readonly random: () => number
  readonly pins: ServerPort['pins']
  readonly credentials: CredentialsParts
  /** Throws where a server is not to be started, or called, in this way. */
  admit(upstream: string, target: Target, pinned: boolean): Promise<void>
  /** An upstream is there. */
  up(upstream: string, revision: string | undefined): void
  readonly stderr?: ((server: string, line: string) => void) | undefined
  /** The most bytes of one message of a server. */
  readonly frameBytes?: number | undefined
  readonly names?: GatewayOptions['names'] | undefined
  /** The upstream says that one of its lists is another one now. */
  announced(upstream: string, list: ChangeKind): void
  show(upstream: string, offer: Offer): void
  hide(upstream: string): void
}

/** An upstream that is there. */
export interface Use {
  readonly client: Client
  readonly line: UpstreamConnection
  /** Time stands still for a call while its caller is asked. */
  readonly waits: (held: boolean, upstreamCall: UpstreamCall) => void
}

/** One server of the options, ready to be connected to. */
interface Planned {
  readonly option: GatewayServer
  readonly entry: KnownServer
  /** Of one that is no command. */
  readonly address: string | undefined
  /** Takes what it writes on standard error. */
  readonly voice: (line: string) => void
}

/** Servers by name, in their order. */
type Plan = ReadonlyMap<string, Planned>

const untouched: Applied = { started: [], stopped: [], restarted: [], updated: [] }

function entriesOf(plan: Iterable<readonly [string, Planned]>): ReadonlyMap<string, KnownServer> {
  return new Map([...plan].map(([name, { entry }]) => [name, entry]))
}

/** An upstream that is down is tried at once when it is called, but not more often than this. */
const retryMs = 1_000

/** How long calls that are under way may take when their upstream is to end, and how often it is looked whether they do. */
const leaveMs = 10_000
const lookMs = 50
/** How many are connected to and listed at a time. */
const atOnce = 16
/** How long a server may take to show that it is there. */
const doubtMs = 5_000
/** An address costs little to try: it is back soon after it is there again. */
const soonMs = 4_000
/** Whoever signs in or approves does it beside the gateway, which is to notice soon, but not to ask all the time. */
const besideMs = 15_000
/** A call ends by itself when its caller has gone; this only bounds what nobody waits for. */
const callMs = 600_000

/** The lists of whose changes it tells: where capabilities have no details, it does so without a word. */
function announcedBy(client: Client): readonly ChangeKind[] {
  const { capabilities } = client
  const { detailedCapabilities } = Client.caller(client).session.opened.revision
  const tells = (kind: string): boolean => {
    const said = capabilities[kind]
    return !detailedCapabilities || (isRecord(said) && said['listChanged'] === true)
  }
  return (['tools', 'prompts', 'resources'] as const).filter(tells)
}

function waitsOn(client: Client): Use['waits'] {
  const { session } = Client.caller(client)
  return (held, { id }) => {
    if (id !== undefined) session.opened.conversation.calls?.hold(id, held)
  }
}

/** What the log shows of a server that went down. */
class ServerDown extends Error {
  override readonly name = 'ServerDown'
  readonly code: string

  constructor({ code, message, fix }: Why) {
    super(`${message}. ${fix}`)
    this.code = code
    // Where it was noticed says nothing of why.
    delete this.stack
  }
}

/** Connects the servers behind a gateway, lists them, and restarts them when their entries change. */
export class Upstreams {
  readonly #port: UpstreamsPort
  readonly #servers: Servers
  readonly #listing = new Map<string, Promise<void>>()
  readonly #retried = new Map<string, number>()
  readonly #uses = new WeakMap<Client, Use>()
  readonly #gate = new Gate(atOnce)
  #planned: Plan = new Map()
  /** How many entries were made, so that each is told from those before it. */
  #made = 0
  /** Those that are about to end. */
  readonly #leaving = new Set<string>()
  #closed = false
  #applying: Promise<unknown> = Promise.resolve()
  readonly #doubted = new WeakSet<Client>()
  /** Why each was down the last time, until it is up. */
  readonly #fell = new Map<string, Why>()
  /** Of the connection that is being opened. */
  readonly #lines = new Map<string, UpstreamConnection>()

  constructor(port: UpstreamsPort) {
    this.#port = port
    this.#servers = new Servers({
      clock: port.clock,
      random: port.random,
      pins: port.pins,
      options: name => this.#options(name),
      changed: server => this.#changed(server),
      // Whoever pins them tells of those that are held.
      heldBack: () => {},
      note: (kind, server, outcome, why, detail) => this.#note(server, why, { kind, server, outcome, why, detail }),
      stderr: port.stderr && ((server, line) => this.#planned.get(server)?.voice(line)),
      explain: ({ name }, reason) => (reason instanceof LaunchHeld ? reason.why : credentialsWhy(name, reason)),
      mostMs: ({ name }, reason) => {
        if (reason instanceof LaunchHeld || credentialsWhy(name, reason) !== undefined) return besideMs
        return this.#planned.get(name)?.address === undefined ? undefined : soonMs
      },
    })
  }

  /** What servers come to, before anything of it is done; throws where one of them is mistaken. What reads as before stays what it is. */
  plan(servers: Readonly<Record<string, GatewayServer>>): Plan {
    const plan = new Map<string, Planned>()
    for (const [name, option] of Object.entries(servers)) {
      const before = this.#planned.get(name)
      if (before !== undefined && same(before.option, option)) plan.set(name, before)
      else plan.set(name, { option, ...this.#entry(name, option) })
    }
    return plan
  }

  /** Makes what runs be what is wanted. Those that leave, or are started anew, are given time to answer what they were asked. */
  apply(plan: Plan): Promise<Applied> {
    const applying = this.#apply(plan)
    this.#applying = applying.catch(() => {})
    return applying
  }

  async #apply(plan: Plan): Promise<Applied> {
    const before = this.#planned
    this.#planned = plan
    const leaving = [...before].filter(([name, planned]) => plan.get(name) !== planned)
    const staying = [...plan].filter(([name]) => !leaving.some(([left]) => left === name))
    const first = await this.#become([...staying, ...leaving])
    if (leaving.length === 0) return first
    await this.#leave(leaving.map(([name]) => name))
    const then = await this.#become(plan)
    // Who ends while it is let in by nobody has left all the same.
    for (const [, { entry }] of leaving) this.#gate.leave(entry.digest)
    return { ...then, started: [...first.started, ...then.started] }
  }

  #become(plan: Iterable<readonly [string, Planned]>): Promise<Applied> {
    // Nothing is started that nobody would end.
    return this.#closed ? Promise.resolve(untouched) : this.#servers.apply(entriesOf(plan))
  }

  /** Settles when each came up once and was listed, or failed once. */
  async ready(): Promise<void> {
    await this.#servers.tried()
    await Promise.allSettled(this.#listing.values())
  }

  /** In the order in which they were named. */
  list(): readonly HostServer[] {
    return [...this.#planned.keys()].flatMap(name => this.#servers.get(name) ?? [])
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
    // A right that one call lacks is that call's matter; who is not let in at all has nothing to offer.
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

  /** Calls are under way. */
  get busy(): boolean {
    return !this.#closed && this.list().some(({ client }) => client !== undefined && this.#uses.get(client)?.line.busy === true)
  }

  client(name: string): Client | undefined {
    return this.#servers.get(name)?.client
  }

  /** What stands in front of all its names. */
  prefix(name: string): string | undefined {
    const option = this.#planned.get(name)?.option
    return option && prefixIn(name, option, this.#port.names)
  }

  retry(name: string): void {
    this.#servers.retry(name)
  }

  /** Looks again at the tools of one. */
  relist(name: string): void {
    this.#servers.relist(name)
  }

  async close(): Promise<void> {
    this.#closed = true
    await this.#applying
    await this.#servers.close()
  }

  #entry(name: string, option: GatewayServer): Omit<Planned, 'option'> {
    const entry = upstreamEntry(name, option, this.#port.credentials)
    const { target } = entry
    const digest = `${this.#made++} ${name}`
    const gated = async (): Promise<Target> => {
      await this.#gate.enter(digest)
      const opening = typeof target === 'function' ? await target() : target
      await this.#port.admit(name, opening, pinsLaunch(option))
      return opening
    }
    const { clock, stderr } = this.#port
    const voice = voiceOf(option, clock, line => stderr?.(name, line))
    return { entry: { ...entry, target: gated, digest }, address: addressOf(target), voice }
  }

  /** Why it is down is told once as trouble, and then no more until it is down for another reason. */
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

  /** Nobody new is sent to them; who was is waited for, but not for ever. */
  async #leave(names: readonly string[]): Promise<void> {
    for (const name of names) {
      this.#leaving.add(name)
      this.#port.hide(name)
    }
    const isBusy = (name: string): boolean => {
      const client = this.#servers.get(name)?.client
      return client !== undefined && this.#uses.get(client)?.line.busy === true
    }
    const { clock } = this.#port
    for (let waitedMs = 0; waitedMs < leaveMs && !this.#closed && names.some(isBusy); waitedMs += lookMs)
      await new Promise<void>(resolve => clock.setTimeout(resolve, lookMs, true))
    for (const name of names) this.#leaving.delete(name)
  }

  #retry(name: string): void {
    const now = this.#port.clock.now()
    if (now - (this.#retried.get(name) ?? Number.NEGATIVE_INFINITY) < retryMs) return
    this.#retried.set(name, now)
    this.#servers.retry(name)
  }

  /** A new connection gets a new set of calls. */
  #options(name: string): ConnectOptions {
    const line = new UpstreamConnection(name, this.#port)
    this.#lines.set(name, line)
    const { clock, frameBytes } = this.#port
    const limits = frameBytes === undefined ? {} : { limits: { ...this.#planned.get(name)?.entry.connect?.limits, frameBytes } }
    return { info: { name: 'vivarium-gateway', version }, relay: line.relaying, timeout: callMs, retry: false, clock, ...limits }
  }

  /** A server came up, went down, or has other tools. */
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

  /** One after the other, and the last one counts. */
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
    // One that fails must not keep those after it from being tried.
    const listing = before.then(look).catch(error => this.#port.trace('upstream-list', { server: name, error }))
    this.#listing.set(name, listing)
    listing.finally(() => this.#passed(name))
  }

  /** The next one may be let in. */
  #passed(name: string): void {
    const entry = this.#planned.get(name)?.entry
    if (entry !== undefined) this.#gate.leave(entry.digest)
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
