/**
 * Keeps the tables of options in docs/reference: they are made from the public types and their doc comments, and every option type that
 * an author writes by hand has one. `--write` brings them up to date. A table follows `<!-- options: ENTRY TYPE -->`; with
 * `beyond OTHER` it lacks the members that the other type has too.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { basename } from 'node:path/posix'
import { PUBLIC } from './lib/entries.ts'
import { readExports } from './lib/exports.ts'
import { root } from './lib/files.ts'
import { runCheck } from './lib/report.ts'
import { anchorOf, formatTable } from './lib/tables.ts'
import {
  above,
  findType,
  isNode,
  type Node,
  nameOf,
  nodes,
  type SourceFile,
  sourceFile,
  tagsAbove,
} from './schemas/declarations.ts'
import { type Members, membersOf } from './schemas/type-schema.ts'

interface Page {
  readonly path: string
  readonly text: string
}

const PAGES = ['server-options', 'feature-options', 'client-options', 'sign-in-options', 'host-options'].map(
  name => `docs/reference/${name}.md`,
)

/** Entries whose option types the pages have to show. */
const ENTRIES = ['server', 'client', 'host', 'gateway']

const TABLE = /<!-- options: (\w+) (\w+)(?: beyond (\w+))? -->\n(?:\|.*\n)*/g

/** Where the tables are, by the name of their type, as links from one page. */
type Places = ReadonlyMap<string, string>

/** The members of a public type; undefined if there is none of that name. */
export type FindMembers = (entry: string, type: string) => Members | undefined

/** The pages with their tables as they should be. */
export function withOptions(pages: readonly Page[], find: FindMembers): readonly Page[] {
  return pages.map(({ path, text }) => {
    const places = placesOf(pages, path)
    const fresh = text.replace(TABLE, (found, entry: string, type: string, other: string | undefined) => {
      const members = find(entry, type)
      if (members === undefined) return found
      const known = other === undefined ? undefined : find(entry, other)
      const shown = new Map([...members].filter(([name]) => known?.has(name) !== true))
      return `${found.slice(0, found.indexOf('\n'))}\n${tableOf(shown, places)}\n`
    })
    return { path, text: fresh }
  })
}

/** Tables of unknown types, and public option types without a table. */
export function findOptionProblems(pages: readonly Page[], find: FindMembers, wanted: readonly string[]): string[] {
  const shown = pages.flatMap(({ path, text }) =>
    [...text.matchAll(TABLE)].map(([, entry = '', type = '']) => ({ path, entry, type })),
  )
  const unknown = shown.filter(({ entry, type }) => find(entry, type) === undefined)
  const missing = wanted.filter(name => !shown.some(({ entry, type }) => `${entry} ${type}` === name))
  return [
    ...unknown.map(({ path, entry, type }) => `${path}: vivarium/${entry} exports no interface ${type}`),
    ...missing.map(name => `${name} has no table; add "<!-- options: ${name} -->" to one of ${PAGES.join(', ')}`),
  ]
}

function placesOf(pages: readonly Page[], from: string): Places {
  const places = new Map<string, string>()
  for (const { path, text } of pages) {
    let heading = ''
    for (const line of text.split('\n')) {
      heading = /^#+ (.*)$/.exec(line)?.[1] ?? heading
      const type = /^<!-- options: \w+ (\w+)/.exec(line)?.[1]
      if (type === undefined || (path !== from && places.has(type))) continue
      places.set(type, `${path === from ? '' : basename(path)}#${anchorOf(heading)}`)
    }
  }
  return places
}

function tableOf(members: Members, places: Places): string {
  const current = [...members].filter(([, { node, file }]) => !tagsAbove(file.text, node.start).has('deprecated'))
  const rows = current.map(([name, { node, file }]) => {
    const standard = tagsAbove(file.text, node.start).get('default')?.[0]
    const about = above(file.text, node.start) ?? ''
    const meaning = standard === undefined ? about : `${about} Default: \`${standard}\`.`
    return [
      `\`${name}\`${node['optional'] === true ? '' : ', required'}`,
      typeText(node['typeAnnotation'], file, places),
      meaning,
    ]
  })
  return formatTable([['option', 'type', 'meaning'], ...rows])
}

/** A type in a few words: what is longer can be read in the editor. */
function typeText(type: unknown, file: SourceFile, places: Places): string {
  if (!isNode(type)) return ''
  const again = (each: unknown): string => typeText(each, file, places)
  switch (type.type) {
    case 'TSTypeAnnotation':
    case 'TSParenthesizedType':
    case 'TSTypeOperator':
      return again(type['typeAnnotation'])
    case 'TSUnionType':
      return [...new Set(nodes(type['types']).filter(isWorthSaying).map(again))].join(' or ')
    case 'TSFunctionType':
      return 'function'
    case 'TSTypeLiteral':
      return 'object'
    case 'TSTupleType':
    case 'TSArrayType':
      return listText(again(type['elementType'] ?? nodes(type['elementTypes'])[0]))
    case 'TSTypeReference':
      return referenceText(type, again, places)
    case 'TSTypeQuery':
      return `\`${file.text.slice(type.start, type.end)}\``
    case 'TSIntersectionType':
    case 'TSIndexedAccessType':
      return 'object'
    default:
      return type.type.endsWith('Keyword')
        ? file.text.slice(type.start, type.end)
        : `\`${file.text.slice(type.start, type.end)}\``
  }
}

function listText(item: string): string {
  return item.includes(' or ') ? `list of (${item})` : `list of ${item}`
}

/** Readers of an optional member know that it may be missing. */
function isWorthSaying({ type }: Node): boolean {
  return type !== 'TSUndefinedKeyword'
}

function referenceText(type: Node, again: (each: unknown) => string, places: Places): string {
  const name = nameOf(type['typeName'])
  const [first, second] = nodes(isNode(type['typeArguments']) ? type['typeArguments']['params'] : [])
  if (['Readonly', 'Partial', 'NonNullable', 'Awaitable', 'Omit', 'Pick'].includes(name)) return again(first)
  if (name === 'Record' || name === 'ReadonlyMap') return `map of ${again(second)}`
  const place = places.get(name)
  return place === undefined ? `\`${name}\`` : `[\`${name}\`](${place})`
}

/** Reads the members from the sources: of a public type, or of one that a member of a public option type mentions. */
function findMembers(entry: string, type: string): Members | undefined {
  const path = PUBLIC[entry]
  if (path === undefined) return undefined
  const file = sourceFile(join(root, path))
  const declared =
    findType(type, file) ??
    mentionedBy(file, path)
      .map(each => findType(type, each))
      .find(isDeclared)
  return declared?.node.type === 'TSInterfaceDeclaration' ? membersOf(declared.node, declared.file) : undefined
}

const isDeclared = <T>(each: T | undefined): each is T => each !== undefined

/** The files in which the members of an entry's option types are declared. */
function mentionedBy(file: SourceFile, path: string): readonly SourceFile[] {
  const options = readExports(readFileSync(join(root, path), 'utf8')).types.filter(each => each.endsWith('Options'))
  const declared = options.map(each => findType(each, file)).filter(isDeclared)
  const interfaces = declared.filter(({ node }) => node.type === 'TSInterfaceDeclaration')
  return [...new Set(interfaces.flatMap(each => [...membersOf(each.node, each.file).values()].map(member => member.file)))]
}

/** Public types whose names say that an author writes them by hand; a type that two entries export needs one table. */
function wantedTypes(): string[] {
  const found = new Map<string, string>()
  for (const entry of ENTRIES) {
    const { types } = readExports(readFileSync(join(root, PUBLIC[entry] ?? ''), 'utf8'))
    for (const type of types.filter(each => each.endsWith('Options'))) {
      const declared = findType(type, sourceFile(join(root, PUBLIC[entry] ?? '')))
      const place = `${declared?.file.path} ${nameOf(declared?.node['id'])}`
      if (declared?.node.type === 'TSInterfaceDeclaration' && !found.has(place)) found.set(place, `${entry} ${type}`)
    }
  }
  return [...found.values()]
}

if (import.meta.main) {
  const pages = PAGES.map(path => ({ path, text: readFileSync(join(root, path), 'utf8') }))
  const fresh = withOptions(pages, findMembers)
  const writing = process.argv.includes('--write')
  if (writing) for (const { path, text } of fresh) writeFileSync(join(root, path), text)
  const stale = writing ? [] : pages.filter(({ text }, at) => fresh[at]?.text !== text)
  runCheck('options', () => [
    ...stale.map(({ path }) => `${path}: its tables differ from the doc comments; run \`npm run fix\``),
    ...findOptionProblems(pages, findMembers, wantedTypes()),
  ])
}
