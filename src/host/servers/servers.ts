/** All servers of a host. A new config only affects the servers whose entries changed. */
import { quoted, type Why, why } from '../../core/suggestion.ts'
import type { HeldTool } from '../../policy/pins/pins.ts'
import type { ServerDefinition } from './entry.ts'
import { type HostServer, ManagedServer, type ServerPort, type ServerStatus } from './server.ts'

/** The effect of a new config. */
export interface ConfigEffect {
  readonly started: readonly string[]
  readonly stopped: readonly string[]
  readonly restarted: readonly string[]
  /** Servers that stay connected but got other settings. */
  readonly updated: readonly string[]
}

/** All servers of a host, by name. */
export class Servers {
  readonly #port: ServerPort
  readonly #lines = new Map<string, ManagedServer>()
  readonly #refused = new Map<string, HostServer>()

  constructor(port: ServerPort) {
    this.#port = port
  }

  get(name: string): HostServer | undefined {
    return this.#lines.get(name) ?? this.#refused.get(name)
  }

  /** In config order, refused ones last. */
  list(): readonly HostServer[] {
    return [...this.#lines.values(), ...this.#refused.values()]
  }

  /** The entry of a server that is not refused. */
  entry(name: string): ServerDefinition | undefined {
    return this.#lines.get(name)?.entry
  }

  /** Starts, stops and updates servers to match the config; unchanged ones are not touched. */
  async apply(
    wanted: ReadonlyMap<string, ServerDefinition>,
    refused: ReadonlyMap<string, Why> = new Map(),
  ): Promise<ConfigEffect> {
    const started: string[] = []
    const stopped: string[] = []
    const updated: string[] = []
    const gone: Promise<void>[] = []
    for (const [name, line] of this.#lines) {
      const next = wanted.get(name)
      if (next !== undefined && !next.disabled && next.digest === line.entry.digest) continue
      gone.push(line.stop())
      this.#lines.delete(name)
      stopped.push(name)
    }
    await Promise.allSettled(gone)
    this.#refused.clear()
    for (const [name, said] of refused) this.#refuse(name, said)
    for (const [name, entry] of wanted) {
      if (!isName(name)) this.#refuse(name, unnamed(name))
      else if (entry.disabled) this.#refuse(name, disabled(name))
      else if (!this.#lines.has(name)) {
        this.#start(entry)
        started.push(name)
      } else if (this.#update(name, entry)) updated.push(name)
    }
    return {
      started: started.filter(name => !stopped.includes(name)),
      stopped: stopped.filter(name => !started.includes(name)),
      restarted: stopped.filter(name => started.includes(name)),
      updated,
    }
  }

  /** Settles when each server connected or failed once. */
  async tried(): Promise<void> {
    await Promise.all([...this.#lines.values()].map(line => line.tried))
  }

  /** Reconnects a server without waiting. */
  retry(name: string): void {
    this.#lines.get(name)?.retry()
  }

  /** Lists the tools of a server again. */
  relist(name: string): void {
    this.#lines.get(name)?.relist()
  }

  /** Approves a held tool definition. */
  async approve(held: HeldTool): Promise<void> {
    await this.#port.pins.approve(held)
    this.#lines.get(held.server)?.relist()
  }

  async close(): Promise<void> {
    const all = [...this.#lines.values()]
    this.#lines.clear()
    await Promise.allSettled(all.map(line => line.stop()))
  }

  /** Connects a new server. */
  #start(entry: ServerDefinition): void {
    const line = new ManagedServer(entry, this.#port)
    this.#lines.set(entry.name, line)
    line.start()
  }

  /** Applies settings that do not concern the connection. True if there were changes. */
  #update(name: string, entry: ServerDefinition): boolean {
    const line = this.#lines.get(name)
    if (line === undefined || JSON.stringify(beside(line.entry)) === JSON.stringify(beside(entry))) return false
    line.entry = entry
    line.live?.update().catch(error => this.#port.note('select', name, 'failure', undefined, String(error)))
    line.relist()
    return true
  }

  /** Lists a server as refused. */
  #refuse(name: string, said: Why): void {
    this.#refused.set(name, refusedServer(name, said))
    this.#port.note('server', name, 'refused', said)
  }
}

/** Names are part of store keys, so they are bounded. */
function isName(name: string): boolean {
  return name !== '' && name.length <= 100 && name.isWellFormed() && encodeURIComponent(name).length <= 300
}

function unnamed(name: string): Why {
  const fix = 'Use 1 to 100 letters and digits (fewer for letters outside ASCII)'
  return why('SERVER_NAME', 'servers.name', `${quoted(name)} is not a valid server name`, fix)
}

/** The settings that do not concern the connection. */
function beside({ live, autoApprove, events = [] }: ServerDefinition): unknown {
  return [live, autoApprove, events]
}

function refusedServer(name: string, said: Why): HostServer {
  const status: ServerStatus = 'refused'
  return { name, client: undefined, live: undefined, status, why: said, tools: async () => [], held: () => [] }
}

function disabled(name: string): Why {
  const message = `The server ${quoted(name)} is disabled`
  return why('SERVER_DISABLED', 'config.disabled', message, 'Remove "disabled" from its entry')
}
