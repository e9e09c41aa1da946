/**
 * The names of tools as a model sees them, assigned as in the gateway: a name that two servers want goes to neither. What servers have
 * offered is remembered on the store, also while they are down or gone, so that a name that once meant the tool of one server never
 * comes to mean that of another.
 */
import { hash } from 'node:crypto'
import { type Op, put, remove, type Store } from '../../stores/store.ts'
import { assignNames, type Names } from '../servers/names.ts'

interface OfferedTool {
  readonly server: string
  readonly tool: string
}

/** What providers take. */
const fit = /^[A-Za-z0-9_-]{1,64}$/
const folded = (name: string): string => name.toLowerCase()
/** Names of one server that are remembered: beyond that its oldest are forgotten. */
const perServer = 1_000
const perCommit = 500
const prefix = 'tool-name/'

export class ToolNames {
  readonly #store: Store
  readonly #taken: ReadonlySet<string>
  /** What each server has offered, the oldest first. */
  #claims: Map<string, Set<string>> | undefined = undefined
  #names: Names = new Map()

  /** `taken`: names that are not to be given. */
  constructor(store: Store, taken: Iterable<string> = []) {
    this.#store = store
    this.#taken = new Set([...taken].map(folded))
  }

  /** The names of all that was ever offered, these included. */
  async of(tools: readonly OfferedTool[]): Promise<Names> {
    const claims = this.#claims ?? (await this.#load())
    const fresh = tools.filter(({ server, tool }) => claims.get(server)?.has(tool) !== true)
    if (fresh.length === 0) return this.#names
    const ops = fresh.flatMap(one => claim(claims, one))
    this.#names = assignNames(claims, { fits: name => fit.test(name), folded, taken: this.#taken })
    for (let at = 0; at < ops.length; at += perCommit) await this.#store.commit(ops.slice(at, at + perCommit))
    return this.#names
  }

  async #load(): Promise<Map<string, Set<string>>> {
    const claims = new Map<string, Set<string>>()
    for (let after: string | undefined; ; ) {
      const page = await this.#store.scan(prefix, after === undefined ? {} : { after })
      for (const { value } of page) {
        const [server, tool] = JSON.parse(value) as [string, string]
        claims.set(server, (claims.get(server) ?? new Set()).add(tool))
      }
      after = page.at(-1)?.key
      if (after === undefined) break
    }
    // Of two that read at once the first counts: what it has learned since is not forgotten.
    if (this.#claims !== undefined) return this.#claims
    this.#names = assignNames(claims, { fits: name => fit.test(name), folded, taken: this.#taken })
    this.#claims = claims
    return claims
  }
}

/** Remembers it, and gives what is to be written. */
function claim(claims: Map<string, Set<string>>, { server, tool }: OfferedTool): readonly Op[] {
  const known = claims.get(server) ?? new Set<string>()
  claims.set(server, known)
  if (known.has(tool)) return []
  const [oldest] = known.size >= perServer ? known : []
  if (oldest !== undefined) known.delete(oldest)
  known.add(tool)
  const written = put(keyOf(server, tool), JSON.stringify([server, tool]))
  return oldest === undefined ? [written] : [remove(keyOf(server, oldest)), written]
}

function keyOf(server: string, tool: string): string {
  return `${prefix}${hash('sha256', JSON.stringify([server, tool]), 'base64url')}`
}
