/** The four lists: shapes of their items, pages, cursors that are none. */
import { isRecord } from '../../jsonrpc/message.ts'
import { capability, codeIn, listIn, official, resultIn, scenario, since } from '../define.ts'
import type { Bench, Json, Scenario } from '../scenario.ts'
import type { Answer } from '../wire/raw-peer.ts'

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
  (item: Json): string | undefined => {
    const wrong = members.find(member => typeof item[member] !== 'string')
    return wrong === undefined ? undefined : `${wrong} must be a string`
  }

function toolFault(item: Json): string | undefined {
  if (typeof item['name'] !== 'string' || item['name'] === '') return 'name must be a string'
  const { inputSchema, description, annotations } = item
  if (!isRecord(inputSchema) || inputSchema['type'] !== 'object') return 'inputSchema must be a schema of type "object"'
  if (description !== undefined && typeof description !== 'string') return 'description must be a string'
  return annotations === undefined || isRecord(annotations) ? undefined : 'annotations must be an object'
}

function promptFault(item: Json): string | undefined {
  const named = strings('name')(item)
  if (named !== undefined || item['arguments'] === undefined) return named
  const all = listIn(item, 'arguments')
  const isList = Array.isArray(item['arguments']) && all.every(one => isRecord(one) && typeof one['name'] === 'string')
  return isList ? undefined : 'arguments must be a list of objects with names'
}

const kinds: readonly ListKind[] = [
  { name: 'tools', method: 'tools/list', member: 'tools', capability: 'tools', key: 'name', fault: toolFault },
  {
    name: 'resources',
    method: 'resources/list',
    member: 'resources',
    capability: 'resources',
    key: 'uri',
    fault: strings('uri', 'name'),
  },
  {
    name: 'templates',
    method: 'resources/templates/list',
    member: 'resourceTemplates',
    capability: 'resources',
    key: 'uriTemplate',
    fault: strings('uriTemplate', 'name'),
  },
  { name: 'prompts', method: 'prompts/list', member: 'prompts', capability: 'prompts', key: 'name', fault: promptFault },
]

const mostPages = 100

/** Follows the cursors from the first page. */
async function pagesOf(bench: Bench, { method, member }: ListKind): Promise<readonly Answer[]> {
  const peer = await bench.open()
  const pages: Answer[] = []
  let cursor: unknown
  do {
    const page = await peer.request(method, cursor === undefined ? {} : { cursor })
    bench.expect(Array.isArray(resultIn(page)[member]), `the result of ${method} must have the list ${member}`, [page.frame])
    pages.push(page)
    cursor = resultIn(page)['nextCursor']
    bench.expect(['undefined', 'string'].includes(typeof cursor), 'nextCursor must be a string', [page.frame])
    bench.expect(pages.length < mostPages, `the list must end; it has more than ${mostPages} pages`)
  } while (typeof cursor === 'string')
  return pages
}

/** A template may be refused where resources are offered without them: that is said by -32601. */
async function hasList(bench: Bench, { method, name }: ListKind): Promise<void> {
  if (name !== 'templates') return
  const peer = await bench.open()
  if (codeIn(await peer.request(method)) === -32601) bench.leave('it has no resource templates')
}

function listScenarios(kind: ListKind): readonly Scenario[] {
  const proves = [`MCP server/${kind.name === 'templates' ? 'resources' : kind.name}#listing`]
  const needs = [capability(kind.capability)]
  return [
    scenario(`base/${kind.name}/list`, {
      title: `${kind.method} lists items of the right shape`,
      proves,
      revisions: official,
      needs,
      async run(bench) {
        await hasList(bench, kind)
        for (const page of await pagesOf(bench, kind)) {
          for (const item of listIn(page.result, kind.member)) {
            const fault = isRecord(item) ? kind.fault(item) : 'every item must be an object'
            bench.expect(fault === undefined, `in ${kind.method}: ${fault}`, [page.frame])
          }
        }
      },
    }),
    scenario(`base/${kind.name}/list-unique`, {
      title: `${kind.method} lists nothing twice`,
      proves,
      revisions: official,
      needs,
      async run(bench) {
        await hasList(bench, kind)
        const seen = new Set<unknown>()
        for (const page of await pagesOf(bench, kind)) {
          for (const item of listIn(page.result, kind.member).filter(isRecord)) {
            bench.expect(!seen.has(item[kind.key]), `${kind.key} ${JSON.stringify(item[kind.key])} is listed twice`, [page.frame])
            seen.add(item[kind.key])
          }
        }
      },
    }),
    scenario(`base/${kind.name}/bad-cursor`, {
      title: `${kind.method} refuses a cursor that is none`,
      proves: ['MCP server/utilities/pagination#error-handling'],
      revisions: official,
      needs,
      async run(bench) {
        await hasList(bench, kind)
        const peer = await bench.open()
        const first = await peer.request(kind.method)
        const answer = await peer.request(kind.method, { cursor: 'vivarium-no-such-cursor' })
        if (codeIn(answer) === -32602) return
        if (resultIn(first)['nextCursor'] === undefined) bench.leave('it answers in one page and looks at no cursor')
        bench.warn('an invalid cursor should be refused with error -32602')
      },
    }),
    scenario(`base/${kind.name}/cursor-type`, {
      title: `${kind.method} does not take a number for a cursor`,
      proves: ['MCP server/utilities/pagination#request-format'],
      revisions: official,
      needs,
      async run(bench) {
        await hasList(bench, kind)
        const peer = await bench.open()
        const answer = await peer.request(kind.method, { cursor: 7 })
        bench.expect(answer.error !== undefined, 'a cursor that is no string must be refused', [answer.frame])
        if (codeIn(answer) !== -32602) bench.warn('invalid parameters should be refused with error -32602')
      },
    }),
  ]
}

const nameRule = /^[A-Za-z0-9_.-]{1,128}$/

export const listedScenarios: readonly Scenario[] = [
  ...kinds.flatMap(listScenarios),
  scenario('base/tools/names', {
    title: 'names of tools are made of letters, digits, "_", "-" and "."',
    proves: ['MCP 2025-11-25 server/tools#tool-names'],
    revisions: since('2025-11-25'),
    needs: [capability('tools')],
    async run(bench) {
      const odd = bench.peer.tools.map(({ name }) => String(name)).filter(name => !nameRule.test(name))
      if (odd.length > 0) bench.warn(`names that clients may not take: ${odd.slice(0, 5).join(', ')}`)
    },
  }),
  scenario('base/tools/stable-order', {
    title: 'tools come in the same order when asked twice',
    proves: ['MCP 2026-07-28 server/tools#listing'],
    revisions: ['2026-07-28'],
    needs: [capability('tools')],
    async run(bench) {
      const peer = await bench.open()
      const names = async (): Promise<string> =>
        JSON.stringify(
          listIn((await peer.request('tools/list')).result, 'tools').map(item => (isRecord(item) ? item['name'] : item)),
        )
      const first = await names()
      if (first !== (await names())) bench.warn('the order of tools should be stable')
    },
  }),
]
