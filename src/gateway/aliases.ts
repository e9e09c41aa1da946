/**
 * Names that were shown once and had to get longer, because another server came with the same one: they are in no list any more, but
 * whoever has read them may go on calling what they meant. As long as that server is in the file they mean nothing else.
 */
import type { Exchange } from '../engine/exchange.ts'
import type { Layer } from '../engine/stages.ts'

interface Meant {
  readonly kind: string
  readonly upstream: string
  readonly own: string
}

/** One thing that is shown, as far as it counts here. */
interface ShownName extends Meant {
  readonly exposed: string
}

const mostNames = 10_000
const kinds: ReadonlyMap<string, string> = new Map([
  ['tools/call', 'tool'],
  ['prompts/get', 'prompt'],
])

export class Aliases {
  /** What each short name meant first, by kind and name. */
  readonly #meant = new Map<string, Meant>()
  /** Under which name it is shown now, where that is another. */
  #now = new Map<string, string>()

  /** Names are replaced before anything else looks at them: what rules and clients are told of is what is called. */
  readonly layer: Layer = {
    stage: 'enter',
    methods: [...kinds.keys()],
    when: exchange => this.#now.size > 0 && this.#of(exchange) !== undefined,
    run: (exchange, next) => {
      const name = this.#of(exchange)
      if (name !== undefined) exchange.params = { ...exchange.params, name }
      return next()
    },
  }

  /** Whether a short name was shown for another server. */
  takenFrom(kind: 'tool' | 'prompt', upstream: string, name: string): boolean {
    const meant = this.#meant.get(`${kind} ${name}`)
    return meant !== undefined && meant.upstream !== upstream
  }

  /** From now on there are only these servers. */
  keep(upstreams: ReadonlySet<string>): void {
    for (const [key, { upstream }] of this.#meant) if (!upstreams.has(upstream)) this.#meant.delete(key)
  }

  /** What is shown has changed. `exposed`: the name of something now, shown or not; undefined where its server has it no more. */
  look(shown: ReadonlyMap<string, ShownName>, exposed: (meant: Meant) => string | undefined): void {
    for (const [key, { kind, upstream, own, exposed: name }] of shown) {
      // A name that is shown means what it is shown for.
      if (name === own && (kind === 'tool' || kind === 'prompt') && this.#meant.size < mostNames)
        this.#meant.set(key, { kind, upstream, own })
    }
    this.#now = new Map()
    for (const [key, meant] of this.#meant) {
      const name = exposed(meant)
      if (name !== undefined && name !== meant.own && !shown.has(key)) this.#now.set(key, name)
    }
  }

  #of({ route, params }: Exchange): string | undefined {
    const name: unknown = params?.['name']
    return typeof name === 'string' ? this.#now.get(`${kinds.get(route.method.name)} ${name}`) : undefined
  }
}
