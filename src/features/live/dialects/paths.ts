/**
 * Capabilities as paths: what a server announced, leaf by leaf. `true` at any level stands for all that is known to lie below it, so
 * that a grant names leaves to those who want leaves, and the node itself to those who know no finer ones. Never a pattern.
 */
import { isRecord } from '../../../jsonrpc/message.ts'

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
