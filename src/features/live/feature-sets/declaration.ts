/** What a server says of its feature sets, in the form that a host reads. */
import type { HostDialect } from '../hosts/messages.ts'
import { type FeatureSetFacts, liveVersion, type WireServerLive } from './messages.ts'

/** A set as it is offered now. */
export interface OfferedSet {
  readonly name: string
  readonly facts: FeatureSetFacts
  readonly before: boolean
  readonly after: false | 'told' | 'blocking'
  /** Where its injections go; hosts from 0.5 on grant each. */
  readonly positions: readonly string[]
}

const uses = (sets: readonly OfferedSet[], use: string): boolean => sets.some(({ facts }) => facts.uses.includes(use))

/** What lies below `channels` that some set uses. */
function channelUses(sets: readonly OfferedSet[]): readonly string[] {
  const prefix = 'channels.'
  return sets.flatMap(({ facts }) => facts.uses.filter(use => use.startsWith(prefix)).map(use => use.slice(prefix.length)))
}

export function declare(sets: readonly OfferedSet[], dialect: HostDialect | undefined): Readonly<Record<string, unknown>> {
  return dialect?.label === '0.5' ? declareByPaths(sets) : { ...declarePlain(sets, dialect?.arrays === true) }
}

/** MCP Live 0.2 §5.1, §6.1. */
function declarePlain(sets: readonly OfferedSet[], arrays: boolean): WireServerLive {
  const before = sets.some(set => set.before)
  const after = sets.some(set => set.after !== false)
  const hooks = {
    ...(before ? { beforeInference: true } : {}),
    ...(after ? { afterInference: { blocking: sets.some(set => set.after === 'blocking') } } : {}),
  }
  return {
    version: liveVersion,
    ...(uses(sets, 'pushEvents') ? { pushEvents: true } : {}),
    ...(before || after ? { contextHooks: hooks } : {}),
    ...(uses(sets, 'inferenceRequest') ? { inferenceRequest: { streaming: true } } : {}),
    modelInfo: true,
    ...(channelUses(sets).length > 0 ? { channels: true } : {}),
    featureSets: arrays
      ? sets.map(({ name, facts }) => ({ name, ...facts }))
      : Object.fromEntries(sets.map(({ name, facts }) => [name, facts])),
  }
}

/** Hosts from 0.5 on switch a set off whose `uses` holds one path that they do not know. */
function declareByPaths(sets: readonly OfferedSet[]): Readonly<Record<string, unknown>> {
  const before = sets.filter(set => set.before)
  const inject = Object.fromEntries(before.flatMap(set => set.positions).map(position => [position, true]))
  return {
    version: '0.5',
    ...(uses(sets, 'pushEvents') ? { pushEvents: true } : {}),
    ...(before.length > 0 ? { contextHooks: { beforeInference: { observe: true, inject } } } : {}),
    ...(sets.some(set => set.after !== false) ? { inferenceLifecycle: true } : {}),
    ...(uses(sets, 'inferenceRequest') ? { inferenceRequest: { streaming: true } } : {}),
    modelInfo: true,
    ...(channelUses(sets).length > 0 ? { channels: Object.fromEntries(channelUses(sets).map(use => [use, true])) } : {}),
    featureSets: Object.fromEntries(sets.map(set => [set.name, { ...set.facts, uses: pathsOf(set) }])),
  }
}

/** The paths of 0.5 that a set needs. */
function pathsOf({ facts, positions }: OfferedSet): readonly string[] {
  return facts.uses.flatMap(use => {
    if (use === 'contextHooks.afterInference') return ['inferenceLifecycle']
    if (use !== 'contextHooks.beforeInference') return [use]
    return [`${use}.observe`, ...positions.map(position => `${use}.inject.${position}`)]
  })
}

/** What a host tells a set of channels beside their messages: without it the set hears less, and works all the same. */
const merelyTold: ReadonlySet<string> = new Set([
  'channels.lifecycle',
  'channels.streaming',
  'channels.typing',
  'channels.acknowledge',
])

/** Those of its uses that are not among what a host grants: a path stands for all below it, and one below it for enough. */
export function missingFrom(granted: readonly string[], { facts }: OfferedSet): readonly string[] {
  const related = (use: string, path: string): boolean => path === use || use.startsWith(`${path}.`) || path.startsWith(`${use}.`)
  const heard = (use: string): boolean =>
    granted.some(path => related(use, path)) ||
    (use === 'contextHooks.afterInference' && granted.some(path => related('inferenceLifecycle', path)))
  return facts.uses.filter(use => !heard(use) && !merelyTold.has(use))
}
