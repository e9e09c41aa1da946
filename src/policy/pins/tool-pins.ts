/**
 * Pinned tools behind a gateway: a definition that is not the one that was first seen is hidden until somebody approves it, on any
 * process of the store, or shown and told, as the settings say. Text that nobody can see is flagged in any case.
 */
import { type AnswerRecord, findAnswer, keepAnswerOp } from '../../core/answers.ts'
import type { Clock } from '../../core/clock.ts'
import { quoted } from '../../core/suggestion.ts'
import type { Tool } from '../../features/mcp/tools/messages.ts'
import { clip } from '../../jsonrpc/limits.ts'
import { isRecord } from '../../jsonrpc/message.ts'
import { check, entriesUnder, type Op, prefixedStore, put, remove, type Store } from '../../stores/store.ts'
import { type HeldTool, type PinMode, Pins } from './pins.ts'

interface PinsParts {
  readonly store: Store
  readonly clock: Clock
  readonly mode: PinMode
  /** A definition is held, or told of, for the first time. */
  held(tool: HeldTool, id: string): void
  /** A text of a tool holds what nobody can see. */
  flagged(upstream: string, tool: string, found: string): void
  /** The tools of an upstream should be looked at again. */
  relook(upstream: string): void
}

/** Pins the tools of all upstreams of a gateway, and queues changed definitions for approval. */
export class ToolPins {
  readonly #parts: PinsParts
  readonly #store: Store
  readonly #pins: Pins
  /** The definitions that wait for a yes, on the store. */
  readonly stored: HeldTools
  readonly #held = new Map<string, readonly HeldTool[]>()
  readonly #told = new Set<string>()
  readonly #end = new AbortController()
  #mode: PinMode = 'off'
  #follows = false

  constructor(parts: PinsParts) {
    this.#parts = parts
    this.#store = prefixedStore(parts.store, 'gateway/')
    this.#pins = new Pins({ store: this.#store, clock: parts.clock })
    this.stored = new HeldTools(this.#store, parts.clock)
    this.change(parts.mode)
  }

  /** From now on, for what is looked at next. */
  change(mode: PinMode): void {
    this.#mode = mode
    if (mode === 'off') this.#held.clear()
    if (mode !== 'off' && !this.#follows) void this.#follow()
  }

  async look(upstream: string, tools: readonly Tool[]): ReturnType<Pins['look']> {
    for (const tool of tools) this.#flag(upstream, tool)
    if (this.#mode === 'off') return { offered: tools, held: [] }
    const { offered, held } = await this.#pins.look(upstream, tools)
    const before = this.#held.get(upstream)
    this.#held.set(upstream, held)
    if (held.length > 0 || before?.length !== 0) await this.stored.keep(upstream, held)
    for (const each of held) {
      const id = idOf(each)
      if (!this.#told.has(id)) this.#parts.held(each, id)
      this.#told.add(id)
    }
    return this.#mode === 'warn' ? { offered: tools, held: [] } : { offered, held }
  }

  async approve(held: Pick<HeldTool, 'server' | 'tool' | 'digest'>): Promise<void> {
    await this.answer(held, true)
  }

  /** The first answer counts: false where there was one before. */
  async answer(held: Pick<HeldTool, 'server' | 'tool' | 'digest'>, yes: boolean, by?: string): Promise<boolean> {
    const first = await this.stored.answer(held, yes, by)
    if (first && yes) this.#parts.relook(held.server)
    return first
  }

  /** Those that wait for a yes, by id. */
  async waiting(): Promise<ReadonlyMap<string, StoredTool>> {
    const found = await this.stored.waiting()
    return new Map([...found].filter(([, { server }]) => this.#held.has(server)))
  }

  close(): void {
    this.#end.abort()
  }

  /** What was approved on another process is shown here too. */
  async #follow(): Promise<void> {
    this.#follows = true
    try {
      for await (const _ of this.#store.watch(['pin/'], this.#end.signal))
        for (const [upstream, held] of this.#held) if (held.length > 0) this.#parts.relook(upstream)
    } catch {
      // It was closed: there is nothing more to show.
    }
  }

  #flag(upstream: string, tool: Tool): void {
    const found = invisibleIn(tool)
    if (found === undefined) return
    const key = `${upstream}\n${tool.name}\n${found}`
    if (this.#told.has(key)) return
    this.#told.add(key)
    this.#parts.flagged(upstream, tool.name, found)
  }
}

/** What is held, in a sentence. */
export function heldText({ server, tool, before }: Pick<HeldTool, 'server' | 'tool' | 'before'>): string {
  return `The server ${quoted(server)} ${before === undefined ? 'offers a new tool' : 'changed the definition of its tool'} ${quoted(tool.name)}`
}

// Definitions of tools that wait for a yes, kept on the store: whoever runs the gateway answers from any process.

/** A held definition as it lies on the store. */
export interface StoredTool extends Pick<HeldTool, 'server' | 'tool' | 'before' | 'digest' | 'changes'> {
  /** Since when it is held: milliseconds since the epoch. */
  readonly since: number
}

const prefix = 'held/'
/** How long a no is remembered. */
const refusedMs = 90 * 86_400_000

/** `store`: what is the gateway's own of it. */
export class HeldTools {
  readonly #store: Store
  readonly #clock: Clock

  constructor(store: Store, clock: Clock) {
    this.#store = store
    this.#clock = clock
  }

  /** These are the ones of a server now, and no others. */
  async keep(server: string, held: readonly HeldTool[]): Promise<void> {
    const known = new Map((await this.#scan(`${prefix}${placeOf(server)}`)).map(stored => [idOf(stored), stored]))
    const ops: Op[] = []
    for (const { tool, before, digest, changes } of held) {
      const since = this.#clock.now()
      const record: StoredTool = { server, tool, digest, changes, since, ...(before !== undefined && { before }) }
      if (!known.delete(idOf(record))) ops.push(put(`${prefix}${idOf(record)}`, JSON.stringify(record)))
    }
    for (const [id, stored] of known) if (stored.server === server) ops.push(remove(`${prefix}${id}`))
    if (ops.length > 0) await this.#store.commit(ops)
  }

  /** Those that nobody has refused, by id. */
  async waiting(): Promise<ReadonlyMap<string, StoredTool>> {
    const found = new Map<string, StoredTool>()
    for (const stored of await this.#scan(prefix)) {
      const id = idOf(stored)
      if ((await this.#store.get(refusedKey(id))) === undefined) found.set(id, stored)
    }
    return found
  }

  async find(id: string): Promise<StoredTool | undefined> {
    if (!id.startsWith('tool.') || id.length > 400) return undefined
    const entry = await this.#store.get(`${prefix}${id}`)
    return entry === undefined ? undefined : readStored(entry.value)
  }

  /**
   * The first answer counts: false where there was one before. After a yes this definition is the one, and whoever watches the pins looks
   * again; after a no it stays hidden and is not asked about again.
   */
  async answer(tool: Pick<HeldTool, 'server' | 'tool' | 'digest'>, yes: boolean, by?: string): Promise<boolean> {
    const id = idOf(tool)
    const entry = await this.#store.get(`${prefix}${id}`)
    if (entry === undefined) return false
    const told = keepAnswerOp(id, { yes, at: this.#clock.now(), ...(by !== undefined && { by }) })
    const ops = yes
      ? [
          check(refusedKey(id), undefined),
          remove(entry.key, entry.version),
          await new Pins({ store: this.#store, clock: this.#clock }).approveOp(tool),
        ]
      : [check(entry.key, entry.version), put(refusedKey(id), '1', { ifAbsent: true, ttl: refusedMs })]
    return (await this.#store.commit([...ops, told])).ok
  }

  /** Who answered within the last hour, and how. */
  answered(id: string): Promise<AnswerRecord | undefined> {
    return findAnswer(this.#store, id)
  }

  async #scan(within: string): Promise<readonly StoredTool[]> {
    const found: StoredTool[] = []
    for await (const { value } of entriesUnder(this.#store, within)) {
      const stored = readStored(value)
      if (stored !== undefined) found.push(stored)
    }
    return found
  }
}

/** Names a held definition, the same on every process. */
function idOf({ server, digest }: Pick<HeldTool, 'server' | 'digest'>): string {
  return `${placeOf(server)}${digest.slice(0, 22)}`
}

function placeOf(server: string): string {
  return `tool.${encodeURIComponent(clip(server))}.`
}

function refusedKey(id: string): string {
  return `refused/${id}`
}

function readStored(text: string): StoredTool | undefined {
  const value: unknown = JSON.parse(text)
  if (!isRecord(value) || typeof value['server'] !== 'string' || !isRecord(value['tool'])) return undefined
  return value as unknown as StoredTool
}

// Characters that nobody sees and a model reads: zero-width ones, those that turn the direction of text, tags, and the like.

/** Format characters, and all that is drawn as nothing. */
const unseen = /\p{Default_Ignorable_Code_Point}|\p{Cf}/gu
/** What joins letters and pictures, where it stands behind one of those that need it: scripts of Asia, and emoji. */
const joiners: ReadonlySet<string> = new Set(['\u200c', '\u200d', '\ufe0e', '\ufe0f'])
const joined = /(?:(?!\p{Script=Latin}|\p{Script=Greek}|\p{Script=Cyrillic})\p{L}|\p{M}|\p{So}|\p{Sk}|\p{N})$/u

const deepest = 32

/** Where a value holds such a character, and which; undefined where it holds none. */
export function invisibleIn(value: unknown, path = '', depth = 0): string | undefined {
  if (typeof value === 'string') {
    const found = unseenIn(value)
    return found === undefined ? undefined : `${path || '/'} contains U+${found.toString(16).toUpperCase().padStart(4, '0')}`
  }
  // Nobody looks that deep, and somebody may count on it.
  if (depth > deepest) return `${path.slice(0, 80)} is nested deeper than ${deepest} levels`
  if (Array.isArray(value)) {
    for (const [i, each] of value.entries()) {
      const found = invisibleIn(each, `${path}/${i}`, depth + 1)
      if (found !== undefined) return found
    }
    return undefined
  }
  if (!isRecord(value)) return undefined
  for (const [name, each] of Object.entries(value)) {
    const found = invisibleIn(name, `${path}/(a name)`, depth + 1) ?? invisibleIn(each, `${path}/${name}`, depth + 1)
    if (found !== undefined) return found
  }
  return undefined
}

function unseenIn(text: string): number | undefined {
  for (const { 0: char, index } of text.matchAll(unseen)) {
    if (joiners.has(char) && joined.test(text.slice(Math.max(0, index - 2), index))) continue
    return char.codePointAt(0)
  }
  return undefined
}
