/**
 * What a listed tool says of itself: in `_meta` under each extension, and for what no extension says in
 * `_meta["dev.vivarium/conformance"] = { brings: [...] }`, by which an author tells the kit what a call of a tool brings about.
 */
import { NS } from '../engine/method.ts'
import { isRecord } from '../jsonrpc/message.ts'
import { listIn, objectIn } from './expectations.ts'
import type { Json } from './scenario.ts'

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
