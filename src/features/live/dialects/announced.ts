/** What a server says of itself in `experimental.mcpl`, whichever dialect it says it in. */
import { clip } from '../../../jsonrpc/limits.ts'
import { isRecord } from '../../../jsonrpc/message.ts'
import type { Capabilities } from '../../../revisions/index.ts'
import { type FeatureSetFacts, liveExtension, mcplName } from '../feature-sets/messages.ts'
import type { ContentForm } from './messages.ts'

/** The version of MCP Live that a peer speaks. */
export type DialectLabel = '0.2' | '0.3' | '0.4' | '0.5'

/** What a server says of itself in its hello. */
export interface Announced extends Declarations {
  /** As the server wrote it. */
  readonly version: string
  /** What it is taken for: a hint, never a gate. */
  readonly label: DialectLabel
  readonly pushEvents: boolean
  readonly before: boolean
  readonly after: false | 'told' | 'blocking'
  readonly inference: boolean
  readonly channels: boolean
  readonly lifecycle: boolean
  /** Capabilities by path, `tools` among them. */
  readonly paths: readonly string[]
  /** How content is written to it. */
  readonly form: ContentForm
  /** Its types know no `null` for what the user said, where the turn is over. */
  readonly nullless: boolean
}

/** Undefined: the server is not live. */
export function readAnnounced(capabilities: Capabilities): Announced | undefined {
  const mcpl = liveIn(capabilities)
  return mcpl === undefined ? undefined : announcedBy(mcpl, hasTools(capabilities))
}

/** Whatever it says of them, whoever has the capability has tools. */
export function hasTools({ tools }: Capabilities): boolean {
  return tools === true || isRecord(tools)
}

/** The same of a manifest that was read anew. */
export function announcedBy(mcpl: Readonly<Record<string, unknown>>, tools: boolean): Announced {
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
    paths: tools ? ['tools', ...announcedPaths(mcpl).filter(path => path !== 'tools')] : announcedPaths(mcpl),
    form: label === '0.2' ? 'source' : 'flat',
    nullless: Array.isArray(mcpl['featureSets']) && label !== '0.2',
    ...readDeclarations(mcpl['featureSets']),
  }
}

/** Wires with a handshake have it among the experiments, others among the extensions. */
function liveIn(capabilities: Capabilities): Readonly<Record<string, unknown>> | undefined {
  const { experimental, extensions } = capabilities
  const told = isRecord(experimental) ? experimental[mcplName] : undefined
  const extension = isRecord(extensions) ? extensions[liveExtension] : undefined
  if (isRecord(told)) return told
  if (isRecord(extension)) return extension
  return told === true ? {} : undefined
}

/** `true` is the form that waits for no answer. */
function afterOf(hooks: unknown): Announced['after'] {
  const after = isRecord(hooks) ? hooks['afterInference'] : hooks
  if (isRecord(after)) return after['blocking'] === true ? 'blocking' : 'told'
  return after === true ? 'told' : false
}

/** Who does not say is told by the shape of what it does say: cores before 0.5 write their sets as an array. */
function labelOf(version: string, arrayed: boolean): DialectLabel {
  const [, major, minor] = /^v?(\d+)\.(\d+)/.exec(version) ?? []
  if (major === undefined) return arrayed ? '0.4' : '0.2'
  if (Number(major) > 0 || Number(minor) >= 5) return '0.5'
  return minor === '3' ? '0.3' : minor === '4' ? '0.4' : '0.2'
}

// Feature sets as servers declare them: an object by name, an array of entries with a name, or merely `true`.

interface Declarations {
  readonly sets: ReadonlyMap<string, FeatureSetFacts>
  /** Declared, but never enabled: by name, what is wrong. */
  readonly faulty: ReadonlyMap<string, string>
}

/** A server with more than this does not mean people to choose among them. */
export const mostSets = 1_000
const mostUses = 64
const longestName = 256
/** As a part of a key of stores. */
const longestKey = 512

/** Reads the feature sets that a server declares, in any dialect. */
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

function entries(wire: unknown): readonly (readonly [name: string, value: unknown])[] {
  if (Array.isArray(wire)) {
    return wire.flatMap(one => (isRecord(one) && typeof one['name'] === 'string' ? [[one['name'], one] as const] : []))
  }
  return isRecord(wire) ? Object.entries(wire) : []
}

/** A star in a name would be a pattern to whoever reads the selection. */
function faultOf(name: string, value: unknown): string | undefined {
  if (name === '' || name.length > longestName) return `its name must have 1 to ${longestName} characters`
  if (!name.isWellFormed() || encodeURIComponent(name).length > longestKey) return 'its name has too many unusual characters'
  if (name.includes('*')) return 'its name must not contain a star'
  if (!isRecord(value)) return 'it is no object'
  if (typeof value['description'] !== 'string') return 'it has no description'
  return Array.isArray(value['uses']) ? undefined : 'it does not say what it uses'
}

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

// Capabilities as paths: what a server announced, leaf by leaf. `true` at any level stands for all that is known to lie below it, so
// that a grant names leaves to those who want leaves, and the node itself to those who know no finer ones. Never a pattern.

/** What `true` stands for (0.5 §5.1, §6.2). */
const below: ReadonlyMap<string, readonly string[]> = new Map([
  ['contextHooks', ['beforeInference', 'afterInference']],
  ['contextHooks.beforeInference', ['observe', 'inject']],
  ['contextHooks.beforeInference.inject', ['system', 'beforeUser', 'afterUser']],
  ['inferenceRequest', ['streaming']],
  ['channels', ['register', 'lifecycle', 'publish', 'incoming', 'streaming', 'acknowledge', 'typing']],
])

const hook = 'contextHooks.beforeInference'
/** Nodes that are something by themselves, beside what lies below. */
const whole: ReadonlySet<string> = new Set([hook, 'contextHooks.afterInference', 'inferenceRequest'])
/** What qualifies its node, and grants nothing. */
const qualifiers: ReadonlySet<string> = new Set(['contextHooks.afterInference.blocking'])
const aside: ReadonlySet<string> = new Set(['version', 'featureSets', 'revision', 'scopes', 'rollback'])

const mostPaths = 256
const deepest = 6
const segment = /^[A-Za-z0-9_:-]{1,64}$/

/** The paths that `mcpl` announces, each once, in the order in which they were found. */
export function announcedPaths(mcpl: Readonly<Record<string, unknown>>): readonly string[] {
  const found = new Set<string>()
  for (const [name, node] of Object.entries(mcpl)) {
    if (!aside.has(name)) walk(name, name, node, 1, found)
  }
  return [...found]
}

function walk(name: string, path: string, node: unknown, depth: number, found: Set<string>): void {
  if (!segment.test(name) || depth > deepest || found.size >= mostPaths || qualifiers.has(path)) return
  if (node === true) return expand(path, found)
  if (!isRecord(node)) return
  const members = Object.entries(node)
  if (members.length === 0 || (whole.has(path) && (path !== hook || isOffered(node)))) found.add(path)
  for (const [member, value] of members) walk(member, `${path}.${member}`, value, depth + 1, found)
}

function expand(path: string, found: Set<string>): void {
  const leaves = below.get(path)
  if (leaves === undefined || whole.has(path)) found.add(path)
  for (const leaf of leaves ?? []) expand(`${path}.${leaf}`, found)
}

/** Whether a node means yes: `true`, an object with something true in it, or one that says nothing at all. */
export function isOffered(node: unknown): boolean {
  if (node === true) return true
  if (!isRecord(node)) return false
  const members = Object.values(node)
  return members.length === 0 || members.some(isOffered)
}

const before = 'contextHooks.beforeInference'

/** Everything that a feature set may do. */
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
