/** The verdict where no rule applies: for each kind of request one, or one for all. */
import { clip } from '../../jsonrpc/limits.ts'
import { effects, type Kind, kinds } from './rule.ts'

/** A verdict where no rule applies. */
export type DefaultEffect = 'allow' | 'ask' | 'deny'

/**
 * The verdict where no rule applies: by kind, or one for all kinds. One for all applies to tools, resources and prompts, and to other kinds
 * only where it is stricter than their default. Resources and prompts are never asked about.
 */
export type Otherwise = DefaultEffect | OtherwiseByKind

/**
 * The verdict where no rule applies, by kind.
 * @defaults {usual}
 */
export interface OtherwiseByKind {
  /** Events that servers push. */
  readonly push?: DefaultEffect
  /** Inferences that servers request over MCP Live. */
  readonly infer?: DefaultEffect
  /** Scopes that servers request for a feature set. */
  readonly scope?: DefaultEffect
  /** Tool calls. */
  readonly tool?: DefaultEffect
  /** Reading and watching of resources. */
  readonly resource?: Exclude<DefaultEffect, 'ask'>
  /** Prompts that are fetched. */
  readonly prompt?: Exclude<DefaultEffect, 'ask'>
  /** Sampling that servers request. */
  readonly sample?: DefaultEffect
  /** Questions of servers to the user. */
  readonly elicit?: DefaultEffect
  /** The list of roots that servers request. */
  readonly roots?: DefaultEffect
  /** Feature sets that servers declare. */
  readonly set?: DefaultEffect
  /** Context that servers add to a prompt. */
  readonly inject?: DefaultEffect
  /** Tool definitions that are new or changed. */
  readonly definition?: DefaultEffect
}

/** By kind, for every kind. */
type Defaults = Readonly<Record<Kind, DefaultEffect>>

/** The verdicts where neither a rule nor the policy says anything: new feature sets and what leads out of them are asked about. */
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
    if (!kinds.some(known => known === kind))
      throw new TypeError(`otherwise: ${clip(kind)} is not a known kind. Use ${kinds.join(', ')}`)
    if (!careful.includes(effect))
      throw new TypeError(`otherwise.${kind} must be allow, ask or deny, not ${clip(String(effect))}`)
    if (effect === 'ask' && isRead(kind)) throw new TypeError(`otherwise.${kind} must be allow or deny, not ask`)
  }
  return { ...usual, ...otherwise }
}

/** Nobody is asked about what is only read; and one word for all opens nothing that is closed unless it is named. */
function forAll(effect: DefaultEffect): Defaults {
  if (!careful.includes(effect)) throw new TypeError(`otherwise must be allow, ask or deny, not ${clip(String(effect))}`)
  const of = (kind: Kind): DefaultEffect => {
    if (isRead(kind)) return effect === 'deny' ? 'deny' : 'allow'
    return kind === 'tool' || effects.indexOf(effect) < effects.indexOf(usual[kind]) ? effect : usual[kind]
  }
  return Object.fromEntries(kinds.map(kind => [kind, of(kind)])) as Defaults
}

function isRead(kind: string): boolean {
  return kind === 'resource' || kind === 'prompt'
}
