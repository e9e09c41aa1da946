/**
 * The foundation of a host: its store, config file, servers, states and audit log. It knows neither model nor policy; what answers the
 * servers is passed in as a port.
 */

import { type FSWatcher, watch } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { basename, dirname, resolve } from 'node:path'
import type { ConnectOptions } from '../client/api.ts'
import { type Cancel, type Clock, realClock } from '../core/clock.ts'
import { digestText } from '../core/digest.ts'
import { type Log, logFrom } from '../core/log.ts'
import { type Why, why } from '../core/suggestion.ts'
import { clip } from '../jsonrpc/limits.ts'
import { HostAuditLog, type Noted, type NoteOutcome } from '../policy/audit/host-audit.ts'
import { openSpans } from '../policy/audit/spans.ts'
import { type HeldTool, Pins } from '../policy/pins/pins.ts'
import { openStore } from '../stores/open.ts'
import { messageOf, prefixedStore, type Store } from '../stores/store.ts'
import { type ConfigFault, faultText, type HostConfig, readConfig } from './config/read.ts'
import { knownServer, type ServerDefinition, type ServerOption } from './servers/entry.ts'
import type { HostServer } from './servers/server.ts'
import { Servers } from './servers/servers.ts'
import { StateBook, stateBookPort } from './state/book.ts'
import { waitAtMost } from './waiting.ts'

/** Options about the store, the config file, the servers and the audit log. */
export interface FoundationOptions {
  /** A config file with `mcpServers`, or `servers` as in VS Code. Changes of the file take effect at once. Default: none. */
  readonly config?: string
  /**
   * Called before a config takes effect, and again before each changed version does. Texts still contain `${VAR}` and no file of
   * variables has been read. A returned reason refuses it: then nothing is started, and running servers stay as they are.
   */
  readonly onConfig?: (config: HostConfig, text: string) => Why | undefined | Promise<Why | undefined>
  /** Values of `${VAR}` in the config. Default: the environment of this process. */
  readonly env?: Readonly<Record<string, string | undefined>>
  /** Servers by name, in addition to those of the config. Default: none. */
  readonly servers?: Readonly<Record<string, ServerOption>>
  /** The store: `sqlite:path`, `postgres://…`, `memory:` or an object. Default `memory:`. */
  readonly store?: string | Store
  /** How tool definitions are pinned. */
  readonly pins?: {
    /** What happens to the tools of a new server. Default `pin`: their definitions are accepted and pinned. */
    readonly first?: 'pin' | 'hold'
  }
  /** How much of the audit log is kept. */
  readonly audit?: {
    /** How long entries are kept, in milliseconds. Default 90 days. */
    readonly keepMs?: number
    /** How many entries are kept. Default 1,000,000. */
    readonly keep?: number
  }
  /** How long `createHost` waits for servers, in milliseconds; they continue to connect afterwards. Default 15,000. */
  readonly startMs?: number
  /** Called when a server connects, disconnects, or changes its tools. Default: not called. */
  readonly onServer?: (server: HostServer) => void
  /** Called for each mistake in the config, at the start and after each change. Default: not called. */
  readonly onConfigFault?: (fault: ConfigFault) => void
  /**
   * Called for what nobody would notice otherwise: an audit entry that could not be written, a config that could not be read, events that
   * nothing processes, feature sets that are not enabled. Default: a line at level `warn` on standard error (see `VIVARIUM_LOG`).
   */
  readonly onTrouble?: (why: Why) => void
  /** Called for each entry of the audit log. Default: not called. */
  readonly onNote?: (noted: Noted) => void
  /** Called when a feature set has a new checkpoint, or another one became its head. Default: not called. */
  readonly onState?: (server: string, featureSet: string) => void
  /** Called with the standard error of command servers, line by line. Default: it is discarded. */
  readonly onStderr?: (server: string, line: string) => void
  /** For tests: time and timers. Default: the real clock. */
  readonly clock?: Clock
  /** For tests: a number from 0 to below 1. Default: Math.random. */
  readonly random?: () => number
}

/** What the rest of the host provides to the foundation. */
export interface FoundationPort {
  /** The connect options of a server. */
  connecting(server: string): ConnectOptions
  /** Called with the wanted servers, before they are connected. */
  configured(servers: ReadonlyMap<string, ServerDefinition>): Promise<void>
  /** Called when a server connects, disconnects, or changes its tools. */
  changed(server: HostServer): void
  /** Called when a tool definition is held. */
  held(tool: HeldTool): void
}

/** The store, servers, states and audit log of a host. `open` opens the store, `start` connects the servers. */
export class HostFoundation {
  readonly clock: Clock
  readonly random: () => number
  /** The host's part of the store: keys start with `host/`. */
  readonly store: Store
  readonly audit: HostAuditLog
  readonly state: StateBook
  readonly servers: Servers
  readonly pins: Pins
  readonly #options: FoundationOptions
  /** The whole store, to close it. */
  readonly #whole: Store
  #port: FoundationPort | undefined = undefined
  #stopWatching: () => Promise<void> = () => Promise.resolve()
  #faults: readonly ConfigFault[] = []
  #log: Log | undefined

  private constructor(options: FoundationOptions, whole: Store, heard: ((noted: Noted) => void) | undefined) {
    const { clock = realClock, random = Math.random, onStderr } = options
    this.#options = options
    this.#whole = whole
    this.clock = clock
    this.random = random
    this.store = prefixedStore(whole, 'host/')
    const failed = (error: unknown): void => this.impaired(error)
    this.audit = new HostAuditLog({ store: this.store, clock, ...options.audit, failed, heard })
    this.pins = new Pins({ store: this.store, clock, ...options.pins })
    this.servers = new Servers({
      clock,
      random,
      pins: this.pins,
      options: server => this.#port?.connecting(server) ?? {},
      changed: server => {
        this.#port?.changed(server)
        options.onServer?.(server)
      },
      heldBack: held => this.#held(held),
      note: (kind, server, outcome, why, detail) => void this.audit.note({ kind, server, outcome, why, detail }),
      stderr: onStderr,
    })
    this.state = new StateBook({
      store: this.store,
      clock,
      port: stateBookPort(name => this.servers.get(name)),
      changed: options.onState,
      rolled: (server, featureSet, detail, { success, why }) =>
        void this.audit.note({
          server,
          featureSet,
          kind: 'rollback',
          outcome: success ? 'success' : rollbackOutcome(why),
          why,
          detail,
        }),
      odd: (server, featureSet, why) => void this.audit.note({ server, featureSet, kind: 'state', outcome: 'failure', why }),
    })
  }

  /** Opens the store. Servers are connected by `start`. */
  static async open(options: FoundationOptions): Promise<HostFoundation> {
    const { store = 'memory:', clock = realClock } = options
    const whole = typeof store === 'string' ? await openStore(store, { now: clock.now }) : store
    return new HostFoundation(options, whole, allOf(await openSpans(), options.onNote))
  }

  /** The mistakes of the config when it was last read. */
  get faults(): readonly ConfigFault[] {
    return this.#faults
  }

  /** Connects the servers. Resolves when each was tried once, or after `startMs`. */
  async start(port: FoundationPort): Promise<void> {
    this.#port = port
    const { config, startMs = 15_000 } = this.#options
    if (config === undefined) await this.#apply(undefined)
    else await this.#startFrom(resolve(config))
    await waitAtMost(this.clock, startMs, this.servers.tried())
  }

  /** Stops the servers and closes what `open` opened. */
  async close(): Promise<void> {
    await this.#stopWatching()
    await this.servers.close()
    await this.audit.close()
    if (typeof (this.#options.store ?? '') === 'string') await this.#whole.close()
  }

  /** Reads the config for the first time, and watches it. Unlike later changes, a mistake in the file itself throws. */
  async #startFrom(file: string): Promise<void> {
    const text = await readFile(file, 'utf8').catch((cause: unknown) => {
      throw new TypeError(`${file}: The config file does not exist or is not readable (config.file). Correct the path`, { cause })
    })
    const refused = await this.#refusal(text, file)
    if (refused !== undefined) throw new TypeError(`${refused.message}. ${refused.fix}`)
    const config = await this.#read(text, file)
    if (!config.readable) throw new TypeError(config.faults.map(faultText).join('\n'))
    await this.#apply(config)
    this.#stopWatching = watchText(file, text, {
      clock: this.clock,
      changed: changed => this.#applyIfAllowed(changed, file),
      failed: error => this.impaired(error),
    })
  }

  /** Applies a changed config, unless it is refused or cannot be read. */
  async #applyIfAllowed(text: string, file: string): Promise<void> {
    const refused = await this.#refusal(text, file)
    if (refused !== undefined) {
      void this.audit.note({ server: '', kind: 'config', outcome: 'refused', why: refused, detail: file })
      return this.notice(refused)
    }
    const config = await this.#read(text, file)
    // An unreadable file says nothing about any server, so all stay as they are.
    if (!config.readable) return
    await this.#apply(config)
    const rule = this.#options.onConfig === undefined ? 'config' : 'onConfig'
    void this.audit.note({ server: '', kind: 'config', outcome: 'success', rule, detail: file })
  }

  /** Asks `onConfig`. An unreadable config is not asked about. */
  async #refusal(text: string, file: string): Promise<Why | undefined> {
    const { onConfig } = this.#options
    if (onConfig === undefined) return undefined
    const written = await readConfig(text, file, { variables: 'keep' })
    return written.readable ? onConfig(written, text) : undefined
  }

  /** Reads the config and reports its mistakes. */
  async #read(text: string, file: string): Promise<HostConfig> {
    const { env, onConfigFault } = this.#options
    const config = await readConfig(text, file, env === undefined ? {} : { env })
    this.#faults = config.faults
    for (const fault of config.faults) {
      onConfigFault?.(fault)
      const detail = `${fault.file}:${fault.line}`
      void this.audit.note({ server: fault.server ?? '', kind: 'config', outcome: 'refused', why: fault.why, detail })
    }
    return config
  }

  /** Connects the servers of the config and of the options. */
  async #apply(config: HostConfig | undefined): Promise<void> {
    const given = Object.entries(this.#options.servers ?? {}).map(([name, option]) => [name, knownServer(name, option)] as const)
    const wanted = new Map<string, ServerDefinition>([...(config?.servers ?? []), ...given])
    await this.#port?.configured(wanted)
    await this.servers.apply(wanted, config?.refused)
  }

  /** Audits a held tool and passes it on. */
  #held(held: HeldTool): void {
    void this.audit.note({ server: held.server, kind: 'pin', outcome: 'held', why: held.why, detail: held.tool.name })
    this.#port?.held(held)
  }

  /** Reports a failure that nobody waits for. */
  impaired(error: unknown): void {
    const message = `An operation of the host failed in the background: ${clip(messageOf(error), 300)}`
    this.notice(why('HOST_IMPAIRED', 'host', message, 'Check the store and the config file'))
  }

  /** Gives a notice to the program, or writes it to the log. */
  notice(notice: Why): void {
    const { onTrouble } = this.#options
    if (onTrouble !== undefined) return onTrouble(notice)
    const { code, rule, message, fix } = notice
    this.#log ??= logFrom(undefined, 'warn')
    this.#log.warn(code.toLowerCase().replaceAll('_', '-'), { message, fix, rule })
  }
}

/** The audit outcome of a rollback: a failure of the server is no decision of the host. */
function rollbackOutcome(said: Why | undefined): NoteOutcome {
  if (said?.code === 'ROLLBACK_TIMEOUT') return 'timeout'
  return said?.code === 'ROLLBACK_REFUSED' || said?.code === 'ROLLBACK_FAILED' ? 'failure' : 'refused'
}

/** Calls all listeners, even if one throws. */
function allOf(...listeners: readonly (((noted: Noted) => void) | undefined)[]): (noted: Noted) => void {
  return noted => {
    const failures: unknown[] = []
    for (const tell of listeners) {
      try {
        tell?.(noted)
      } catch (error) {
        failures.push(error)
      }
    }
    if (failures.length > 0) throw failures[0]
  }
}

// File watching: the file is read when the system reports a change, and periodically, because not every file system does. The folder is
// watched because editors replace the file.

interface WatchOptions {
  readonly clock: Clock
  /** Called with each text that differs from the previous one. Awaited, so that two calls never overlap. */
  readonly changed: (text: string) => Promise<void>
  /** Called when the file cannot be read. */
  readonly failed: (error: unknown) => void
  /** How long changes must pause before the file is read. Default 100 ms. */
  readonly settleMs?: number
  /** How often the file is read regardless. Default 10 s. */
  readonly everyMs?: number
}

/** Watches a file. `first`: the text that is already known. Returns the function that stops it. */
export function watchText(path: string, first: string, options: WatchOptions): () => Promise<void> {
  const { clock, changed, failed, settleMs = 100, everyMs = 10_000 } = options
  let stopped = false
  let known = digestText(first)
  let timer: Cancel | undefined
  let looking: Promise<void> = Promise.resolve()

  const wait = (ms: number): void => {
    timer?.()
    if (!stopped) timer = clock.setTimeout(look, ms, true)
  }
  const look = (): void => {
    looking = looking
      .then(read)
      .catch(failed)
      .finally(() => wait(everyMs))
  }
  const read = async (): Promise<void> => {
    const text = await readFile(path, 'utf8')
    const digest = await digestText(text)
    if (stopped || digest === (await known)) return
    known = Promise.resolve(digest)
    await changed(text)
  }
  const watcher = watching(dirname(path), basename(path), () => wait(settleMs), failed)
  wait(everyMs)
  return async () => {
    stopped = true
    timer?.()
    watcher?.close()
    await looking
  }
}

/** A watcher of the folder; undefined where the system has none. */
function watching(folder: string, name: string, told: () => void, failed: (error: unknown) => void): FSWatcher | undefined {
  try {
    return watch(folder, { persistent: false }, (_, changed) => {
      if (changed === null || changed === name) told()
    }).on('error', failed)
  } catch (error) {
    failed(error)
    return undefined
  }
}
