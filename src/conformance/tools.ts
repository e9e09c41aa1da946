/**
 * Finding tools by what a server says of them: in `_meta` under each extension, in annotations, and for what no extension says in
 * `_meta["dev.vivarium/conformance"] = { brings: [...] }`, by which an author tells the kit what a call of a tool brings about.
 */
import { NS } from '../engine/method.ts'
import { isRecord } from '../jsonrpc/message.ts'
import { listIn, objectIn } from './expectations.ts'
import { sampleArguments } from './sample.ts'
import type { Advertised, Json } from './scenario.ts'

/** A tool that suits a scenario, and arguments that it takes. */
export interface FoundTool {
  readonly name: string
  readonly listed: Json
  readonly args: Json
  /** What it says under an extension. */
  said(extension: string): Json
}

/** How a scenario finds its tool, and what it is missing without it. */
export interface Finder {
  /** Completes: `No tool is listed that …`. */
  readonly that: string
  find(peer: Advertised): FoundTool | undefined
}

/** Where in `_meta` of a tool its author speaks to the kit. */
export const hintKey = `${NS}/conformance`

/** The whole id of an extension. */
export function extensionId(name: string): string {
  return `${NS}/${name}`
}

/** What a listed tool says under an extension; empty where it says nothing. */
export function saidOf(tool: Json, extension: string): Json {
  const meta = tool['_meta']
  const said = isRecord(meta) ? meta[extensionId(extension)] : undefined
  return isRecord(said) ? said : {}
}

/** What an author says that a call brings about. */
export function brings(tool: Json, what: string): boolean {
  return listIn(saidOf(tool, 'conformance'), 'brings').includes(what)
}

/** What follows `prefix:` in what an author says that a call brings about. */
export function broughtBy(tool: Json, prefix: string): string | undefined {
  const all = listIn(saidOf(tool, 'conformance'), 'brings').filter(what => typeof what === 'string')
  return all.find(what => what.startsWith(`${prefix}:`))?.slice(prefix.length + 1)
}

/** A listed tool with arguments for it; undefined where none can be made. */
export function foundTool(tool: Json, args?: Json): FoundTool | undefined {
  const name = tool['name']
  const made = args ?? sampleArguments(tool)
  if (typeof name !== 'string' || made === undefined) return undefined
  return { name, listed: tool, args: made, said: extension => saidOf(tool, extension) }
}

/** The first listed tool that fits and whose arguments can be made. */
export function toolThat(that: string, fits: (tool: Json, peer: Advertised) => boolean): Finder {
  return {
    that,
    find: peer => {
      for (const tool of peer.tools) {
        const found = fits(tool, peer) ? foundTool(tool) : undefined
        if (found !== undefined) return found
      }
      return undefined
    },
  }
}

/** By the author's word. */
export function bringing(what: string, that = `says in _meta["${hintKey}"].brings that it brings about "${what}"`): Finder {
  return toolThat(that, tool => brings(tool, what))
}

/** The first that finds something. */
export function either(first: Finder, second: Finder): Finder {
  return { that: second.that, find: peer => first.find(peer) ?? second.find(peer) }
}

/** Whether calls of a tool need the yes of a user. */
export function needsConfirmation(tool: Json): boolean {
  return saidOf(tool, 'confirmation')['requires_confirmation'] === true
}

/** What a tool says of its cost. */
export function costOf(tool: Json): Json {
  return objectIn(saidOf(tool, 'operational'), 'cost')
}

/** The same names, other values. */
export function otherArguments(args: Json): Json {
  return Object.fromEntries(
    Object.entries(args).map(([name, value]) => [
      name,
      typeof value === 'string' ? `${value}-other` : typeof value === 'number' ? value + 1 : value,
    ]),
  )
}

/** The scopes that calls of a tool need. */
export function scopesOf(tool: Json): readonly string[] {
  const scopes = saidOf(tool, 'permissions')['required_scopes']
  return Array.isArray(scopes) ? scopes.filter(scope => typeof scope === 'string') : []
}

/** Nothing stands between the caller and a call of it. */
export function isPlain(tool: Json): boolean {
  return !needsConfirmation(tool) && scopesOf(tool).length === 0 && saidOf(tool, 'live')['featureSet'] === undefined
}

/** Each run gives another answer, so that it shows whether a call was made. */
export const counting = toolThat(
  'gives another answer each time ("counts")',
  tool =>
    isPlain(tool) && brings(tool, 'counts') && !brings(tool, 'slow') && saidOf(tool, 'streaming')['supports_streaming'] !== true,
)

/** Any tool that can simply be called. */
export const callable = either(
  counting,
  toolThat('can be called without a yes and without scopes', (tool, peer) => isPlain(tool) && peer.mayCall(String(tool['name']))),
)

/** A tool whose calls can be taken back. */
export const undoable = toolThat(
  `names a compensation in _meta["${NS}/transactions"]`,
  tool => isPlain(tool) && isRecord(saidOf(tool, 'transactions')['compensation']) && !brings(tool, 'slow'),
)
