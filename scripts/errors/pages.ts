/** The pages of the error reference: an index of all codes, and tables of messages by area. */
import { problem } from '../../src/core/problem.ts'
import { revisions } from '../../src/revisions/registry.ts'
import type { CommonKind } from '../../src/revisions/revision.ts'
import { classMeanings, kindMeanings, type Meaning, problemMeanings, type Who } from './meanings.ts'
import type { Found } from './sites.ts'

/** A page by its path. */
export interface Page {
  readonly path: string
  readonly text: string
}

/** Numbers of kinds by revision, as features declare them. */
export type Numbers = ReadonlyMap<string, Readonly<Record<string, number>>>

/** A page per area: its file, its title and the folders that it covers; the first that fits takes an error. */
const areas: readonly (readonly [file: string, title: string, fits: RegExp])[] = [
  ['protocol', 'Messages, sessions and revisions', /^src\/(jsonrpc|revisions|engine)\//],
  ['transports', 'Transports', /^src\/transports\//],
  ['authorization', 'Authorization', /^src\/auth\//],
  ['stores', 'Stores', /^src\/stores\//],
  ['core', 'Schemas, state, transactions and grants', /^src\/core\//],
  ['mcp', 'Features of the protocol', /^src\/features\/mcp\//],
  [
    'calls',
    'Extensions: calls',
    /^src\/features\/reliability\/(confirmation|cost|davioe|idempotency|intent|permissions|problem)\//,
  ],
  ['extensions', 'Extensions: data, events and state', /^src\/features\/reliability\//],
  ['live', 'MCP Live', /^src\/features\/live\//],
  ['server-and-client', 'Server, client and testing', /^src\/(server|client|testing|recording)\//],
  ['host', 'Host', /^src\/host\//],
  ['policy', 'Policy', /^src\/policy\//],
  ['gateway', 'Gateway', /^src\/gateway\//],
  ['cli', 'Command line', /^src\/(cli|conformance)\//],
]

/** The conformance kit judges others and plays errors of others. */
const notErrors = /^src\/conformance\/(clients|hosts|live|base|extensions)\//

/** Lines of a table on one page; a longer one is continued on the next. */
const mostRows = 240

const folder = 'docs/reference/errors'
const header = '<!-- Generated from the source by `npm run fix`. -->'

/** One row of a table of messages. */
interface Row {
  readonly code: string
  readonly message: string
  readonly remedy: string
  readonly path: string
}

/** All pages, the index first. */
export function errorPages(found: readonly Found[], numbers: Numbers): readonly Page[] {
  const told = found.filter(({ path }) => !notErrors.test(path))
  const pages = areas.flatMap(([file, title, fits], at) => {
    const rows = rowsOf(told.filter(({ path }) => areas.findIndex(each => each[2].test(path)) === at && fits.test(path)))
    const parts = Math.max(1, Math.ceil(rows.length / mostRows))
    return Array.from({ length: parts }, (_, part) => {
      const own = rows.slice(part * mostRows, (part + 1) * mostRows)
      const suffix = part === 0 ? '' : `-${part + 1}`
      return { file: `${file}${suffix}`, title: part === 0 ? title : `${title}, part ${part + 1}`, rows: own }
    })
  })
  const places = new Map<string, string[]>()
  for (const { file, rows } of pages)
    for (const code of new Set(rows.map(row => row.code))) places.set(code, [...(places.get(code) ?? []), file])
  return [
    { path: 'docs/errors.md', text: index(places, pages, numbers) },
    { path: `${folder}/codes.md`, text: otherCodes(places) },
    ...pages.map(({ file, title, rows }) => ({ path: `${folder}/${file}.md`, text: areaPage(title, rows) })),
  ]
}

/** Codes that nobody has explained, and explanations of what is no longer there. */
export function meaningFaults(found: readonly Found[], numbers: Numbers): readonly string[] {
  const file = 'scripts/errors/meanings.ts'
  const used = new Set([...found.flatMap(each => codesOf(each)), ...numbers.keys(), ...Object.keys(common())])
  const typed = new Map(found.flatMap(each => codesOf(each).map(code => [code, each] as const)))
  const known = { ...problemMeanings, ...kindMeanings, ...classMeanings }
  const missing = [...typed].filter(
    ([code, { type }]) => type !== undefined && needsMeaning(type) && code !== type && !Object.hasOwn(known, code),
  )
  return [
    ...missing.map(([code, { path, line }]) => `${path}:${line}: ${code} has no meaning in ${file}`),
    ...Object.keys(known)
      .filter(code => !used.has(code))
      .map(code => `${file}: ${code} is the code of no error; remove it`),
  ]
}

function needsMeaning(type: string): boolean {
  return /^(Problem|McpError|ConnectionError|AuthorizationError|OutboundError|StoreError)$/.test(type)
}

/** The codes of an error as the tables show them. */
function codesOf({ type, code, rule, status }: Found): readonly string[] {
  const codes = code?.split(' / ') ?? []
  if (type === 'Problem' || type === 'McpError' || type === 'TooDeep') return codes.length === 0 ? [type] : codes
  if (type !== undefined) return codes.length === 0 ? [type] : codes.map(each => `${type}: ${each}`)
  const named = codes.filter(each => !/^-?\d+$/.test(each))
  if (named.length > 0) return named
  if (status !== undefined && /^\d{3}$/.test(status)) return [`HTTP ${status}`]
  return [rule ?? codes[0] ?? 'configuration']
}

function rowsOf(found: readonly Found[]): readonly Row[] {
  const rows = new Map<string, Row>()
  for (const each of found) {
    if (/[:,]$/.test(each.message.trim())) continue
    const row = {
      code: codesOf(each).join(', '),
      message: each.message.trim(),
      remedy: each.remedy ?? '',
      path: each.path.replace(/^src\/|\.ts$/g, ''),
    }
    const key = `${row.code}\n${row.message}\n${row.remedy}`
    if (!rows.has(key)) rows.set(key, row)
  }
  return [...rows.values()].sort((a, b) => order(a.code, b.code) || order(a.message, b.message) || order(a.remedy, b.remedy))
}

function areaPage(title: string, rows: readonly Row[]): string {
  const about =
    'Every message of this area by code. `{…}` stands for a value. The last column names the file below `src/`. ' +
    'The [index](../../errors.md) explains the codes.'
  const table = rows.map(({ code, message, remedy, path }) => [ticked(code), cell(message), cell(remedy), `\`${path}\``])
  return `# Errors: ${title}\n\n${about}\n\n${header}\n\n${tableText(['code', 'message', 'what to do', 'from'], table)}\n`
}

function index(
  places: ReadonlyMap<string, readonly string[]>,
  pages: readonly { readonly file: string; readonly title: string; readonly rows: readonly Row[] }[],
  numbers: Numbers,
): string {
  const where = (code: string): string => linksTo(code, places, 'reference/errors/')
  const problems = Object.entries(problemMeanings).map(([code, [who, meaning]]) => {
    const { category, retryable } = problem(code, '')
    return [`\`${code}\``, `\`${category}\``, retryable ? 'yes' : retryText(category), whoText(who), meaning, where(code)]
  })
  const kinds = Object.entries(kindMeanings).map(([kind, [who, meaning]]) => [
    `\`${kind}\``,
    numberText(kind, numbers),
    statusText(kind),
    whoText(who),
    meaning,
    where(kind),
  ])
  const classes = Object.entries(classMeanings).map(([code, [who, meaning]]: [string, Meaning]) => [
    ticked(code),
    whoText(who),
    meaning,
    where(code),
  ])
  const areaRows = pages.map(({ file, title, rows }) => [`[${title}](reference/errors/${file}.md)`, `${rows.length}`])
  return [
    '# Error reference',
    'Every error that you can meet, by code. The pages at the end list all messages with what to do. ' +
      '[Errors and problems](guide/errors.md) explains how errors are thrown, sent and retried.',
    header,
    '## Problems',
    'A problem has a `code` and a `category`. The category decides whether a retry can help.',
    tableText(['code', 'category', 'retry', 'who can act', 'meaning', 'messages'], problems),
    '## Protocol errors',
    'An `McpError` has a `kind`. On the wire it is a JSON-RPC error with a number, which depends on the revision. Where HTTP has a ' +
      'status for it, the status is in the table; otherwise it is 200. Errors without a number are thrown locally and never sent.',
    tableText(['kind', 'number', 'HTTP status', 'who can act', 'meaning', 'messages'], kinds),
    '## Connections, authorization, stores and outbound requests',
    'These classes have a `kind`; an `AuthorizationError` has a `rule`.',
    tableText(['class and kind', 'who can act', 'meaning', 'messages'], classes),
    '## Other codes and classes',
    'Decisions and notices of hosts and gateways carry a `code` and a `fix`. `TypeError` and `RangeError` report a mistake in code or ' +
      'configuration. A `CliError` ends a command. [Their page](reference/errors/codes.md) lists them.',
    '## Messages by area',
    tableText(['area', 'messages'], areaRows),
    '',
  ]
    .join('\n\n')
    .trimEnd()
    .concat('\n')
}

/** Codes and classes that the index does not explain. */
function otherCodes(places: ReadonlyMap<string, readonly string[]>): string {
  const explained = new Set([problemMeanings, kindMeanings, classMeanings].flatMap(each => Object.keys(each)))
  const others = [...new Set([...places.keys()].flatMap(code => code.split(', ')))].filter(code => !explained.has(code))
  const rows = others.sort(order).map(code => [ticked(code), linksTo(code, places, '')])
  const about =
    'Codes of decisions and notices, classes without a code, and rules. The [index](../../errors.md) explains the others.'
  return `# Errors: other codes\n\n${about}\n\n${header}\n\n${tableText(['code', 'messages'], rows)}\n`
}

/** Links to the pages on which a code stands. */
function linksTo(code: string, places: ReadonlyMap<string, readonly string[]>, path: string): string {
  const files = [...places].flatMap(([each, all]) => (each.split(', ').includes(code) ? all : []))
  return [...new Set(files)].map(file => `[${file}](${path}${file}.md)`).join(', ')
}

function retryText(category: string): string {
  if (category === 'invalid_input') return 'after changes'
  return category === 'auth_required' ? 'with more rights' : 'no'
}

function whoText(who: Who): string {
  return {
    caller: 'caller',
    user: 'user',
    operator: 'operator',
    author: 'author of the program',
    peer: 'author of the other side',
  }[who]
}

/** The number at most revisions, then those at which it differs. */
function numberText(kind: string, numbers: Numbers): string {
  const own = numbers.get(kind)
  if (own === undefined && !Object.hasOwn(common(), kind)) return ''
  const all = revisions.map(
    revision =>
      [revision.id, own === undefined ? revision.errors[kind as CommonKind] : (own[revision.id] ?? own['default'])] as const,
  )
  const counts = new Map<number, string[]>()
  for (const [id, number] of all) if (number !== undefined) counts.set(number, [...(counts.get(number) ?? []), id])
  const [[first] = [], ...rest] = [...counts].sort((a, b) => b[1].length - a[1].length)
  return [`${first ?? ''}`, ...rest.map(([number, ids]) => `${number} (${ids.join(', ')})`)].join('; ')
}

function statusText(kind: string): string {
  const statuses = revisions.map(({ id, http }) => [id, http.status[kind as CommonKind]] as const)
  const with_ = statuses.flatMap(([id, status]) => (status === undefined ? [] : [[id, status] as const]))
  const [first] = with_
  if (first === undefined) return ''
  return with_.length === statuses.length ? `${first[1]}` : `${first[1]} (${with_.map(([id]) => id).join(', ')})`
}

/** Kinds that every revision numbers. */
function common(): Readonly<Record<string, number>> {
  return revisions[0]?.errors ?? {}
}

function ticked(code: string): string {
  return code
    .split(', ')
    .map(each => `\`${each}\``)
    .join(', ')
}

/** Text of a cell: no line breaks, bars or markup. */
function cell(text: string): string {
  return text
    .replace(/\s+/g, ' ')
    .replace(/[\\|<>[\]*_`]/g, '\\$&')
    .trim()
}

function tableText(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`.replace(/ {2,}/g, ' ')
  return [line(head), line(head.map(() => '---')), ...rows.map(line)].join('\n')
}

function order(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}
