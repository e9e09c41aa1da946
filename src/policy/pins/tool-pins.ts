/**
 * Pinned tools behind a gateway: a definition that is not the one that was first seen is hidden until somebody approves it, on any
 * process of the store, or shown and told, as the settings say. Text that nobody can see is flagged in any case.
 */
import type { Clock } from '../../core/clock.ts'
import { quoted } from '../../core/why.ts'
import type { Tool } from '../../features/mcp/tools/messages.ts'
import type { Store } from '../../stores/store.ts'
import { storeWithin } from '../../stores/within.ts'
import { HeldTools, idOf, type KeptTool } from './held-tools.ts'
import { invisibleIn } from './invisible.ts'
import { type HeldTool, type Looked, type PinMode, Pins } from './pins.ts'

interface PinsParts {
  readonly store: Store
  readonly clock: Clock
  readonly mode: PinMode
  /** A definition is held, or told of, for the first time. */
  held(tool: HeldTool): void
  /** A text of a tool holds what nobody can see. */
  flagged(upstream: string, tool: string, found: string): void
  /** The tools of an upstream should be looked at again. */
  relook(upstream: string): void
}

export class ToolPins {
  readonly #parts: PinsParts
  readonly #store: Store
  readonly #pins: Pins
  readonly #kept: HeldTools
  readonly #held = new Map<string, readonly HeldTool[]>()
  readonly #told = new Set<string>()
  readonly #end = new AbortController()
  #mode: PinsParts['mode'] = 'off'
  #follows = false

  constructor(parts: PinsParts) {
    this.#parts = parts
    this.#store = storeWithin(parts.store, 'gateway/')
    this.#pins = new Pins({ store: this.#store, clock: parts.clock })
    this.#kept = new HeldTools(this.#store, parts.clock)
    this.change(parts.mode)
  }

  /** From now on, for what is looked at next. */
  change(mode: PinsParts['mode']): void {
    this.#mode = mode
    if (mode === 'off') this.#held.clear()
    if (mode === 'off' || this.#follows) return
    this.#follows = true
    void this.#follow()
  }

  async look(upstream: string, tools: readonly Tool[]): Promise<Looked> {
    for (const tool of tools) this.#flag(upstream, tool)
    if (this.#mode === 'off') return { offered: tools, held: [] }
    const { offered, held } = await this.#pins.look(upstream, tools)
    const before = this.#held.get(upstream)
    this.#held.set(upstream, held)
    if (held.length > 0 || before?.length !== 0) await this.#kept.keep(upstream, held)
    for (const each of held) {
      const id = idOf(each)
      if (!this.#told.has(id)) this.#parts.held(each)
      this.#told.add(id)
    }
    return this.#mode === 'warn' ? { offered: tools, held: [] } : { offered, held }
  }

  async approve(held: Pick<HeldTool, 'server' | 'tool' | 'digest'>): Promise<void> {
    await this.#kept.approve(held)
    this.#parts.relook(held.server)
  }

  /** Those that wait for a yes, by id. */
  async waiting(): Promise<ReadonlyMap<string, KeptTool>> {
    const found = await this.#kept.waiting()
    return new Map([...found].filter(([, { server }]) => this.#held.has(server)))
  }

  /** Undefined where nothing of that name is held. */
  find(id: string): Promise<KeptTool | undefined> {
    return this.#kept.find(id)
  }

  /** It stays hidden, and is not asked about again. */
  refuse(id: string): Promise<void> {
    return this.#kept.refuse(id)
  }

  forget(upstream: string): Promise<void> {
    this.#held.delete(upstream)
    return this.#pins.forget(upstream)
  }

  close(): void {
    this.#end.abort()
  }

  /** What was approved on another process is shown here too. */
  async #follow(): Promise<void> {
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
  return `The server ${quoted(server)} ${before === undefined ? 'offers a new tool' : 'changed its tool'} ${quoted(tool.name)}`
}
