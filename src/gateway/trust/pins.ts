/**
 * Pinned tools behind a gateway: a definition that is not the one that was first seen is hidden until somebody approves it, on any
 * process of the store, or shown and told, as the settings say. Text that nobody can see is flagged in any case.
 */
import type { Clock } from '../../core/clock.ts'
import { quoted } from '../../core/why.ts'
import type { Tool } from '../../features/mcp/tools/messages.ts'
import { type HeldTool, type Looked, Pins } from '../../host/servers/pins.ts'
import { clip } from '../../jsonrpc/limits.ts'
import { put } from '../../stores/ops.ts'
import type { Store } from '../../stores/store.ts'
import { storeWithin } from '../../stores/within.ts'
import { invisibleIn } from './invisible.ts'
import type { TrustSettings } from './settings.ts'

export interface PinsParts {
  readonly store: Store
  readonly clock: Clock
  readonly mode: NonNullable<TrustSettings['pins']>
  /** A definition is held, or told of, for the first time. */
  held(tool: HeldTool): void
  /** A text of a tool holds what nobody can see. */
  flagged(upstream: string, tool: string, found: string): void
  /** The tools of an upstream should be looked at again. */
  relook(upstream: string): void
}

const refusedMs = 90 * 86_400_000

export class ToolPins {
  readonly #parts: PinsParts
  readonly #store: Store
  readonly #pins: Pins
  readonly #held = new Map<string, readonly HeldTool[]>()
  readonly #told = new Set<string>()
  readonly #end = new AbortController()

  constructor(parts: PinsParts) {
    this.#parts = parts
    this.#store = storeWithin(parts.store, 'gateway/')
    this.#pins = new Pins({ store: this.#store, clock: parts.clock })
    if (parts.mode !== 'off') void this.#follow()
  }

  async look(upstream: string, tools: readonly Tool[]): Promise<Looked> {
    for (const tool of tools) this.#flag(upstream, tool)
    if (this.#parts.mode === 'off') return { offered: tools, held: [] }
    const { offered, held } = await this.#pins.look(upstream, tools)
    this.#held.set(upstream, held)
    for (const each of held) {
      const id = idOf(each)
      if (!this.#told.has(id)) this.#parts.held(each)
      this.#told.add(id)
    }
    return this.#parts.mode === 'warn' ? { offered: tools, held: [] } : { offered, held }
  }

  async approve(held: Pick<HeldTool, 'server' | 'tool'>): Promise<void> {
    await this.#pins.approve(held)
    this.#parts.relook(held.server)
  }

  /** Those that wait for a yes, by id. */
  async waiting(): Promise<ReadonlyMap<string, HeldTool>> {
    const found = new Map<string, HeldTool>()
    for (const held of [...this.#held.values()].flat()) {
      const id = idOf(held)
      if ((await this.#store.get(`refused/${id}`)) === undefined) found.set(id, held)
    }
    return found
  }

  /** Undefined where nothing of that name is held. */
  find(id: string): HeldTool | undefined {
    return [...this.#held.values()].flat().find(held => idOf(held) === id)
  }

  /** It stays hidden, and is not asked about again. */
  async refuse(id: string): Promise<void> {
    await this.#store.commit([put(`refused/${id}`, '1', { ttl: refusedMs })])
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

/** Names a held definition, the same on every process. */
export function idOf({ server, digest }: HeldTool): string {
  return `tool.${encodeURIComponent(clip(server))}.${digest.slice(0, 22)}`
}

/** What is held, in a sentence. */
export function heldText({ server, tool, before }: HeldTool): string {
  return `The server ${quoted(server)} ${before === undefined ? 'offers a new tool' : 'changed its tool'} ${quoted(tool.name)}`
}
