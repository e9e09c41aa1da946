/** Holds the imports in src/ against the floor plan. Reads text only; `findRoomProblems` is pure and has its own test. */
import { readFileSync } from 'node:fs'
import { builtinModules } from 'node:module'
import { dirname, join, posix } from 'node:path'
import { revisions } from '../src/revisions/index.ts'
import { PUBLIC } from './lib/entries.ts'
import { findCrowdedFeatures, findFeatureProblems, type Located } from './lib/feature-rules.ts'
import { listFiles, root } from './lib/files.ts'
import { runCheck } from './lib/report.ts'
import { DRAWERS, FAMILIES, floorOf, LOADERS, MOST_SHORT, PACKAGES, PORTABLE, SPELLS_REVISIONS } from './lib/rooms.ts'
import { readImports } from './lib/source.ts'

/** Source text by path, e.g. `src/core/clock.ts`. */
export type Sources = ReadonlyMap<string, string>

/** Every breach of the floor plan, as `file:line: rule; remedy`. */
export function findRoomProblems(sources: Sources): string[] {
  const problems: string[] = []
  const inside: Located[] = []
  const above: Located[] = []
  const lazy = new Set<string>()
  const users = new Map<string, Set<string>>()
  const files = new Map([...sources].map(([path, source]) => [path, readImports(source)]))
  // A file that names vitest serves only tests: a shared list of sentences, a scripted peer.
  const isTest = (path: string) =>
    /\.test\.ts$/.test(path) || (files.get(path) ?? []).some(({ specifier }) => specifier === 'vitest')
  for (const [path, imports] of files) {
    problems.push(...findPlaceProblems(path))
    if (isTest(path)) continue
    problems.push(...findSpelledRevisions(path, sources.get(path) ?? ''))
    for (const { line, specifier, lazy: isLazy } of imports) {
      const target = specifier?.startsWith('.') ? posix.join(dirname(path), specifier) : undefined
      const problem = target ? judgePath(path, target, isTest(target)) : judgePackage(path, specifier)
      if (problem) problems.push(`${path}:${line}: ${problem}`)
      if (target && roomOf(target) === 'features') (roomOf(path) === 'features' ? inside : above).push({ path, line, target })
      if (target && isLazy) lazy.add(target)
      const name = specifier && packageName(specifier)
      if (name && PACKAGES.has(name)) users.set(name, (users.get(name) ?? new Set()).add(path))
    }
  }
  const short = [...sources]
    .filter(([path, text]) => !isTest(path) && !lazy.has(path) && isShort(path, text))
    .map(([path]) => path)
  return [
    ...problems,
    ...findFeatureProblems(inside),
    ...findCrowdedFeatures(above),
    ...findSharedPackages(users),
    ...(short.length > MOST_SHORT
      ? [
          `src: ${short.length} files have fewer than 25 lines, at most ${MOST_SHORT}: ${short.join(', ')}; merge some with their neighbours`,
        ]
      : []),
  ]
}

/** Entries, messages, sides and revisions are short by their nature; what is loaded when it is used has to be a file of its own. */
function isShort(path: string, text: string): boolean {
  if (Object.values(PUBLIC).includes(path) || /\/(index|messages)\.ts$|^src\/(revisions|conformance)\//.test(path)) return false
  if (/^src\/features\/[^/]+\/[^/]+\/(server|client|host)\.ts$/.test(path)) return false
  return text.split('\n').length - 1 < 25
}

const roomOf = (path: string) => path.split('/')[1] ?? ''

function findPlaceProblems(path: string): string[] {
  const [, room, ...rest] = path.split('/')
  const names = [...rest.slice(0, -1), rest.at(-1)?.replace(/(\.test)?\.ts$/, '') ?? '']
  const drawer = names.find(name => DRAWERS.test(name))
  if (drawer)
    return [`${path}: "${drawer}" is a drawer, not an idea; put each thing beside its user, or give it a name of its own`]
  if (room === 'features' && rest.length > 1 && !FAMILIES.includes(rest[0] ?? '')) {
    return [`${path}: "${rest[0]}" is no family of features; move it into one of ${FAMILIES.join(', ')}`]
  }
  if (rest.length > 0 && room !== undefined && floorOf.has(room)) return []
  return [`${path}: lies in no room; move it into one of ${[...floorOf.keys()].join(', ')}`]
}

const revisionId = new RegExp(`'(${revisions.map(({ id }) => id).join('|')})'`)

/** Who knows a revision by its id must be found again when the next one comes. The kit says what each one demands, so it may. */
function findSpelledRevisions(path: string, source: string): string[] {
  if (/^src\/(revisions|conformance)\/|\/messages\.ts$/.test(path)) return []
  const line = source.split('\n').findIndex(text => revisionId.test(text)) + 1
  if (SPELLS_REVISIONS.has(path))
    return line > 0 ? [] : [`${path}: spells no revision id any more; take it off the list in scripts/lib/rooms.ts`]
  const remedy = 'make what you ask of it a property in src/revisions, or a function of the messages.ts that owns it'
  return line > 0 ? [`${path}:${line}: spells a revision id; ${remedy}`] : []
}

/** The rule that an import of another file of ours breaks. */
function judgePath(path: string, target: string, forTests: boolean): string | undefined {
  if (forTests) return `${target} is a test or serves tests (it names vitest); only tests may import it`
  if (!target.startsWith('src/')) return `${target} is outside src/; code in src/ imports only from src/`
  const [from, to] = [roomOf(path), roomOf(target)]
  const [low, high] = [floorOf.get(to), floorOf.get(from)]
  if (from === to || low === undefined || high === undefined || low < high) return undefined
  const where = low === high ? `${from} and ${to} share floor ${low}` : `${to} (floor ${low}) lies above ${from} (floor ${high})`
  return `${from} may not import ${target}: ${where}; move what both need to a lower floor, or hand it in as a parameter`
}

/** The rule that an import from outside src/ breaks. */
function judgePackage(path: string, specifier: string | undefined): string | undefined {
  if (specifier === undefined)
    return LOADERS.has(path) ? undefined : 'import() of a computed name hides from this check; write the name out'
  const room = roomOf(path)
  const name = packageName(specifier)
  const portable = PORTABLE.has(room)
  if (specifier.startsWith('node:') || builtinModules.includes(name)) {
    const remedy = 'use a web standard, or an interface that transports or server implement'
    return portable ? `${room} runs on any runtime and may not import ${specifier}; ${remedy}` : undefined
  }
  if (name === 'vivarium') return `${specifier} is our own package; import the file by its relative path`
  const known = PACKAGES.get(name)
  if (!known)
    return `package ${name} is not on the list; do without, or argue for it in docs/decisions and add it to scripts/lib/rooms.ts`
  return portable && !known.portable ? `${room} may not import ${name}; only transports, server or client may` : undefined
}

/** `ajv/dist/2020.js` → `ajv`; `@scope/name/x` → `@scope/name`. */
function packageName(specifier: string): string {
  return specifier.split('/', specifier.startsWith('@') ? 2 : 1).join('/')
}

function findSharedPackages(users: Map<string, Set<string>>): string[] {
  return [...users].flatMap(([name, paths]) => {
    const [first, ...others] = paths
    return others.map(
      path =>
        `${path}: package ${name} is imported by ${first} already, and only one file may (types too); export what you need there`,
    )
  })
}

if (import.meta.main) {
  const paths = listFiles(['src'], /./)
  const strange = paths
    .filter(path => !path.endsWith('.ts'))
    .map(path => `${path}: src/ holds only .ts files; move it to test/, docs/ or examples/`)
  const sources = new Map(paths.filter(path => path.endsWith('.ts')).map(path => [path, readFileSync(join(root, path), 'utf8')]))
  runCheck('rooms', () => [...strange, ...findRoomProblems(sources)])
}
