/**
 * One server of a host: keeps it connected, reconnects with growing delays, and lists its tools through the pins. A failure affects no
 * other server; `status` and `why` tell its state.
 */

import type { ConnectOptions } from '../../client/api.ts'
import type { Client } from '../../client/client.ts'
import { connect } from '../../client/connect.ts'
import type { Target } from '../../client/target.ts'
import type { Clock } from '../../core/clock.ts'
import { unlessAborted } from '../../core/deadlines.ts'
import { quoted, type Why, why } from '../../core/suggestion.ts'
import type { LiveConnection } from '../../features/live/client-api.ts'
import { toolSetOf } from '../../features/live/dialects/messages.ts'
import type { Tool } from '../../features/mcp/tools/messages.ts'
import { clip } from '../../jsonrpc/limits.ts'
import { type Awaitable, isRecord, type Params } from '../../jsonrpc/message.ts'
import type { NoteOutcome } from '../../policy/audit/host-audit.ts'
import type { HeldTool, Pins } from '../../policy/pins/pins.ts'
import type { ServerDefinition } from './entry.ts'
import { ToolList } from './tool-list.ts'

/** A tool that may be offered to a model. */
export interface HostTool {
  /** The name of its server. */
  readonly server: string
  /** The tool, as the server lists it. */
  readonly tool: Tool
  /** Its feature set, by the config or by its own declaration. */
  readonly featureSet?: string | undefined
  /** The only feature set with state, where neither names one. Used for state only; it permits nothing. */
  readonly stateSet?: string | undefined
  /** The feature set that the config assigns (`live.tools`); disabling it disables the tool, whatever the tool declares. */
  readonly assigned?: string | undefined
}

/** The connection state of a server. */
export type ServerStatus = 'connecting' | 'up' | 'down' | 'refused'

/** A server as the rest of the host sees it. */
export interface HostServer {
  /** The name of the server. */
  readonly name: string
  /** Undefined while it is not connected. */
  readonly client: Client | undefined
  /** Also undefined where it does not speak MCP Live. */
  readonly live: LiveConnection | undefined
  /** The state of its connection. */
  readonly status: ServerStatus
  /** Why it is not connected. */
  readonly why?: Why | undefined
  /** Tools whose definitions match their pins; none while it is down. */
  tools(): Promise<readonly HostTool[]>
  /** Tools that wait for approval. */
  held(): readonly HeldTool[]
}

/** What a server needs from its host. */
export interface ServerPort {
  readonly clock: Clock
  readonly random: () => number
  readonly pins: Pick<Pins, 'look' | 'approve'>
  /** The connect options of a server. */
  options(server: string): ConnectOptions
  /** The longest reconnect delay. Default: a minute. */
  mostMs?(entry: ServerDefinition, reason: unknown): number | undefined
  /** A better reason why a server is down, if known. It is retried all the same. */
  explain?(entry: ServerDefinition, reason: unknown): Why | undefined
  /** A server connected, disconnected, or changed its tools. */
  changed(server: HostServer): void
  /** A tool is held for the first time. */
  heldBack(held: HeldTool): void
  /** Writes an audit entry. */
  note(kind: string, server: string, outcome: NoteOutcome, why?: Why, detail?: string): void
  /** Called with the standard error of command servers. */
  stderr?: ((server: string, line: string) => void) | undefined
}

/** Health checks for HTTP, where a dead server is not noticed otherwise; a busy server may answer late. */
const healthCheck = { every: '15s', patient: true } as const
/** The default time limit of a start. */
const connectMs = 30_000

/** Keeps one server connected. */
export class ManagedServer implements HostServer {
  /** Settings that do not concern the connection may change while it lasts. */
  entry: ServerDefinition
  readonly #port: ServerPort
  readonly #stop = new AbortController()
  readonly #first = Promise.withResolvers<void>()
  #client: Client | undefined = undefined
  #status: ServerStatus = 'connecting'
  #why: Why | undefined = undefined
  /** The tools of the current connection. */
  #tools: ToolList<HostTool> | undefined = undefined
  /** Changes of tools are announced, so a list stays valid until then. */
  #follows = false
  #held: readonly HeldTool[] = []
  #running: Promise<void> = Promise.resolve()
  #wake: () => void = () => {}
  /** How long the last connection lasted. */
  #lastedMs = 0

  constructor(entry: ServerDefinition, port: ServerPort) {
    this.entry = entry
    this.#port = port
  }

  get name(): string {
    return this.entry.name
  }

  get client(): Client | undefined {
    return this.#client
  }

  get live(): LiveConnection | undefined {
    return this.#client?.live
  }

  get status(): ServerStatus {
    return this.#status
  }

  get why(): Why | undefined {
    return this.#why
  }

  /** Settles at the first success or failure. */
  get tried(): Promise<void> {
    return this.#first.promise
  }

  /** Starts to connect. */
  start(): void {
    this.#running = this.#run()
  }

  /** Disconnects for good. */
  async stop(): Promise<void> {
    this.#stop.abort(new Error('The server was stopped'))
    this.#wake()
    await this.#client?.close()
    await this.#running
  }

  /** Reconnects without waiting. */
  retry(): void {
    this.#wake()
  }

  tools(): Promise<readonly HostTool[]> {
    return this.#tools?.get() ?? Promise.resolve([])
  }

  held(): readonly HeldTool[] {
    return this.#held
  }

  /** Lists the tools again, because held ones may have been approved. */
  relist(): void {
    this.#tools?.stale()
    this.#port.changed(this)
  }

  /** Lists the tools and checks them against their pins. */
  async #list(client: Client): Promise<readonly HostTool[]> {
    const tools: Tool[] = []
    for await (const tool of client.tools()) tools.push(tool)
    const { offered, held } = await this.#port.pins.look(this.name, tools)
    const known = new Set(this.#held.map(({ digest }) => digest))
    this.#held = held
    for (const each of held) if (!known.has(each.digest)) this.#port.heldBack(each)
    return offered.map(tool => {
      const assigned = this.#configuredSet(tool.name)
      // The config comes first, so that a tool cannot escape its set's rules by its own declaration.
      const featureSet = assigned ?? toolSetOf(tool as unknown as Params, new Map())
      const stateSet = featureSet === undefined ? client.toolSet(tool.name) : undefined
      return {
        ...{ server: this.name, tool },
        ...(featureSet !== undefined && { featureSet }),
        ...(stateSet !== undefined && { stateSet }),
        ...(assigned && { assigned }),
      }
    })
  }

  /** The feature set that the config assigns to a tool. */
  #configuredSet(tool: string): string | undefined {
    const { tools = {} } = this.entry.live
    return Object.hasOwn(tools, tool) ? tools[tool] : undefined
  }

  /** Connects again and again until stopped or refused. */
  async #run(): Promise<void> {
    const { signal } = this.#stop
    for (let failures = 0; !signal.aborted; ) {
      const reason = await this.#once()
      if (signal.aborted) break
      failures = this.#lastedMs > reviving.steadyMs ? 1 : failures + 1
      const waitMs = reviveDelay(failures, this.#port.random, this.#port.mostMs?.(this.entry, reason))
      this.#fall(reason, waitMs)
      if (this.#status === 'refused') break
      await this.#pause(waitMs)
      if (!signal.aborted) this.#become('connecting')
    }
    this.#first.resolve()
  }

  /** One connection; returns why it ended. */
  async #once(): Promise<unknown> {
    this.#lastedMs = 0
    let upAt: number | undefined
    try {
      const client = await this.#open()
      this.#client = client
      this.#tools = new ToolList({
        clock: this.#port.clock,
        list: () => this.#list(client),
        late: () => this.#port.changed(this),
        // A server without the capability and without tools is not asked before every turn.
        holds: tools => this.#follows || (tools.length === 0 && client.capabilities['tools'] === undefined),
      })
      if (this.#stop.signal.aborted) await client.close()
      else {
        upAt = this.#port.clock.now()
        this.#become('up')
        this.#port.note('server', this.name, 'success', undefined, 'up')
        this.#first.resolve()
        void this.#follow(client)
      }
      return await client.ended
    } catch (error) {
      return error
    } finally {
      this.#client = undefined
      this.#tools = undefined
      if (upAt !== undefined) this.#lastedMs = this.#port.clock.now() - upAt
    }
  }

  /** Opens the connection within the start timeout. */
  async #open(): Promise<Client> {
    const { entry } = this
    const options = this.#port.options(this.name)
    const late = new AbortController()
    const { startTimeoutMs: startMs = connectMs } = entry
    const tooLate = `it did not start within ${startMs / 1000} s (startTimeout of its entry)`
    const cancel = this.#port.clock.setTimeout(() => late.abort(new Error(tooLate)), startMs, true)
    try {
      const signal = AbortSignal.any([this.#stop.signal, late.signal])
      // A target function that never settles is abandoned when the signal aborts.
      const target = typeof entry.target === 'function' ? await unlessAborted(openingOf(entry.target), signal) : entry.target
      return await connect(this.#quiet(target), {
        ...(overHttp(target) && { healthCheck }),
        startTimeout: startMs,
        ...entry.connect,
        ...options,
        ...(entry.headers !== undefined && { headers: entry.headers }),
        ...(entry.timeoutMs !== undefined && { timeout: entry.timeoutMs }),
        signal,
      })
    } finally {
      cancel()
    }
  }

  /** Redirects a command's standard error away from the host's own. */
  #quiet(target: Target): Target {
    if (typeof target === 'string' || target instanceof URL || !('command' in target) || target.stderr !== undefined)
      return target
    const { stderr } = this.#port
    return { ...target, stderr: stderr === undefined ? 'ignore' : line => stderr(this.name, line) }
  }

  /** Lists the tools again when the server announces a change. */
  async #follow(client: Client): Promise<void> {
    try {
      this.#follows = announcesTools(client)
      for await (const _ of client.changes('tools', { signal: this.#stop.signal })) {
        this.#tools?.stale()
        this.#port.changed(this)
      }
    } catch {
      // The server announces no changes, or the connection ended, which is noticed elsewhere.
    } finally {
      this.#follows = false
    }
  }

  /** Records why the connection ended; a TypeError means that retrying is useless. */
  #fall(reason: unknown, waitMs: number): void {
    const said = clip(reason instanceof Error ? reason.message : String(reason ?? 'it closed the connection'), 300)
    const known = this.#port.explain?.(this.entry, reason)
    if (known !== undefined) {
      this.#why = known
      this.#become('down')
    } else if (reason instanceof TypeError) {
      const message = `The server ${quoted(this.name)} cannot be used: ${said}`
      this.#why = why('SERVER_REFUSED', 'servers.target', message, 'Correct its entry in the config')
      this.#become('refused')
    } else {
      const fix = `The next attempt is in ${Math.ceil(waitMs / 1000)} s. If the error persists, correct its entry in the config`
      this.#why = why('SERVER_DOWN', 'servers.connection', `The server ${quoted(this.name)} is not available: ${said}`, fix)
      this.#become('down')
    }
    this.#port.note('server', this.name, 'failure', this.#why)
    this.#first.resolve()
  }

  #become(status: ServerStatus): void {
    this.#status = status
    if (status === 'up') this.#why = undefined
    this.#port.changed(this)
  }

  /** Waits for the reconnect delay, or until `retry`. */
  #pause(ms: number): Promise<void> {
    return new Promise(resolve => {
      const cancel = this.#port.clock.setTimeout(resolve, ms, true)
      this.#wake = () => {
        cancel()
        resolve()
      }
      if (this.#stop.signal.aborted) this.#wake()
    })
  }
}

/** HTTP has no lasting connection that could break. */
function overHttp(target: Target): boolean {
  return target instanceof URL ? target.protocol.startsWith('http') : typeof target === 'string' && /^https?:/i.test(target)
}

function announcesTools({ capabilities }: Client): boolean {
  const { tools } = capabilities
  return isRecord(tools) && tools['listChanged'] === true
}

async function openingOf(open: () => Awaitable<Target>): Promise<Target> {
  return open()
}

/** Reconnect delays. */
const reviving = {
  firstMs: 500,
  mostMs: 60_000,
  /** After a connection of this length the delay starts anew. */
  steadyMs: 30_000,
} as const

/** The delay doubles with each failure in a row; half of it is random, so that servers do not reconnect in step. */
export function reviveDelay(failures: number, random: () => number, mostMs: number = reviving.mostMs): number {
  const most = Math.min(reviving.firstMs * 2 ** Math.min(Math.max(0, failures - 1), 20), mostMs)
  return Math.round(most / 2 + (random() * most) / 2)
}
