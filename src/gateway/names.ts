/**
 * Exposed names: `exposedNames` for tools and prompts, `Aliases` for short names that had to become longer.
 * Names follow the rules of the host, with a wider set of characters.
 */
import type { Exchange } from '../engine/exchange.ts'
import type { Layer } from '../engine/stages.ts'
import { assignNames, type Names, type Prefixes } from '../host/servers/names.ts'

export type { Names, Prefixes }

/** Names that the server side accepts for tools. */
const fit = /^[A-Za-z0-9_.\-/]{1,128}$/

/**
 * Exposed names by upstream and own name. `strict`: only characters that tool names may have. `taken`: whether a short name was shown
 * for another upstream before.
 */
export function exposedNames(
  offered: ReadonlyMap<string, Iterable<string>>,
  strict = true,
  prefixes: Prefixes = () => undefined,
  taken: (server: string, name: string) => boolean = () => false,
): Names {
  return assignNames(offered, { fits: name => !strict || fit.test(name), prefixes, reserved: taken })
}

// Aliases: a name that was shown short and had to get a prefix because another upstream brought the same name. It is no longer listed, but
// clients that know it can go on calling it. It means nothing else while its upstream stays in the config.

/** What a short name stood for when it was first shown. */
interface NameMeaning {
  readonly kind: string
  readonly upstream: string
  readonly own: string
}

/** A shown entry. */
interface ShownName extends NameMeaning {
  readonly exposed: string
}

/** Short names that are remembered. */
const mostNames = 10_000
/** The kind of name that each method takes. */
const kinds: ReadonlyMap<string, string> = new Map([
  ['tools/call', 'tool'],
  ['prompts/get', 'prompt'],
])

/** Keeps short names callable after they got a prefix. */
export class Aliases {
  /** The first meaning of each short name, by kind and name. */
  readonly #meant = new Map<string, NameMeaning>()
  /** The current name of each alias, by kind and short name. */
  #now = new Map<string, string>()

  /** Replaces aliases before other layers run, so that rules see the real name. */
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

  /** Whether a short name was shown for another upstream. */
  takenFrom(kind: 'tool' | 'prompt', upstream: string, name: string): boolean {
    const meant = this.#meant.get(`${kind} ${name}`)
    return meant !== undefined && meant.upstream !== upstream
  }

  /** Forgets names of upstreams that are no longer configured. */
  keep(upstreams: ReadonlySet<string>): void {
    for (const [key, { upstream }] of this.#meant) if (!upstreams.has(upstream)) this.#meant.delete(key)
  }

  /** Updates the aliases after a change. `exposed`: the current name of an entry; undefined where its upstream no longer has it. */
  look(shown: ReadonlyMap<string, ShownName>, exposed: (meant: NameMeaning) => string | undefined): void {
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

  /** The name that replaces the alias in a request. */
  #of({ route, params }: Exchange): string | undefined {
    const name: unknown = params?.['name']
    return typeof name === 'string' ? this.#now.get(`${kinds.get(route.method.name)} ${name}`) : undefined
  }
}
