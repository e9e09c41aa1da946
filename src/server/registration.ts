/** What is registered can be told something new, or taken back, while clients are connected. */
import type { Catalog } from '../core/catalog.ts'

/** What a registered thing can still be told. */
export interface Registration<F> {
  /** Changes some of the facts; the others stay. */
  update(facts: Partial<F>): void
  remove(): void
}

/** Enters `compile`'s result under its key; the same facts, changed, are compiled anew. */
export function register<F, E>(catalog: Catalog<E>, key: string, facts: F, compile: (facts: F) => E): Registration<F> {
  let current = facts
  catalog.add(compile(facts))
  return {
    update: changes => {
      const next = { ...current, ...changes }
      catalog.update(compile(next))
      current = next
    },
    remove: () => {
      catalog.remove(key)
    },
  }
}
