/** Who proves which statement: claims of tests by their titles and by `proves`, held against what test/statements.txt binds whom to. */

export const roles = ['server', 'client', 'host', 'gateway', 'kit'] as const
export type Role = (typeof roles)[number]

export interface Proof {
  readonly id: string
  readonly role: Role
  /** As the tests of MCP Live call it. */
  readonly carrier?: string
}

export const ID = /\b(?:E\d{1,2}-\d{1,2}|X\d{1,2}|L\d{1,2}(?:\.\d)?-\d|L[AB]-1)\b/g
/** Rulings where MCP Live is silent or says two things: named so in its own rooms only. */
export const RULING = /\b(?:A(?:1?\d|2[01])|T[1-7])\b/g
export const RULED = /^(?:src\/(?:features\/live|client\/live|server\/live|policy|host)|test\/(?:live|hosting))/

/** By where a test lies: the first that fits. What both ends share counts for the server, which is bound to most of it. */
const rooms: readonly (readonly [RegExp, Role])[] = [
  [/^(?:src\/conformance|test\/conformance|scripts)\//, 'kit'],
  [/^(?:src\/gateway|test\/gateway)\//, 'gateway'],
  [/^(?:src\/(?:policy|host)\/|test\/hosting\/|test\/live\/host-)/, 'host'],
  [/^test\/reliability\/(?:finder|saga)/, 'client'],
  [/^(?:src\/client|src\/auth\/client|src\/cli|test\/cli)\/|\/(?:client|retries)\.test\.ts$/, 'client'],
]

export function roleOf(path: string): Role {
  return rooms.find(([pattern]) => pattern.test(path))?.[1] ?? 'server'
}

/** Names under which the tests of MCP Live run on carriers, and what a table calls them. */
const carriers: readonly (readonly [RegExp, string])[] = [
  [/\bstdio\b/, 'stdio'],
  [/\bwebsocket\b/, 'websocket'],
  [/^http 2025-11-25|\bon http\b/, '2025-11-25'],
  [/^http 2026-07-28|\bon stateless\b/, '2026-07-28'],
]

/** What a test with this whole name claims; `said` is what it claims beside it. */
export function claimsOf(path: string, name: string, said: readonly Proof[] = []): readonly Proof[] {
  const role = roleOf(path)
  const carrier = /^test\/(?:live|hosting)\//.test(path) ? carriers.find(([pattern]) => pattern.test(name))?.[1] : undefined
  const ids = [...name.matchAll(ID), ...(RULED.test(path) ? name.matchAll(RULING) : [])].map(([id]) => id)
  return [...ids.map(id => ({ id, role, ...(carrier === undefined ? {} : { carrier }) })), ...said]
}

/** `server E5-14 …`: whom statements bind. An id without such a line binds nobody in particular. */
export function readBonds(text: string): ReadonlyMap<string, readonly Role[]> {
  const bonds = new Map<string, Role[]>()
  for (const [, role, ids = ''] of text.matchAll(/^(server|client|host|gateway|kit) ((?:[EXL]\d|L[AB]-).*)$/gm))
    for (const id of ids.split(' ')) bonds.set(id, [...(bonds.get(id) ?? []), role as Role])
  return bonds
}

/** `with schemas E12-7`: what can be shown only where the official schemas are. */
export function needingSchemas(text: string): ReadonlySet<string> {
  return new Set([...text.matchAll(/^with schemas (.*)$/gm)].flatMap(([, ids = '']) => ids.split(' ')))
}

export interface Gap {
  readonly id: string
  /** Undefined: nobody has proved it. */
  readonly role: Role | undefined
}

/** Statements that lack a proof, for each role that they bind. */
export function gapsIn(
  ids: readonly string[],
  bonds: ReadonlyMap<string, readonly Role[]>,
  proofs: readonly Proof[],
): readonly Gap[] {
  const proved = new Set(proofs.map(({ id, role }) => `${role} ${id}`))
  const any = new Set(proofs.map(({ id }) => id))
  return ids.flatMap<Gap>(id => {
    const bound = bonds.get(id)
    if (bound === undefined) return any.has(id) ? [] : [{ id, role: undefined }]
    return bound.filter(role => !proved.has(`${role} ${id}`)).map(role => ({ id, role }))
  })
}

const OPENING = /^( *)(?:test|it)(?:\.\w+(?:\([^)]*\))?)*\(/

/**
 * Titles that claim a statement and have a way out before their end (a bare `return` in the body itself): such a test may pass
 * without having shown anything.
 */
export function leavingEarly(source: string): readonly string[] {
  const lines = source.split('\n')
  return lines.flatMap((line, at) => {
    const indent = OPENING.exec(line)?.[1]
    const title = /(['"`])((?:\\.|(?!\1).)*)\1/.exec(lines.slice(at, at + 3).join(' '))?.[2] ?? ''
    if (indent === undefined || !new RegExp(ID.source).test(title)) return []
    const rest = lines.slice(at + 1)
    const end = rest.findIndex(next => next.startsWith(`${indent}}`) || next.startsWith(`${indent})`))
    const body = rest.slice(0, end)
    const leaves = body.some(
      (next, nth) =>
        new RegExp(`^${indent}  if \\(.*\\) return$`).test(next) ||
        (next === `${indent}    return` &&
          body
            .slice(0, nth)
            .findLast(each => /^ *\S/.test(each) && !each.startsWith(`${indent}    `))
            ?.startsWith(`${indent}  if (`) === true),
    )
    return leaves ? [title] : []
  })
}
