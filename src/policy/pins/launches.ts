/**
 * Pinned launches: the way in which a server was first started, or called, is kept, and another one is held back until somebody approves
 * it. Other programs write files that a gateway includes; none of them can so put a program of its own in the place of a known server.
 */
import { type AnswerRecord, findAnswer, keepAnswerOp } from '../../core/answers.ts'
import { type Clock, realClock } from '../../core/clock.ts'
import { digest, digestText } from '../../core/digest.ts'
import { quoted, type Why, why } from '../../core/suggestion.ts'
import { clip } from '../../jsonrpc/limits.ts'
import { type Awaitable, isRecord } from '../../jsonrpc/message.ts'
import { check, type Entry, prefixedStore, put, type Store } from '../../stores/store.ts'
import type { PinMode } from './pins.ts'

/** A server that is not started, because its command or address has changed. */
export interface HeldLaunch {
  /** The id, the same in every process. */
  readonly id: string
  /** The name of the upstream. */
  readonly upstream: string
  /** The differences, one line each. */
  readonly changes: readonly string[]
  readonly why: Why
}

interface LaunchesParts {
  readonly store: Store
  readonly clock?: Clock
  readonly mode: PinMode
  /** What somebody has to do who approves. */
  approveBy(upstream: string): string
  /** It is held, or told of, for the first time. */
  held(launch: HeldLaunch): void
  /** The operator's own file says it: it is applied, and told. */
  changed(launch: HeldLaunch): void
  /** Asked once before that, where somebody can be asked. It is held meanwhile. */
  readonly ask?: ((launch: HeldLaunch) => Awaitable<boolean>) | undefined
  /** The server may be started now. */
  relaunch(upstream: string): void
}

/** Thrown in the place of a connection. */
export class LaunchHeldError extends Error {
  override readonly name = 'LaunchHeld'
  readonly why: Why

  constructor(said: Why) {
    super(said.message)
    this.why = said
  }
}

/** A held launch with what an answer needs. */
export interface WaitingLaunch extends HeldLaunch {
  readonly launch: Launch
  /** The key of what is kept, and the version of it that this launch was compared with. */
  readonly key: string
  readonly version: number
}

const refusedMs = 90 * 86_400_000

/** Compares how each server is started with how it was approved, and holds back what differs. */
export class Launches {
  readonly #parts: LaunchesParts
  readonly #store: Store
  readonly #held = new Map<string, WaitingLaunch>()
  readonly #told = new Set<string>()
  readonly #end = new AbortController()
  #mode: PinMode = 'off'
  #follows = false

  constructor(parts: LaunchesParts) {
    this.#parts = parts
    this.#store = prefixedStore(parts.store, 'gateway/')
    this.change(parts.mode)
  }

  /** From now on, for what is started next. */
  change(mode: PinMode): void {
    this.#mode = mode
    if (mode !== 'block') {
      const held = [...this.#held.keys()]
      this.#held.clear()
      for (const upstream of held) this.#parts.relaunch(upstream)
    }
    if (mode !== 'off' && !this.#follows) void this.#follow()
  }

  /** Throws where a server is not to be started, or called, in this way. The first one that is seen is right. */
  async admit(upstream: string, target: LaunchTarget, pinned = true): Promise<void> {
    if (this.#mode === 'off') return
    const held = await this.#compare(upstream, target, true)
    if (held === undefined) return void this.#held.delete(upstream)
    const first = !this.#told.has(held.id)
    this.#told.add(held.id)
    if (!pinned && (this.#parts.ask === undefined || this.#mode === 'warn')) return this.#apply(held, first)
    if (first && pinned) this.#parts.held(held)
    if (this.#mode === 'warn') return
    if (first && !pinned) void this.#ask(held)
    this.#held.set(upstream, held)
    throw new LaunchHeldError(held.why)
  }

  /** From now on this way is the one. */
  async #apply(held: WaitingLaunch, tells: boolean): Promise<void> {
    await this.#keep(held.upstream, held.launch)
    this.#held.delete(held.upstream)
    if (tells) this.#parts.changed(held)
  }

  async #ask(held: WaitingLaunch): Promise<void> {
    // Where it cannot be asked about, it is held as any other.
    const yes = await Promise.resolve(this.#parts.ask?.(held)).catch(() => undefined)
    if (yes === undefined) return this.#parts.held(held)
    if ((await this.answer(held, yes)) && yes) this.#parts.changed(held)
  }

  /** What would be held, without anything being kept of it. */
  peek(upstream: string, target: LaunchTarget): Promise<WaitingLaunch | undefined> {
    return this.#compare(upstream, target, false)
  }

  async waiting(): Promise<readonly WaitingLaunch[]> {
    const found: WaitingLaunch[] = []
    for (const held of this.#held.values()) if ((await this.#store.get(`refused/${held.id}`)) === undefined) found.push(held)
    return found
  }

  find(id: string): WaitingLaunch | undefined {
    return [...this.#held.values()].find(held => held.id === id)
  }

  /**
   * The first answer counts: false where there was one before, or another way was approved meanwhile. After a yes this way is the one;
   * after a no the server stays down, and nobody is asked again.
   */
  async answer({ id, upstream, launch, key, version }: WaitingLaunch, yes: boolean, by?: string): Promise<boolean> {
    const { clock = realClock } = this.#parts
    const refused = `refused/${id}`
    const ops = yes
      ? [check(refused, undefined), put(key, JSON.stringify(launchRecord(launch)), { ifVersion: version })]
      : [check(key, version), put(refused, '1', { ifAbsent: true, ttl: refusedMs })]
    const told = keepAnswerOp(id, { yes, at: clock.now(), ...(by !== undefined && { by }) })
    const { ok } = await this.#store.commit([...ops, told])
    if (!ok || !yes) return ok
    this.#held.delete(upstream)
    this.#parts.relaunch(upstream)
    return true
  }

  /** Who answered within the last hour, and how. */
  answered(id: string): Promise<AnswerRecord | undefined> {
    return findAnswer(this.#store, id)
  }

  /** The same, of what its entry says now. */
  async take(upstream: string, target: LaunchTarget): Promise<void> {
    const launch = await launchOf(target)
    if (launch !== undefined) await this.#keep(upstream, launch)
  }

  close(): void {
    this.#end.abort()
  }

  async #compare(upstream: string, target: LaunchTarget, keeps: boolean): Promise<WaitingLaunch | undefined> {
    const launch = await launchOf(target)
    if (launch === undefined) return undefined
    const key = await keyOf(upstream)
    const entry = await this.#store.get(key)
    if (entry === undefined) {
      if (!keeps) return undefined
      const { ok } = await this.#store.commit([put(key, JSON.stringify(launchRecord(launch)), { ifAbsent: true })])
      // Another process was faster, with what its file says.
      return ok ? undefined : this.#compare(upstream, target, false)
    }
    const changes = launchChanges(recordIn(entry.value), launch)
    return changes.length === 0 ? undefined : this.#heldOf(upstream, launch, changes, entry)
  }

  async #heldOf(
    upstream: string,
    launch: Launch,
    changes: readonly string[],
    { key, version }: Pick<Entry, 'key' | 'version'>,
  ): Promise<WaitingLaunch> {
    const id = `launch.${encodeURIComponent(clip(upstream))}.${(await digest(launchRecord(launch))).slice(0, 22)}`
    const what = launch.has('address') ? 'address' : 'start command'
    const message = `The ${what} of the server ${quoted(upstream)} differs from the approved one`
    const said = why('LAUNCH_CHANGED', 'pins', message, this.#parts.approveBy(upstream))
    return { id, upstream, launch, key, version, changes, why: said }
  }

  async #keep(upstream: string, launch: Launch): Promise<void> {
    await this.#store.commit([put(await keyOf(upstream), JSON.stringify(launchRecord(launch)))])
  }

  /** What was approved on another process, or by the command, is started here too; other servers are left alone. */
  async #follow(): Promise<void> {
    this.#follows = true
    try {
      for await (const _ of this.#store.watch(['launch/'], this.#end.signal))
        for (const { upstream, key, version } of [...this.#held.values()])
          if ((await this.#store.get(key))?.version !== version) this.#parts.relaunch(upstream)
    } catch {
      // It was closed: there is nothing more to start.
    }
  }
}

/** In words for whoever wrote it, or did not. */
export function changedText({ upstream, changes }: Pick<HeldLaunch, 'upstream' | 'changes'>): string {
  const shown = changes.slice(0, 5).join('; ')
  return `The config file changed how ${quoted(upstream)} is started or reached: ${shown}${changes.length > 5 ? '; …' : ''}`
}

async function keyOf(upstream: string): Promise<string> {
  return `launch/${await digestText(upstream)}`
}

function recordIn(text: string): Readonly<Record<string, string>> {
  const value: unknown = JSON.parse(text)
  if (!isRecord(value)) return {}
  return Object.fromEntries(Object.entries(value).filter((pair): pair is [string, string] => typeof pair[1] === 'string'))
}

// How a server is started or called: as much of it as somebody would change who wants another program in its place. What may be secret
// (arguments, variables, the query of an address) is kept as a digest, or by its name alone.

/** As much of a connection's target as counts here: an address, a command, or a connection that a program hands over. */
type LaunchTarget =
  | string
  | URL
  | {
      readonly command: string
      readonly args?: readonly string[]
      readonly cwd?: string
      readonly env?: Readonly<Record<string, string>>
    }
  | { readonly start: unknown }

/** One thing that counts, by what it is called. */
interface LaunchFact {
  /** What is kept of it, and compared. */
  readonly stored: string
  /** What whoever is asked sees of it. */
  readonly shown: string
}

type Launch = ReadonlyMap<string, LaunchFact>

/** Variables by which another program is loaded, or the same one made to do something else: their values count too. */
const steering =
  /^(PATH|SHELL|ENV|BASH_ENV|NODE_OPTIONS|NODE_PATH|(LD|DYLD)_\w+|PYTHON\w+|RUBY\w+|PERL5?\w+|JAVA_TOOL_OPTIONS|_JAVA_OPTIONS|JDK_JAVA_OPTIONS|npm_config_\w+|UV_\w+|PIP_\w+)$/i

/** Undefined for what a program hands over by itself: nobody else writes that. */
export async function launchOf(target: LaunchTarget): Promise<Launch | undefined> {
  const facts = new Map<string, LaunchFact>()
  const plain = (name: string, text: string): void => void facts.set(name, { stored: text, shown: clip(text) })
  const hidden = async (name: string, text: string, shown = clip(text)): Promise<void> =>
    void facts.set(name, { stored: await digestText(text), shown })
  if (typeof target === 'string' || target instanceof URL) {
    // What is no address is refused by whoever connects.
    if (!URL.canParse(target)) return undefined
    const { origin, pathname, search, username, password, protocol, host } = new URL(target)
    plain('address', origin === 'null' ? `${protocol}//${host}${pathname}` : `${origin}${pathname}`)
    if (search !== '') await hidden('query', search, '…')
    if (username !== '' || password !== '') await hidden('user', `${username}:${password}`, '…')
    return facts
  }
  if (!('command' in target)) return undefined
  plain('command', target.command)
  for (const [at, text] of (target.args ?? []).entries()) await hidden(`argument ${at + 1}`, text)
  if (target.cwd !== undefined) plain('folder', target.cwd)
  for (const [name, value] of Object.entries(target.env ?? {}).sort(([one], [other]) => (one < other ? -1 : 1)))
    if (steering.test(name)) await hidden(`variable ${clip(name)}`, value)
    else facts.set(`variable ${clip(name)}`, { stored: '', shown: '…' })
  return facts
}

/** How a launch differs from what was kept of another one, one line a difference; empty: it does not. */
export function launchChanges(before: Readonly<Record<string, string>>, now: Launch): readonly string[] {
  const changes: string[] = []
  for (const [name, { stored, shown }] of now) {
    const was = Object.hasOwn(before, name) ? before[name] : undefined
    if (was === stored) continue
    const from = was !== undefined && ['command', 'address', 'folder'].includes(name) ? `, was ${JSON.stringify(clip(was))}` : ''
    changes.push(`${was === undefined ? 'new' : 'changed'} ${name}: ${JSON.stringify(shown)}${from}`)
  }
  for (const name of Object.keys(before)) if (!now.has(name)) changes.push(`removed ${name}`)
  return changes
}

/** What is kept of a launch. */
export function launchRecord(launch: Launch): Readonly<Record<string, string>> {
  return Object.fromEntries([...launch].map(([name, { stored }]) => [name, stored]))
}
