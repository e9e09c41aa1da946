/**
 * What every host stands on: its store, the servers of its config, the state that they leave, and the audit of it all. What answers
 * servers is handed in, so that this part knows of no model and no policy.
 */

import { type FSWatcher, watch } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { basename, dirname, resolve } from 'node:path'
import type { ConnectOptions } from '../client/api.ts'
import { type Cancel, type Clock, realClock } from '../core/clock.ts'
import { digestText } from '../core/digest.ts'
import { type Why, why } from '../core/suggestion.ts'
import { clip } from '../jsonrpc/limits.ts'
import { AuditBook, type Noted, type NoteOutcome } from '../policy/audit/book.ts'
import { openSpans } from '../policy/audit/spans.ts'
import { type HeldTool, Pins } from '../policy/pins/pins.ts'
import { openStore } from '../stores/open.ts'
import { type Store, storeWithin } from '../stores/store.ts'
import { type ConfigFault, faultText, type HostConfig, readConfig } from './config/read.ts'
import { type KnownServer, knownServer, type ServerOption } from './servers/entry.ts'
import type { HostServer } from './servers/server.ts'
import { type Applied, Servers } from './servers/servers.ts'
import { StateBook, stateBookPort } from './state/book.ts'

/** Options about the store, the config file, the servers and the audit log. */
export interface FoundationOptions {
  /** A config file: `mcpServers`, or VS Code's `servers`. It is read again whenever it changes. */
  readonly config?: string
  /**
   * Asked before anything of a config is used, and again before another version of it is: no variable is filled in yet, so texts hold
   * `${VAR}`, and no file that it names is read. A reason means no: then nothing is started, and what runs already stays as it is.
   */
  readonly onConfig?: (config: HostConfig, text: string) => Why | undefined | Promise<Why | undefined>
  /** Where `${VAR}` in the config comes from. Default: the environment of this process. */
  readonly env?: Readonly<Record<string, string | undefined>>
  /** Servers by name, beside those of the config. */
  readonly servers?: Readonly<Record<string, ServerOption>>
  /** Where everything that lasts is kept: `sqlite:path`, `postgres://…`, `memory:` or a store. Default `memory:`. */
  readonly store?: string | Store
  /** How definitions of tools are held to what they were when they were first seen. */
  readonly pins?: {
    /** What happens to the tools of a server that was never seen before. Default `pin`: they are taken as they are. */
    readonly first?: 'pin' | 'hold'
  }
  /** How much of the audit log is kept. */
  readonly audit?: {
    /** How long notes are kept, in milliseconds. Default 90 days. */
    readonly keepMs?: number
    /** How many at most. Default 1,000,000. */
    readonly keep?: number
  }
  /** How long the opening waits for servers, in milliseconds; they go on after it. Default 15,000. */
  readonly startMs?: number
  /** Told when a server comes up, goes down, or has other tools. */
  readonly onServer?: (server: HostServer) => void
  /** Told of mistakes in the config, at the start and whenever it is read again. */
  readonly onConfigFault?: (fault: ConfigFault) => void
  /** Told of what the host could not do and nobody asked for: to write a note, to read its config again. */
  readonly onTrouble?: (why: Why) => void
  /** Told of each entry of the audit log when it is made: what was done, refused, held or dropped, and by which rule. */
  readonly onNote?: (noted: Noted) => void
  /** Told what servers that are commands write on standard error. */
  readonly onStderr?: (server: string, line: string) => void
  /** For tests: the time, and timers. Default: the real one. */
  readonly clock?: Clock
  /** From 0 to below 1. */
  readonly random?: () => number
}

/** What the rest of a host hangs onto the frame. */
export interface FoundationPort {
  /** What connections to a server are made with. */
  connecting(server: string): ConnectOptions
  /** Told of the servers that are wanted, before they are connected. */
  configured(servers: ReadonlyMap<string, KnownServer>): Promise<void>
  /** Told that a server came up, went down, or has other tools. */
  changed(server: HostServer): void
  /** Told of a definition that is held. */
  held(tool: HeldTool): void
}

/** The store, servers, states and audit log of a host. `open` opens the store, `start` connects the servers. */
export class HostFoundation {
  readonly clock: Clock
  readonly random: () => number
  /** The host's part of the store. */
  readonly store: Store
  readonly audit: AuditBook
  readonly state: StateBook
  readonly servers: Servers
  readonly pins: Pins
  readonly #options: FoundationOptions
  readonly #whole: Store
  #port: FoundationPort | undefined = undefined
  #stopWatching: () => Promise<void> = () => Promise.resolve()
  #faults: readonly ConfigFault[] = []

  private constructor(options: FoundationOptions, whole: Store, heard: ((noted: Noted) => void) | undefined) {
    const { clock = realClock, random = Math.random, onStderr } = options
    this.#options = options
    this.#whole = whole
    this.clock = clock
    this.random = random
    this.store = storeWithin(whole, 'host/')
    const failed = (error: unknown): void => this.impaired(error)
    this.audit = new AuditBook({ store: this.store, clock, ...options.audit, failed, heard })
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

  /** Opens the store; servers are connected by `start`. */
  static async open(options: FoundationOptions): Promise<HostFoundation> {
    const { store = 'memory:', clock = realClock } = options
    const whole = typeof store === 'string' ? await openStore(store, { now: clock.now }) : store
    return new HostFoundation(options, whole, allOf(await openSpans(), options.onNote))
  }

  /** The mistakes of the config as it was last read. */
  get faults(): readonly ConfigFault[] {
    return this.#faults
  }

  /** Connects the servers. Resolves when each was tried once, or the time for that is over. */
  async start(port: FoundationPort): Promise<void> {
    this.#port = port
    const { config, startMs = 15_000 } = this.#options
    if (config === undefined) await this.#apply(undefined)
    else await this.#startFrom(resolve(config))
    await waitAtMost(this.clock, startMs, this.servers.tried())
  }

  async close(): Promise<void> {
    await this.#stopWatching()
    await this.servers.close()
    await this.audit.close()
    if (typeof (this.#options.store ?? '') === 'string') await this.#whole.close()
  }

  async #startFrom(file: string): Promise<void> {
    const text = await readFile(file, 'utf8').catch((cause: unknown) => {
      throw new TypeError(`${file}: The config cannot be read (config.file). Give the path of a file that is there`, { cause })
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

  async #applyIfAllowed(text: string, file: string): Promise<void> {
    const refused = await this.#refusal(text, file)
    if (refused !== undefined) {
      void this.audit.note({ server: '', kind: 'config', outcome: 'refused', why: refused, detail: file })
      return this.#options.onTrouble?.(refused)
    }
    const config = await this.#read(text, file)
    // What cannot be read says nothing of any server: all stays as it is.
    if (!config.readable) return
    await this.#apply(config)
    const rule = this.#options.onConfig === undefined ? 'config' : 'onConfig'
    void this.audit.note({ server: '', kind: 'config', outcome: 'success', rule, detail: file })
  }

  /** What cannot be read has nothing to be asked about. */
  async #refusal(text: string, file: string): Promise<Why | undefined> {
    const { onConfig } = this.#options
    if (onConfig === undefined) return undefined
    const written = await readConfig(text, file, { variables: 'keep' })
    return written.readable ? onConfig(written, text) : undefined
  }

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

  async #apply(config: HostConfig | undefined): Promise<Applied> {
    const given = Object.entries(this.#options.servers ?? {}).map(([name, option]) => [name, knownServer(name, option)] as const)
    const wanted = new Map<string, KnownServer>([...(config?.servers ?? []), ...given])
    await this.#port?.configured(wanted)
    return this.servers.apply(wanted, config?.refused)
  }

  #held(held: HeldTool): void {
    void this.audit.note({ server: held.server, kind: 'pin', outcome: 'held', why: held.why, detail: held.tool.name })
    this.#port?.held(held)
  }

  /** Nothing can be done about it here, and nobody is to be stopped by it. */
  impaired(error: unknown): void {
    const said = clip(error instanceof Error ? error.message : String(error), 300)
    this.#options.onTrouble?.(
      why(
        'HOST_IMPAIRED',
        'host',
        `Something could not be read, written or told: ${said}`,
        'Look at the store and the config file',
      ),
    )
  }
}

/** What the server said no to, or failed at, is no decision of the host. */
function rollbackOutcome(said: Why | undefined): NoteOutcome {
  if (said?.code === 'ROLLBACK_TIMEOUT') return 'timeout'
  return said?.code === 'ROLLBACK_REFUSED' || said?.code === 'ROLLBACK_FAILED' ? 'failure' : 'refused'
}

/** Tells each of those who listen, also where one of them throws. */
function allOf(...listeners: readonly (((noted: Noted) => void) | undefined)[]): (noted: Noted) => void {
  const heard = listeners.filter(listener => listener !== undefined)
  return noted => {
    const failures: unknown[] = []
    for (const tell of heard) {
      try {
        tell(noted)
      } catch (error) {
        failures.push(error)
      }
    }
    if (failures.length > 0) throw failures[0]
  }
}

/** Waits no longer than so. */
export function waitAtMost(clock: Clock, ms: number, work: Promise<void>): Promise<void> {
  return new Promise((resolve, reject) => {
    const cancel = clock.setTimeout(resolve, ms, true)
    work.then(resolve, reject).finally(cancel)
  })
}

// Looks at a file when something may have happened to it: told by the system at once, and now and then in any case, because not
// every file system tells. Its folder is watched, since editors put a new file in the place of the old one.

interface WatchOptions {
  readonly clock: Clock
  /** Told of each text that differs from the one before. Waited for, so that two never run at once. */
  readonly changed: (text: string) => Promise<void>
  /** Told that the file cannot be read now. */
  readonly failed: (error: unknown) => void
  /** How long it must be quiet before the file is read. Default 100 ms. */
  readonly settleMs?: number
  /** How often it is read in any case. Default 10 s. */
  readonly everyMs?: number
}

/** `first` is the text that is known. Gives the way to stop. */
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

/** Undefined where the system will not tell. */
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
