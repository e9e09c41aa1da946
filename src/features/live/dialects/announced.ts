/**
 * Reads what a server announces in `experimental.mcpl`, in any dialect: capabilities, feature sets, capability paths, and the uses that
 * the sets declare.
 */
import { clip } from '../../../jsonrpc/limits.ts'
import { isRecord } from '../../../jsonrpc/message.ts'
import type { Capabilities } from '../../../revisions/index.ts'
import { type FeatureSetFacts, liveExtension, mcplName } from '../feature-sets/messages.ts'

/** The version of MCP Live that a peer speaks. */
export type DialectLabel = '0.2' | '0.3' | '0.4' | '0.5'

/** What a server announced, in one form for all dialects. */
export interface Announcement extends Declarations {
  /** As the server wrote it. */
  readonly version: string
  /** The dialect that the server is taken for; a hint, never a condition. */
  readonly label: DialectLabel
  readonly pushEvents: boolean
  readonly before: boolean
  /** `told`: notified only. `blocking`: asked, and may change the reply. */
  readonly after: false | 'told' | 'blocking'
  readonly inference: boolean
  readonly channels: boolean
  readonly lifecycle: boolean
  /** Announced capabilities as paths, including `tools`. */
  readonly paths: readonly string[]
  /** The server reads media under `source`. */
  readonly source: boolean
  /** The server's schema does not allow null as the user message after a turn. */
  readonly nullless: boolean
}

/** Reads the capabilities of a handshake; undefined if the server is not live. */
export function readAnnounced(capabilities: Capabilities): Announcement | undefined {
  const mcpl = liveIn(capabilities)
  return mcpl === undefined ? undefined : announcedBy(mcpl, capabilities)
}

/** Reads an `mcpl` object, from the handshake or from a manifest. */
export function announcedBy(mcpl: Readonly<Record<string, unknown>>, { tools }: Capabilities): Announcement {
  const version = typeof mcpl['version'] === 'string' ? clip(mcpl['version']) : ''
  const label = labelOf(version, Array.isArray(mcpl['featureSets']))
  const hooks = mcpl['contextHooks']
  return {
    version,
    label,
    pushEvents: isOffered(mcpl['pushEvents']),
    before: hooks === true || (isRecord(hooks) && isOffered(hooks['beforeInference'])),
    after: afterOf(hooks),
    inference: mcpl['inferenceRequest'] === true || isRecord(mcpl['inferenceRequest']),
    channels: isOffered(mcpl['channels']),
    lifecycle: isOffered(mcpl['inferenceLifecycle']),
    paths: [...new Set([...(tools === true || isRecord(tools) ? ['tools'] : []), ...announcedPaths(mcpl)])],
    source: label === '0.2',
    nullless: Array.isArray(mcpl['featureSets']) && label !== '0.2',
    ...readDeclarations(mcpl['featureSets']),
  }
}

/** Session wires announce it under `experimental`, stateless ones under `extensions`. */
function liveIn(capabilities: Capabilities): Readonly<Record<string, unknown>> | undefined {
  const { experimental, extensions } = capabilities
  const told = isRecord(experimental) ? experimental[mcplName] : undefined
  const extension = isRecord(extensions) ? extensions[liveExtension] : undefined
  if (isRecord(told)) return told
  if (isRecord(extension)) return extension
  return told === true ? {} : undefined
}

/** `true` means the form without an answer. */
function afterOf(hooks: unknown): Announcement['after'] {
  const after = isRecord(hooks) ? hooks['afterInference'] : hooks
  if (isRecord(after)) return after['blocking'] === true ? 'blocking' : 'told'
  return after === true ? 'told' : false
}

/** Servers without a version are recognised by their sets: cores before 0.5 write them as an array. */
function labelOf(version: string, arrayed: boolean): DialectLabel {
  const [, major, minor] = /^v?(\d+)\.(\d+)/.exec(version) ?? []
  if (major === undefined) return arrayed ? '0.4' : '0.2'
  if (Number(major) > 0 || Number(minor) >= 5) return '0.5'
  return minor === '3' ? '0.3' : minor === '4' ? '0.4' : '0.2'
}

// Feature sets as servers declare them: an object by name, an array of entries with names, or just `true`.

interface Declarations {
  readonly sets: ReadonlyMap<string, FeatureSetFacts>
  /** Sets that are never enabled because their declaration is invalid: name → fault. */
  readonly faulty: ReadonlyMap<string, string>
}

/** Limit of declared sets; further ones are ignored. */
export const mostSets = 1_000
const mostUses = 64
const longestName = 256
/** The encoded name is part of a store key, which is limited. */
const longestKey = 512

/** Reads declared feature sets in any dialect. */
export function readDeclarations(wire: unknown): Declarations {
  const sets = new Map<string, FeatureSetFacts>()
  const faulty = new Map<string, string>()
  for (const [name, value] of entries(wire).slice(0, mostSets)) {
    const fault = faultOf(name, value)
    if (fault === undefined) sets.set(name, factsOf(value as Readonly<Record<string, unknown>>))
    else if (name.length <= longestName) faulty.set(name, fault)
  }
  return { sets, faulty }
}

// Entries of an object or of an array.
function entries(wire: unknown): readonly (readonly [name: string, value: unknown])[] {
  if (Array.isArray(wire)) {
    return wire.flatMap(one => (isRecord(one) && typeof one['name'] === 'string' ? [[one['name'], one] as const] : []))
  }
  return isRecord(wire) ? Object.entries(wire) : []
}

/** A `*` in a name is refused because selections would read it as a pattern. */
function faultOf(name: string, value: unknown): string | undefined {
  if (name === '' || name.length > longestName) return `its name does not have 1 to ${longestName} characters`
  if (!name.isWellFormed() || encodeURIComponent(name).length > longestKey)
    return `its name is not valid Unicode or has more than ${longestKey} characters when URL-encoded`
  if (name.includes('*')) return 'its name contains "*"'
  if (!isRecord(value)) return 'it is not an object'
  if (typeof value['description'] !== 'string') return 'it has no description'
  return Array.isArray(value['uses']) ? undefined : 'it has no list "uses"'
}

// Keeps known members only, within the limits.
function factsOf(value: Readonly<Record<string, unknown>>): FeatureSetFacts {
  const uses = (value['uses'] as readonly unknown[]).filter(use => typeof use === 'string').slice(0, mostUses)
  return {
    description: clip(value['description'] as string, 2_000),
    uses,
    ...(value['scoped'] === true ? { scoped: true } : {}),
    ...(value['rollback'] === true ? { rollback: true } : {}),
    ...(value['hostState'] === true ? { hostState: true } : {}),
  }
}

// Announced capabilities as paths. `true` at any level expands to all known paths below it, so that a grant can name leaves or the node
// itself. Paths are never patterns.

/** What `true` expands to (0.5 §5.1, §6.2). */
const below: ReadonlyMap<string, readonly string[]> = new Map([
  ['contextHooks', ['beforeInference', 'afterInference']],
  ['contextHooks.beforeInference', ['observe', 'inject']],
  ['contextHooks.beforeInference.inject', ['system', 'beforeUser', 'afterUser']],
  ['inferenceRequest', ['streaming']],
  ['channels', ['register', 'lifecycle', 'publish', 'incoming', 'streaming', 'acknowledge', 'typing']],
])

const hook = 'contextHooks.beforeInference'
/** Nodes that are capabilities themselves, beside what is below them. */
const whole: ReadonlySet<string> = new Set([hook, 'contextHooks.afterInference', 'inferenceRequest'])
/** Members that only qualify their node and are not capabilities. */
const qualifiers: ReadonlySet<string> = new Set(['contextHooks.afterInference.blocking'])
/** Members of `mcpl` that are not capabilities. */
const aside: ReadonlySet<string> = new Set(['version', 'featureSets', 'revision', 'scopes', 'rollback'])

const mostPaths = 256
const deepest = 6
const segment = /^[A-Za-z0-9_:-]{1,64}$/

/** The announced capability paths, each once, in the order found. */
function announcedPaths(mcpl: Readonly<Record<string, unknown>>): readonly string[] {
  const found = new Set<string>()
  for (const [name, node] of Object.entries(mcpl)) {
    if (!aside.has(name)) walk(name, name, node, 1, found)
  }
  return [...found]
}

// Depth and number of paths are limited, because the server chooses them.
function walk(name: string, path: string, node: unknown, depth: number, found: Set<string>): void {
  if (!segment.test(name) || depth > deepest || found.size >= mostPaths || qualifiers.has(path)) return
  if (node === true) return expand(path, found)
  if (!isRecord(node)) return
  const members = Object.entries(node)
  if (members.length === 0 || (whole.has(path) && (path !== hook || isOffered(node)))) found.add(path)
  for (const [member, value] of members) walk(member, `${path}.${member}`, value, depth + 1, found)
}

// Adds everything that `true` stands for.
function expand(path: string, found: Set<string>): void {
  const leaves = below.get(path)
  if (leaves === undefined || whole.has(path)) found.add(path)
  for (const leaf of leaves ?? []) expand(`${path}.${leaf}`, found)
}

/** Whether a node means yes: `true`, an object with a true member, or an empty object. */
function isOffered(node: unknown): boolean {
  if (node === true) return true
  if (!isRecord(node)) return false
  const members = Object.values(node)
  return members.length === 0 || members.some(isOffered)
}

const before = 'contextHooks.beforeInference'

/** Every use that a feature set can declare and a host can allow. */
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
/** A use that a feature set can declare. */
export type SetUse = (typeof setUses)[number]

/** Paths that imply uses with other names; the first is the main one. */
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

/**
 * Uses that must be named explicitly: servers that declare `channels` as a whole may not handle streams, and some would post them
 * twice.
 */
const byName: ReadonlySet<SetUse> = new Set<SetUse>(['channels.streaming'])

/** The uses that a path covers: itself and everything below; empty if unknown. */
export function usesUnder(path: string): readonly SetUse[] {
  return others.get(path) ?? setUses.filter(use => use === path || (use.startsWith(`${path}.`) && !byName.has(use)))
}

/** Whether a path may be used under these uses: it, or something below it, is among them. */
export function isConsented(path: string, uses: ReadonlySet<SetUse>): boolean {
  const [first] = others.get(path) ?? []
  if (first !== undefined) return uses.has(first)
  const below = usesUnder(path)
  return below.length === 0 || below.some(use => uses.has(use))
}

/** The uses that a set declares by its paths and its flags. */
export function declaredUses({ uses, scoped, rollback, hostState }: FeatureSetFacts): ReadonlySet<SetUse> {
  const found = new Set(uses.flatMap(usesUnder))
  if (scoped === true) found.add('scopes')
  if (rollback === true) found.add('rollback').add('state')
  if (hostState === true) found.add('state')
  return found
}

/**
 * Whether state travels with the set's tool calls. From 0.4 on it is not declared; results of tools simply contain it. This does not
 * cover state outside of calls.
 */
export function carriesState(uses: ReadonlySet<SetUse>, label: string): boolean {
  return uses.has('state') || (uses.has('tools') && (label === '0.4' || label === '0.5'))
}
