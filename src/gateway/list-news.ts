/**
 * What has changed in the lists since clients were last told: a client hears that a list is another one only where something came or
 * went that it sees. That others have something new is theirs.
 */
import type { Caller } from '../jsonrpc/connection.ts'
import type { Visibility } from './trust/visibility.ts'

type List = 'tools' | 'prompts' | 'resources'

/** Something that came or went, by the name that it has at its server. */
interface Changed {
  readonly kind: 'tool' | 'resource' | 'template' | 'prompt'
  readonly upstream: string
  readonly own: string
}

const listOf = { tool: 'tools', prompt: 'prompts', resource: 'resources', template: 'resources' } as const
/** More of them and all are told: to look at each for each client would cost more. */
const most = 1_000

export class ListNews {
  readonly #visibility: Pick<Visibility, 'lists' | 'limits'>
  readonly #changed = new Map<List, Map<string, Changed>>()
  /** Lists of which everybody is to hear. */
  readonly #renewed = new Set<List>()

  constructor(visibility: Pick<Visibility, 'lists' | 'limits'>) {
    this.#visibility = visibility
  }

  add({ kind, upstream, own }: Changed): void {
    if (!this.#visibility.limits) return
    const list = listOf[kind]
    const changed = this.#changed.get(list) ?? new Map<string, Changed>()
    this.#changed.set(list, changed)
    if (changed.size <= most) changed.set(`${kind} ${upstream}\n${own}`, { kind, upstream, own })
  }

  /** Rules or clients are others: whatever somebody saw before may be gone, and he is to look. */
  renewed(): void {
    for (const list of Object.values(listOf)) this.#renewed.add(list)
  }

  /** Clients are about to be told: who of them notices it. Undefined: everybody. */
  take(list: List): ((caller: Caller) => boolean) | undefined {
    const changed = this.#changed.get(list)
    this.#changed.delete(list)
    if (this.#renewed.delete(list) || changed === undefined || changed.size > most || !this.#visibility.limits) return undefined
    const all = [...changed.values()]
    return caller =>
      all.some(({ kind, ...place }) => this.#visibility.lists(caller, kind === 'template' ? 'resource' : kind, place))
  }
}
