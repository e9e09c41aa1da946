/** What one check of a value against a foreign schema carries along: its budget, and what it has seen so far. */
import type { Meter } from './meter.ts'

/** Which members and items of a value some rule has looked at: what `unevaluated…` asks about. */
export class Seen {
  readonly names = new Set<string>()
  readonly items = new Set<number>()
  /** All items before this one. */
  upTo = 0

  /** Counts what another has looked at as looked at here. */
  take({ names, items, upTo }: Seen, meter: Meter): void {
    meter.spend(6 * (names.size + items.size))
    for (const name of names) this.names.add(name)
    for (const item of items) this.items.add(item)
    this.upTo = Math.max(this.upTo, upTo)
  }
}

export type Members = Readonly<Record<string, unknown>>

/** Objects with more members than this are kept as tables by the engine: going through one is slower. */
const fewMembers = 64

/** The names of an object's members: many rules may ask for those of the same object, and a large one takes long. */
export class Names {
  readonly #meter: Meter
  readonly #wide = new Map<Members, readonly string[]>()
  #last: Members | undefined = undefined
  #names: readonly string[] = []

  constructor(meter: Meter) {
    this.#meter = meter
  }

  of(members: Members): readonly string[] {
    if (members === this.#last) return this.#names
    let names = this.#wide.size === 0 ? undefined : this.#wide.get(members)
    if (names === undefined) {
      names = Object.keys(members)
      this.#meter.spend(names.length > fewMembers ? names.length * 10 : names.length + 2)
      if (names.length > fewMembers) this.#wide.set(members, names)
    }
    this.#last = members
    this.#names = names
    return names
  }
}

export class Run {
  readonly meter: Meter
  readonly names: Names
  /** Only where some schema around asks. */
  readonly seen: Seen | undefined
  /** The same for the values within, whose members and items are nobody's business out here. */
  readonly below: Run

  constructor(meter: Meter, names: Names = new Names(meter), seen?: Seen, below?: Run) {
    this.meter = meter
    this.names = names
    this.seen = seen
    this.below = below ?? this
  }

  /** The same value once more, with an account of its own of what was looked at. */
  apart(): Run & { readonly seen: Seen } {
    this.meter.spend(seenPrice)
    return new Run(this.meter, this.names, new Seen(), this.below) as Run & { readonly seen: Seen }
  }
}

/** Two sets and their holder. */
const seenPrice = 24
