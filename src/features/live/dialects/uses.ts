/**
 * What a feature set may do, as one closed list for every dialect. Servers name it by paths of their own version, by flags of the
 * declaration, or by names that only they know: here each of these becomes uses that a user can agree to, or nothing.
 */
import type { FeatureSetFacts } from '../feature-sets/messages.ts'

const before = 'contextHooks.beforeInference'

export const setUses = [
  'tools',
  'pushEvents',
  `${before}.observe`,
  `${before}.inject.system`,
  `${before}.inject.beforeUser`,
  `${before}.inject.afterUser`,
  'contextHooks.afterInference',
  'inferenceRequest',
  'inferenceLifecycle',
  'channels',
  'channels.publish',
  'channels.incoming',
  'channels.streaming',
  'state',
  'rollback',
  'scopes',
  'modelInfo',
] as const
/** One thing that a feature set may do. */
export type SetUse = (typeof setUses)[number]

/** Paths that stand for uses of other names, the one they are about first. Whoever hears from channels names them, too. */
const others: ReadonlyMap<string, readonly SetUse[]> = new Map<string, readonly SetUse[]>([
  ['contextHooks.afterInference.blocking', ['contextHooks.afterInference']],
  ['inferenceRequest.streaming', ['inferenceRequest']],
  ['channels.register', ['channels']],
  ['channels.lifecycle', ['channels']],
  ['channels.acknowledge', ['channels']],
  ['channels.typing', ['channels']],
  ['channels.publish', ['channels.publish', 'channels']],
  ['channels.streaming', ['channels.publish', 'channels', 'channels.streaming']],
  ['channels.incoming', ['channels.incoming', 'channels']],
  ['channels.observe', ['channels.incoming', 'channels']],
  // A branch of 0.5 reports state outside of calls.
  ['stateUpdate', ['state']],
])

/** Only who names it has it: cores that know channels as a whole cannot say that they take no streams, and some post them a second time. */
const byName: ReadonlySet<SetUse> = new Set<SetUse>(['channels.streaming'])

/** What a path stands for: itself, and all that lies below it. Nothing, where it is not known here. */
export function usesUnder(path: string): readonly SetUse[] {
  return others.get(path) ?? setUses.filter(use => use === path || (use.startsWith(`${path}.`) && !byName.has(use)))
}

/** Whether a path may be used, where these are agreed to: it is one of them, or something below it is. */
export function isConsented(path: string, uses: ReadonlySet<SetUse>): boolean {
  const [first] = others.get(path) ?? []
  if (first !== undefined) return uses.has(first)
  const below = usesUnder(path)
  return below.length === 0 || below.some(use => uses.has(use))
}

/** The uses that a set declares: by its paths, and by its flags. */
export function declaredUses({ uses, scoped, rollback, hostState }: FeatureSetFacts): ReadonlySet<SetUse> {
  const found = new Set(uses.flatMap(usesUnder))
  if (scoped === true) found.add('scopes')
  if (rollback === true) found.add('rollback').add('state')
  if (hostState === true) found.add('state')
  return found
}

/**
 * State that rides on calls of tools: from 0.4 on nothing declares it, the results of a set's tools say it. Such a set keeps state
 * with its own calls, and not outside of them.
 */
export function carriesState(uses: ReadonlySet<SetUse>, label: string): boolean {
  return uses.has('state') || (uses.has('tools') && (label === '0.4' || label === '0.5'))
}
