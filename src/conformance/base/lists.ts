/** The four lists: shapes of their items, pages, cursors that are none; and how long results may be kept, and by whom. */
import { isRecord } from '../../jsonrpc/message.ts'
import { hasCode, hasResult, isFault, type PeerAnswer } from '../calls.ts'
import { official, since, table } from '../define.ts'
import { firstFault, is, listIn, objectIn, objectsIn, sameJson, should } from '../expectations.ts'
import { capability, type Need, peerHas } from '../needs.ts'
import type { Json, Scenario } from '../scenario.ts'
import { callTool, type ScenarioContext, send, step } from '../steps.ts'

interface ListKind {
  readonly name: string
  readonly method: string
  readonly member: string
  readonly capability: string
  /** What tells one item from another. */
  readonly key: string
  fault(item: Json): string | undefined
}

const strings =
  (...members: readonly string[]) =>
  (item: Json): string | undefined =>
    firstFault(members, member => !is.string(item[member]) && `${member} must be a string`)

function toolFault({ name, inputSchema, description, annotations }: Json): string | undefined {
  if (!is.word(name)) return 'name must be a string'
  if (objectIn(inputSchema).type !== 'object') return 'inputSchema must be a schema of type "object"'
  if (!is.optional(is.string)(description)) return 'description must be a string'
  return is.optional(isRecord)(annotations) ? undefined : 'annotations must be an object'
}

function promptFault(item: Json): string | undefined {
  const args = item.arguments
  const isList = is.optional(Array.isArray)(args) && listIn(args).every(one => is.string(objectIn(one).name))
  return strings('name')(item) ?? (isList ? undefined : 'arguments must be a list of objects with names')
}

const uris = { capability: 'resources', method: 'resources/list' }
const templates = { ...uris, method: 'resources/templates/list', member: 'resourceTemplates' }

const kinds: readonly ListKind[] = [
  { name: 'tools', method: 'tools/list', member: 'tools', capability: 'tools', key: 'name', fault: toolFault },
  { ...uris, name: 'resources', member: 'resources', key: 'uri', fault: strings('uri', 'name') },
  { ...templates, name: 'templates', key: 'uriTemplate', fault: strings('uriTemplate', 'name') },
  { name: 'prompts', method: 'prompts/list', member: 'prompts', capability: 'prompts', key: 'name', fault: promptFault },
]

const mostPages = 100

/** Follows the cursors from the first page. */
async function pagesOf(x: ScenarioContext, { method, member }: ListKind): Promise<readonly PeerAnswer[]> {
  const pages: PeerAnswer[] = []
  let cursor: unknown
  do {
    const page = await x.ask(method, cursor === undefined ? {} : { cursor })
    pages.push(page)
    cursor = page.result.nextCursor
    x.hold(page, {
      [`the result of ${method} must have the list ${member}`]: hasResult({ [member]: Array.isArray }),
      'nextCursor must be a string': hasResult({ nextCursor: is.optional(is.string) }),
      [`the list must end; it has more than ${mostPages} pages`]: () => pages.length < mostPages,
    })
  } while (is.string(cursor))
  return pages
}

/** A template may be refused where resources are offered without them: that is said by -32601. */
async function mustHaveList(x: ScenarioContext, { method, name }: ListKind): Promise<void> {
  if (name === 'templates' && (await x.ask(method)).code === -32601) x.leave('the server has no resource templates')
}

function listScenarios(kind: ListKind): readonly Scenario[] {
  const { name, method, member, key } = kind
  const listing = [`MCP server/${name === 'templates' ? 'resources' : name}#listing`]
  const row = table(`base/${name}/`, { proves: listing, revisions: official, needs: [capability(kind.capability)] })
  return [
    row('list', `${method} lists items of the right shape`).by(async x => {
      await mustHaveList(x, kind)
      for (const page of await pagesOf(x, kind))
        for (const item of listIn(page.result, member)) {
          const fault = isRecord(item) ? kind.fault(item) : 'every item must be an object'
          x.expect(fault === undefined, `in ${method}: ${fault}`, page.frames)
        }
    }),
    row('list-unique', `${method} lists nothing twice`).by(async x => {
      await mustHaveList(x, kind)
      const seen = new Set<unknown>()
      for (const page of await pagesOf(x, kind))
        for (const item of objectsIn(page.result, member)) {
          x.expect(!seen.has(item[key]), `${key} ${JSON.stringify(item[key])} is listed twice`, page.frames)
          seen.add(item[key])
        }
    }),
    row('bad-cursor MCP server/utilities/pagination#error-handling', `${method} refuses an invalid cursor`).by(async x => {
      await mustHaveList(x, kind)
      const first = await x.ask(method)
      const { code } = await x.ask(method, { cursor: 'vivarium-no-such-cursor' })
      if (code === -32602) return
      if (first.result.nextCursor === undefined) x.leave('the server answers in one page and ignores cursors')
      x.warn('an invalid cursor should be refused with error -32602')
    }),
    row('cursor-type MCP server/utilities/pagination#request-format', `${method} refuses a number as a cursor`).by(async x => {
      await mustHaveList(x, kind)
      x.hold(await x.ask(method, { cursor: 7 }), {
        'a cursor that is not a string must be refused': isFault,
        'invalid parameters should be refused with error -32602': should(hasCode(-32602)),
      })
    }),
  ]
}

const nameRule = /^[A-Za-z0-9_.-]{1,128}$/
const row = table('base/tools/', { needs: [capability('tools')] })
const namesIn = ({ result }: PeerAnswer): readonly unknown[] =>
  listIn(result, 'tools').map(item => (isRecord(item) ? item.name : item))

/** The lists of tools, resources, templates and prompts. */
export const listedScenarios: readonly Scenario[] = [
  ...kinds.flatMap(listScenarios),
  row('names MCP 2025-11-25 server/tools#tool-names', 'names of tools are made of letters, digits, "_", "-" and "."').by(
    { revisions: since('2025-11-25'), open: false },
    [
      step(({ bench }) => bench.peer.tools.map(({ name }) => String(name)).filter(name => !nameRule.test(name))).expect({
        'names that clients may refuse': should((odd, _, says) => odd.length === 0 || `${says}: ${odd.slice(0, 5).join(', ')}`),
      }),
    ],
  ),
  row('stable-order MCP 2026-07-28 server/tools#listing', 'tools come in the same order when asked twice').by(
    { revisions: ['2026-07-28'] },
    [
      send('tools/list'),
      send('tools/list').expect({
        'the order of tools should be stable': should((it, { was }) => sameJson(namesIn(it), namesIn(was(0)))),
      }),
    ],
  ),
]

const caching = table('base/caching/', {
  proves: ['MCP 2026-07-28 basic/utilities/caching', 'SEP-2549'],
  revisions: ['2026-07-28'],
})

const cached: readonly (readonly [string, ...Need[]])[] = [
  ['server/discover'],
  ['tools/list', capability('tools')],
  ['prompts/list', capability('prompts')],
  ['resources/list', capability('resources')],
  ['resources/templates/list', capability('resources')],
  ['resources/read', capability('resources'), peerHas(peer => peer.resources.length > 0, 'the server lists no resources')],
]

/** How long a result may be kept (2026-07-28). */
export const cachingScenarios: readonly Scenario[] = [
  ...cached.map(([method, ...needs]) =>
    caching(method.replaceAll('/', '-'), `the result of ${method} says how long it may be cached`).by(needs, [
      send(method, ({ bench }) => (method === 'resources/read' ? { uri: bench.peer.resources[0]?.uri } : {})).expect({
        'ttlMs must be an integer of at least 0': ({ result: { ttlMs } }) => is.count(ttlMs),
        'cacheScope must be public or private': hasResult({ cacheScope: is.oneOf('public', 'private') }),
      }),
    ]),
  ),
  caching('not-calls', 'the result of a call has no cache fields').by([
    callTool('test_simple_text').expect({ 'the result of tools/call must not have ttlMs': hasResult({ ttlMs: is.absent }) }),
  ]),
]
