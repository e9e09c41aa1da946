/** How each life ends, by the seed alone: killed while it starts, at some moment, or by its own hand at a failpoint. */
import { Source } from '../fuzz/source.ts'
import { type Death, failpoints, phases } from './failpoints.ts'

export type UndoOutcome =
  /** Killed so long after its process was started, ready or not. */
  | { readonly kind: 'starting'; readonly ms: number }
  /** Killed so long after its first answer. */
  | { readonly kind: 'running'; readonly ms: number }
  | { readonly kind: 'failpoint'; readonly death: Death }

const all: readonly Omit<Death, 'nth'>[] = failpoints.flatMap(name => phases.map(phase => ({ name, phase })))

/** The fate of life `index` of a campaign. Two of three die at a failpoint, each of these in its turn, from a turn of the seed's. */
export function fateOf(seed: number, store: string, index: number): UndoOutcome {
  const source = Source.random(seed, `crash ${store}`, index)
  const kind = index % 3
  if (kind === 2) {
    if (source.int(4) === 0) return { kind: 'starting', ms: source.int(300) }
    return { kind: 'running', ms: 10 + source.int(500) }
  }
  const turn = Math.floor(index / 3) * 2 + kind
  const { name, phase } = all[shuffled(seed, store)[turn % all.length] ?? 0] as (typeof all)[number]
  // Mostly the first ones: of what is rare there are no more in one life.
  return { kind: 'failpoint', death: { name, phase, nth: 1 + source.int(2) * source.int(4) } }
}

const orders = new Map<string, readonly number[]>()

/** The order in which failpoints have their turn. */
function shuffled(seed: number, store: string): readonly number[] {
  const name = `${seed} ${store}`
  const known = orders.get(name)
  if (known !== undefined) return known
  const source = Source.random(seed, `order ${store}`, 0)
  const order = all.map((_, index) => index)
  for (let at = order.length - 1; at > 0; at--) {
    const other = source.int(at + 1)
    const swapped = order[at] as number
    order[at] = order[other] as number
    order[other] = swapped
  }
  orders.set(name, order)
  return order
}
