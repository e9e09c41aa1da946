/**
 * Words by which a caller and whoever runs the gateway speak of the same failure. What a server said when it died, or what stood in the
 * body of an HTTP error, is for the log and for `upstreams()`: callers are strangers to it.
 */
import { randomBytes } from 'node:crypto'
import type { Why } from '../../core/why.ts'

const known = new WeakMap<Why, string>()

export function newReference(): string {
  return randomBytes(4).toString('hex')
}

/** The same for the same failure, however often it is spoken of, and for one that goes on `as` another. */
export function referenceOf(why: Why, as?: Why): string {
  let reference = known.get(why)
  if (reference === undefined) {
    reference = as === undefined ? newReference() : referenceOf(as)
    known.set(why, reference)
  }
  return reference
}
