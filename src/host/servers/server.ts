/**
 * One server of a host: connected, and connected again when it breaks, with more patience each time. Nothing that happens to it
 * is anybody else's trouble: whoever asks finds it up, or finds out why not.
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
import type { NoteOutcome } from '../../policy/audit/book.ts'
import type { HeldTool, Pins } from '../../policy/pins/pins.ts'
import type { KnownServer } from './entry.ts'
import { ToolList } from './tool-list.ts'

/** A tool that may be offered to a model. */
export interface HostTool {
  readonly server: string
  readonly tool: Tool
  /** The feature set that it belongs to, by the config or by its own word. */
  readonly featureSet?: string | undefined
  /** The set whose state goes along with its calls where neither says so: the only one that keeps any. It permits nothing. */
  readonly stateSet?: string | undefined
  /** The one that the config says it belongs to (`live.tools`): the tool goes off with it, whatever the tool says itself. */
  readonly assigned?: string | undefined
}

/** How a server is reached at this moment. */
export type ServerStatus = 'connecting' | 'up' | 'down' | 'refused'

/** What the rest of the host sees of a server. */
export interface HostServer {
  readonly name: string
  /** Undefined while it is down. */
  readonly client: Client | undefined
  /** Undefined too where it does not speak MCP Live. */
  readonly live: LiveConnection | undefined
  readonly status: ServerStatus
  /** Why it is not up. */
  readonly why?: Why | undefined
  /** Those whose definitions are the ones that were pinned; none while it is down. */
  tools(): Promise<readonly HostTool[]>
  /** Those that wait for somebody's yes. */
  held(): readonly HeldTool[]
}

/** What a server needs of its host. */
export interface ServerPort {
  readonly clock: Clock
  readonly random: () => number
  readonly pins: Pick<Pins, 'look' | 'approve'>
  /** What connections to a server are made with: who answers it, and how. */
  options(server: string): ConnectOptions
  /** The longest pause before a server is tried again. Default: a minute. */
  mostMs?(entry: KnownServer, reason: unknown): number | undefined
  /** Why a server is not up, where somebody knows that better. It is tried again all the same. */
  explain?(entry: KnownServer, reason: unknown): Why | undefined
  /** Told that a server came up, went down, or has other tools. */
  changed(server: HostServer): void
  /** Told of tools that are held for the first time. */
  heldBack(held: HeldTool): void
  note(kind: string, server: string, outcome: NoteOutcome, why?: Why, detail?: string): void
  /** What a server that is a command writes on standard error. */
  stderr?: ((server: string, line: string) => void) | undefined
}

/** A server that is only ever spoken to by requests is asked for a sign of life; one that is busy with a long call may be slow to give it. */
const healthCheck = { every: '15s', patient: true } as const
/** How long a server may take to come up. */
const connectMs = 30_000

/** Keeps one server connected, and connects it anew when it falls. */
export class ServerLine implements HostServer {
  /** What is said beside the connection may change while it lasts. */
  entry: KnownServer
  readonly #port: ServerPort
  readonly #stop = new AbortController()
  readonly #first = Promise.withResolvers<void>()
  #client: Client | undefined = undefined
  #status: ServerStatus = 'connecting'
  #why: Why | undefined = undefined
  /** Of this connection. */
  #tools: ToolList<HostTool> | undefined = undefined
  /** Changes of the tools are heard of, so that a list holds until then. */
  #follows = false
  #held: readonly HeldTool[] = []
  #running: Promise<void> = Promise.resolve()
  #wake: () => void = () => {}
  /** How long it was up, the last time. */
  #lastedMs = 0

  constructor(entry: KnownServer, port: ServerPort) {
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

  /** Settles when it first came up, or first failed. */
  get tried(): Promise<void> {
    return this.#first.promise
  }

  start(): void {
    this.#running = this.#run()
  }

  /** Ends it and all that it started. */
  async stop(): Promise<void> {
    this.#stop.abort(new Error('The server was stopped'))
    this.#wake()
    await this.#client?.close()
    await this.#running
  }

  /** Tries at once what would be tried later. */
  retry(): void {
    this.#wake()
  }

  tools(): Promise<readonly HostTool[]> {
    return this.#tools?.get() ?? Promise.resolve([])
  }

  held(): readonly HeldTool[] {
    return this.#held
  }

  /** What is held may have been approved. */
  relist(): void {
    this.#tools?.stale()
    this.#port.changed(this)
  }

  #toolsOf(client: Client): ToolList<HostTool> {
    return new ToolList({
      clock: this.#port.clock,
      list: () => this.#list(client),
      late: () => this.#port.changed(this),
      // A server that never spoke of tools, and has none, is not asked before every turn.
      holds: tools => this.#follows || (tools.length === 0 && client.capabilities['tools'] === undefined),
    })
  }

  async #list(client: Client): Promise<readonly HostTool[]> {
    const tools: Tool[] = []
    for await (const tool of client.tools()) tools.push(tool)
    const { offered, held } = await this.#port.pins.look(this.name, tools)
    const known = new Set(this.#held.map(({ digest }) => digest))
    this.#held = held
    for (const each of held) if (!known.has(each.digest)) this.#port.heldBack(each)
    return offered.map(tool => {
      const assigned = this.#configuredSet(tool.name)
      // The config first, so that no tool leaves the rules of its set by what it says itself.
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

  #configuredSet(tool: string): string | undefined {
    const { tools = {} } = this.entry.live
    return Object.hasOwn(tools, tool) ? tools[tool] : undefined
  }

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

  /** Connects, and gives why it ended. */
  async #once(): Promise<unknown> {
    this.#lastedMs = 0
    let upAt: number | undefined
    try {
      const client = await this.#open()
      this.#client = client
      this.#tools = this.#toolsOf(client)
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

  async #open(): Promise<Client> {
    const { entry } = this
    const options = this.#port.options(this.name)
    const late = new AbortController()
    const { startTimeoutMs: startMs = connectMs } = entry
    const cancel = this.#port.clock.setTimeout(() => late.abort(tooLate(startMs)), startMs, true)
    try {
      const signal = AbortSignal.any([this.#stop.signal, late.signal])
      // Also one that never says what it is ends when it is told to.
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

  /** What a command writes on standard error does not belong on the screen of the host. */
  #quiet(target: Target): Target {
    if (typeof target === 'string' || target instanceof URL || !('command' in target) || target.stderr !== undefined)
      return target
    const { stderr } = this.#port
    return { ...target, stderr: stderr === undefined ? 'ignore' : line => stderr(this.name, line) }
  }

  /** Looks again at the tools when the server says that they changed. */
  async #follow(client: Client): Promise<void> {
    try {
      this.#follows = announcesTools(client)
      for await (const _ of client.changes('tools', { signal: this.#stop.signal })) {
        this.#tools?.stale()
        this.#port.changed(this)
      }
    } catch {
      // It announces no changes, or is gone: the one is its right, the other is noticed elsewhere.
    } finally {
      this.#follows = false
    }
  }

  #fall(reason: unknown, waitMs: number): void {
    const said = clip(reason instanceof Error ? reason.message : String(reason ?? 'it closed the connection'), 300)
    const known = this.#port.explain?.(this.entry, reason)
    if (known !== undefined) {
      this.#why = known
      this.#become('down')
    } else if (reason instanceof TypeError) {
      this.#why = why(
        'SERVER_REFUSED',
        'servers.target',
        `The server ${quoted(this.name)} cannot be used: ${said}`,
        'Correct its entry',
      )
      this.#become('refused')
    } else {
      const fix = `It is tried again in ${Math.ceil(waitMs / 1000)} s; correct its entry if that does not help`
      this.#why = why('SERVER_DOWN', 'servers.connection', `The server ${quoted(this.name)} is not there: ${said}`, fix)
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

/** Between requests there is nothing that could break. */
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

function tooLate(startMs: number): Error {
  return new Error(`it did not come up within ${startMs / 1000} s (startTimeout of its entry)`)
}

/** How long is waited before a server is tried again. */
const reviving = {
  firstMs: 500,
  mostMs: 60_000,
  /** A connection that lasted this long was a good one: the next failure is a first one. */
  steadyMs: 30_000,
} as const

/** Doubles with each failure in a row. Half of it is chance, so that many that fell together do not come back together. */
export function reviveDelay(failures: number, random: () => number, mostMs: number = reviving.mostMs): number {
  const most = Math.min(reviving.firstMs * 2 ** Math.min(Math.max(0, failures - 1), 20), mostMs)
  return Math.round(most / 2 + (random() * most) / 2)
}
