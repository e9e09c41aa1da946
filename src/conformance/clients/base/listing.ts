/** Lists in pages, lists without end, and lists with things in them that nobody may follow. */
import { type Play, RUN, testTool } from '../play.ts'
import { type ClientScenario, EVERY, STATELESS, scenario } from '../scenario.ts'
import { paramsOf } from '../stage/book.ts'

/** Opaque texts: who parses or trims them, or takes an empty one for none, gives them back changed. */
const CURSORS = ['page two/=?&', ' 3 ']
const fillers = (page: number) => [{ name: `filler-${page}`, description: 'Not wanted', inputSchema: { type: 'object' } }]

const pages: Play = {
  name: 'pages',
  steps: RUN,
  on: () => ({
    'tools/list': ({ params: { cursor } }) => {
      const page = cursor === undefined ? 0 : CURSORS.indexOf(String(cursor)) + 1
      const last = page === CURSORS.length
      return { tools: last ? [testTool] : fillers(page), ...(last ? {} : { nextCursor: CURSORS[page] }) }
    },
  }),
}

const emptyCursor: Play = {
  name: 'empty-cursor',
  steps: RUN,
  on: () => ({
    'tools/list': ({ params: { cursor } }) =>
      cursor === undefined ? { tools: fillers(0), nextCursor: '' } : { tools: [testTool] },
  }),
}

const endless: Play = {
  name: 'endless-list',
  steps: RUN,
  on: () => ({
    'tools/list': ({ book }) => ({ tools: [testTool], nextCursor: book.of('tools/list').length < 3_000 ? 'again' : 'still' }),
  }),
}

/** A schema that points to an address of this stage. */
const remote: Play = {
  name: 'remote-schema',
  steps: RUN,
  on: ({ origin }) => ({
    'tools/list': () => ({
      tools: [{ ...testTool, inputSchema: { type: 'object', properties: { a: { $ref: `${origin}/schema.json` } } } }],
    }),
  }),
}

export const listing: readonly ClientScenario[] = [
  scenario('client/lists/pages', 'Every page is asked for, with the cursor as it was given', pages, {
    proves: ['MCP server/utilities/pagination'],
    revisions: EVERY,
    check: (seen, { expect }) => {
      const asked = seen.requests('tools/list')
      const cursors = asked.map(said => paramsOf(said)['cursor'])
      expect(asked.length > 1, 'The client took the first page for the whole list', asked)
      for (const cursor of CURSORS)
        expect(cursors.includes(cursor), `The cursor ${JSON.stringify(cursor)} was not given back`, asked)
      expect(seen.calls('test-tool').length > 0, 'The tool of the last page was not found', seen.fromClient.slice(-2))
    },
  }),
  scenario('client/lists/empty-cursor', 'An empty cursor is a cursor: only its absence ends a list', emptyCursor, {
    proves: ['MCP 2026-07-28 server/utilities/pagination'],
    revisions: STATELESS,
    check: (seen, { expect }) => {
      const asked = seen.requests('tools/list')
      expect(
        asked.some(said => paramsOf(said)['cursor'] === ''),
        'The page behind the empty cursor was not asked for',
        asked,
      )
    },
  }),
  scenario('client/lists/endless', 'A list that gives the same cursor for ever is given up', endless, {
    proves: ['MCP server/utilities/pagination'],
    revisions: EVERY,
    check: (seen, { expect }) => {
      const asked = seen.requests('tools/list').length
      expect(!seen.end.timedOut && asked < 2_000, `The client was still asking after ${asked} pages`)
    },
  }),
  scenario('client/lists/no-dereference', 'A schema is not looked up on the network', remote, {
    proves: ['MCP basic#json-schema-usage'],
    revisions: EVERY,
    check: (seen, { expect }) => {
      expect(seen.requests('tools/list').length > 0, 'The client did not list the tools')
      expect(seen.visits('GET', '/schema.json').length === 0, 'The client fetched the address of a $ref')
    },
  }),
]
