/** What happens where no rule says anything. */
import { clip } from '../../jsonrpc/limits.ts'
import { type DefaultEffect, effects, type Kind, kinds, type Otherwise } from './rule.ts'

/** By kind, for every kind. */
export type Defaults = Readonly<Record<Kind, DefaultEffect>>

/** New feature sets and what leads out of them are asked about; the rest lies within what was enabled. */
const usual: Defaults = {
  push: 'allow',
  infer: 'allow',
  inject: 'allow',
  tool: 'allow',
  resource: 'allow',
  prompt: 'allow',
  elicit: 'allow',
  sample: 'ask',
  roots: 'ask',
  scope: 'ask',
  set: 'ask',
  definition: 'ask',
}

const careful: readonly unknown[] = ['allow', 'ask', 'deny'] satisfies DefaultEffect[]

/** Throws where it is none. */
export function readOtherwise(otherwise: Otherwise = {}): Defaults {
  if (typeof otherwise === 'string') return forAll(otherwise)
  for (const [kind, effect] of Object.entries(otherwise)) {
    if (!kinds.some(known => known === kind)) throw new TypeError(`otherwise: ${clip(kind)} is not among ${kinds.join(', ')}`)
    if (!careful.includes(effect)) throw new TypeError(`otherwise.${kind} is ${clip(String(effect))}: give allow, ask or deny`)
    if (effect === 'ask' && isRead(kind)) throw new TypeError(`otherwise.${kind} is ask: give allow or deny`)
  }
  return { ...usual, ...otherwise }
}

/** Nobody is asked about what is only read; and one word for all opens nothing that is closed unless it is named. */
function forAll(effect: DefaultEffect): Defaults {
  if (!careful.includes(effect)) throw new TypeError(`otherwise is ${clip(String(effect))}: give allow, ask or deny`)
  const of = (kind: Kind): DefaultEffect => {
    if (isRead(kind)) return effect === 'deny' ? 'deny' : 'allow'
    return kind === 'tool' || effects.indexOf(effect) < effects.indexOf(usual[kind]) ? effect : usual[kind]
  }
  return Object.fromEntries(kinds.map(kind => [kind, of(kind)])) as Defaults
}

function isRead(kind: string): boolean {
  return kind === 'resource' || kind === 'prompt'
}
