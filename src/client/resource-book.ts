/** The resources that this client has listed: one wire names them by their names instead of their URIs. */
import type { Resource } from '../features/mcp/resources/messages.ts'
import { isRecord } from '../jsonrpc/message.ts'

const maxKnown = 10_000

export class ResourceBook {
  readonly #uris = new Set<string>()
  /** Null: several have that name. */
  readonly #byName = new Map<string, string | null>()

  /** A new list begins. */
  clear(): void {
    this.#uris.clear()
    this.#byName.clear()
  }

  learn(resource: Resource): void {
    if (!isRecord(resource) || typeof resource.uri !== 'string' || this.#uris.size >= maxKnown) return
    const { uri, name } = resource
    this.#uris.add(uri)
    if (typeof name === 'string') this.#byName.set(name, this.#byName.has(name) && this.#byName.get(name) !== uri ? null : uri)
  }

  /** The URI behind an id: itself, or that of the one resource with this name. */
  uriOf(id: string): string | undefined {
    return this.#uris.has(id) ? id : (this.#byName.get(id) ?? undefined)
  }
}
