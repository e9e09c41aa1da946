/** What one host has selected. A set that it never named is off: nothing is sent that nobody wanted. */
import { McpError } from '../../../jsonrpc/error.ts'
import { clip } from '../../../jsonrpc/limits.ts'
import { isRecord } from '../../../jsonrpc/message.ts'
import type { KeptSelected } from '../hosts/messages.ts'
import type { ScopeLists } from '../scopes/messages.ts'
import { selectionShape, type WireSelection } from './messages.ts'

/** `delta`: what is named changes. `whole`: what is not named is off. `narrow`: nothing is switched on. */
export type SelectionReading = 'delta' | 'whole' | 'narrow'

export class SelectedSets implements KeptSelected {
  readonly #said = new Map<string, boolean>()
  #scopes = new Map<string, ScopeLists>()
  said = false

  enabled(name: string): boolean {
    return this.#said.get(name) === true
  }

  disabled(name: string): boolean {
    return this.#said.get(name) === false
  }

  scopes(name: string): ScopeLists | undefined {
    return this.#scopes.get(name)
  }

  /** A set named in both lists ends disabled (MCP Live 0.2 §6.7). */
  apply(update: WireSelection, declared: readonly string[], reading: SelectionReading): void {
    const { enabled, disabled = [], scopes } = update
    const unnamed = enabled === undefined && update.disabled === undefined
    this.said ||= !unnamed
    for (const name of declared) {
      const on = names(enabled ?? [], name)
      if (names(disabled, name)) this.#said.set(name, false)
      else if (reading === 'whole' && enabled !== undefined) this.#said.set(name, on)
      else if (on && reading !== 'narrow') this.#said.set(name, true)
    }
    if (scopes !== undefined) this.#scopes = new Map(Object.entries(scopes))
  }

  disable(name: string): void {
    this.#said.set(name, false)
  }

  forget(name: string): void {
    this.#said.delete(name)
  }

  /** As another process finds it. */
  save(): unknown {
    return { said: this.said, sets: [...this.#said], scopes: [...this.#scopes] }
  }

  restore(saved: unknown): void {
    if (!isRecord(saved)) return
    this.said = saved['said'] === true
    for (const [name, on] of saved['sets'] as [string, boolean][]) this.#said.set(name, on)
    this.#scopes = new Map(saved['scopes'] as [string, ScopeLists][])
  }
}

/** Exact names always work; `memory.*` covers every name below `memory`. */
function names(patterns: readonly string[], name: string): boolean {
  return patterns.some(one => one === name || one === '*' || (one.endsWith('.*') && name.startsWith(one.slice(0, -1))))
}

/** The selection in a handshake or in `_meta`: what is none says nothing. */
export function selectionIn(value: unknown): WireSelection | undefined {
  return isRecord(value) && selectionShape.check(value) === undefined ? (value as WireSelection) : undefined
}

/** What a host has selected with what it declared in its handshake (MCP Live 0.2 §5.2, §7.2). */
export function selectedWith(declared: Readonly<Record<string, unknown>>, names: readonly string[]): SelectedSets {
  const selection = new SelectedSets()
  const first = selectionIn(declared['featureSets'])
  const scopes = selectionIn({ scopes: declared['scopes'] })
  if (first !== undefined || scopes !== undefined) selection.apply({ ...first, ...scopes }, names, 'whole')
  return selection
}

/** No path can be granted and denied at once. */
export function checkCapabilityPaths({ effectiveCapabilities = [], deniedCapabilities = [] }: WireSelection): void {
  const both = effectiveCapabilities.find(path => deniedCapabilities.includes(path))
  if (both === undefined) return
  throw new McpError('invalid-params', `"${clip(both)}" is in effectiveCapabilities and in deniedCapabilities; name it in one`)
}
