/** Lists in pages, lists without end, what changes and is read again, and what is read by its name. */
import { official, sessions, stateless } from '../../define.ts'
import { listIn, objectIn, orSkip, should } from '../../expectations.ts'
import type { Json } from '../../scenario.ts'
import { isStateless, keys } from '../../wire/envelope.ts'
import { calls, first, params, reported, some, times, unvisited } from '../checks.ts'
import { clientTable } from '../define.ts'
import { listTools, plainSteps, play, reportedPlay, testTool } from '../play.ts'
import { type ClientRequest, type Handler, noAnswer } from '../script.ts'
import type { ScriptedServer } from '../server.ts'

/** Opaque texts: who parses or trims them, or takes an empty one for none, gives them back changed. */
const cursors = ['page two/=?&', ' 3 ']
const filler = (page: number) => [{ name: `filler-${page}`, description: 'Not wanted', inputSchema: { type: 'object' } }]

const pages = play('pages', {
  on: {
    'tools/list': ({ params: { cursor } }) => {
      const page = cursor === undefined ? 0 : cursors.indexOf(String(cursor)) + 1
      return page === cursors.length ? { tools: [testTool] } : { tools: filler(page), nextCursor: cursors[page] }
    },
  },
})

const emptyCursor = play('empty-cursor', {
  on: {
    'tools/list': ({ params: { cursor } }) =>
      cursor === undefined ? { tools: filler(0), nextCursor: '' } : { tools: [testTool] },
  },
})

const endless = play('endless-list', {
  on: { 'tools/list': ({ log }) => ({ tools: [testTool], nextCursor: log.of('tools/list').length < 3_000 ? 'again' : 'still' }) },
})

/** A schema that points to an address of this server. */
const remote = play('remote-schema', {
  on: ({ origin }) => {
    const inputSchema = { type: 'object', properties: { a: { $ref: `${origin}/schema.json` } } }
    return { 'tools/list': { tools: [{ ...testTool, inputSchema }] } }
  },
})

const listRow = clientTable('client/lists/', { revisions: official })

const listing = [
  listRow('pages MCP server/utilities/pagination', 'Every page is requested, with the cursor unchanged').by(pages, {
    'The client treated the first page as the whole list': times('tools/list', count => count > 1),
    'The cursors': seen => {
      const given = seen.requests('tools/list').map(({ params: { cursor } }) => cursor)
      const missing = cursors.find(cursor => !given.includes(cursor))
      return missing === undefined || `The cursor ${JSON.stringify(missing)} was not sent back`
    },
    'The tool of the last page was not found': some(calls),
  }),
  listRow(
    'empty-cursor MCP 2026-07-28 server/utilities/pagination',
    'An empty cursor is a cursor: only its absence ends a list',
  ).by(
    { play: emptyCursor, revisions: stateless },
    {
      'The page after the empty cursor was not requested': seen =>
        seen.requests('tools/list').some(({ params }) => params['cursor'] === ''),
    },
  ),
  listRow('endless MCP server/utilities/pagination', 'A list that repeats the same cursor endlessly is abandoned').by(endless, {
    'The end': seen => {
      const { length } = seen.requests('tools/list')
      return (!seen.end.timedOut && length < 2_000) || `The client still requested pages after ${length} pages`
    },
  }),
  listRow('no-dereference MCP basic#json-schema-usage', 'The client does not fetch schemas from the network').by(remote, {
    'The client did not list the tools': some('tools/list'),
    'The client fetched the address of a $ref': unvisited('/schema.json'),
  }),
]

// ── what changes ────────────────────────────────────────────────────────────────────────────────────────────────────

const watchedUri = 'test://watched'

/** Answers a listen as the stateless wires say: it grants what `granted` makes of the filter, and then tells one thing. */
function listening(granted: (filter: Json) => Json, method: string, told: Json): Handler {
  return ({ id, params, revision, tell }: ClientRequest) => {
    const _meta = { [keys.subscription]: revision === '2026-07-28' ? id : String(id) }
    tell('notifications/subscriptions/acknowledged', { notifications: granted(objectIn(params, 'notifications')), _meta })
    tell(method, { ...told, _meta })
    return noAnswer
  }
}

const listChanged = 'notifications/tools/list_changed'

const changed = play('list-changed', {
  steps: [listTools, { do: 'watch', what: 'tools', as: 'watch' }],
  capabilities: { tools: { listChanged: true } },
  on: server => ({
    'tools/list': ({ log }) => {
      const asked = log.of('tools/list').length
      // Session servers say it unasked, when the client has had time to listen.
      if (asked === 1 && !isStateless(server.revision)) void announceLater(server)
      return { tools: asked === 1 ? [testTool] : [testTool, { ...testTool, name: 'new-tool' }] }
    },
    'subscriptions/listen': listening(filter => ({ toolsListChanged: filter['toolsListChanged'] === true }), listChanged, {}),
  }),
})

/** Once it is said to somebody who hears it: over HTTP the stream may come late. */
async function announceLater(server: ScriptedServer): Promise<void> {
  for (let tries = 0; tries < 40; tries++) {
    await new Promise(resolve => setTimeout(resolve, 100))
    if (server.unasked({ method: listChanged }) && tries > 1) return
  }
}

const updated = play('resource-updated', {
  steps: [{ do: 'watch-resource', uri: watchedUri, as: 'watch' }],
  capabilities: { resources: { subscribe: true }, tools: {} },
  on: server => ({
    'resources/list': { resources: [{ uri: watchedUri, name: 'watched' }] },
    'resources/read': { contents: [{ uri: watchedUri, text: 'now' }] },
    'resources/subscribe': () => {
      setTimeout(() => server.unasked({ method: 'notifications/resources/updated', params: { uri: watchedUri } }), 100)
      return {}
    },
    'resources/unsubscribe': {},
    'subscriptions/listen': listening(
      ({ resourceSubscriptions }) => ({ resourceSubscriptions }),
      'notifications/resources/updated',
      { uri: watchedUri },
    ),
  }),
})

const changeRow = clientTable('client/changes/', { play: changed, revisions: official })
const inSessions = { play: updated, revisions: sessions }

const changing = [
  changeRow('lists-again MCP server/tools#list-changed-notification', 'A list that was announced as changed is read again').by(
    (seen, x) => {
      if (seen.stateless && seen.requests('subscriptions/listen').length === 0) x.leave('the client does not listen for changes')
      const announced = seen.log.messages.find(({ from, method }) => from === 'server' && method === listChanged)
      if (announced === undefined) return x.leave('the client opened no stream for notifications of the change')
      const again = seen.requests('tools/list').filter(({ at }) => at >= announced.at)
      if (again.length === 0 && seen.reported.size === 0 && seen.calls().length > 0) x.leave('the client does not follow changes')
      x.expect(again.length > 0, 'The list was not read again after the change', [announced, ...seen.fromClient.slice(-2)])
    },
  ),
  changeRow('listen MCP 2026-07-28 basic/versioning', 'A listen names its notifications, and ends with its stream').by(
    { revisions: stateless },
    {
      'the client does not listen for changes': orSkip(some('subscriptions/listen')),
      'notifications must say toolsListChanged: true': first(
        'subscriptions/listen',
        params({ notifications: { toolsListChanged: true } }),
      ),
      'The client did not close its listen request': first(
        'subscriptions/listen',
        ({ id, line }, seen) =>
          seen.notices('notifications/cancelled').some(({ params: { requestId } }) => requestId === id) ||
          seen.log.closed.some(one => one.line === line),
      ),
    },
  ),
  changeRow(
    'subscribes MCP server/resources#subscriptions',
    'A watched resource is subscribed to, and read again after an update',
  ).by(updated, (seen, { expect, leave }) => {
    const [asked] = seen.requests(seen.stateless ? 'subscriptions/listen' : 'resources/subscribe')
    if (asked === undefined) return leave('the client did not watch the resource')
    const uris = listIn(asked.params, 'notifications', 'resourceSubscriptions')
    if (seen.stateless) expect(uris.includes(watchedUri), 'resourceSubscriptions must name the resource', [asked])
    else expect(asked.params['uri'] === watchedUri, 'The subscription must name the resource', [asked])
    const read = seen.requests('resources/read').filter(({ at }) => at >= asked.at)
    expect(read.length > 0, 'The resource was not read again after its update', seen.fromClient.slice(-3))
  }),
  changeRow('unsubscribes MCP server/resources#subscriptions', 'A resource that is no longer watched is unsubscribed').by(
    inSessions,
    {
      'the client did not watch the resource': orSkip(some('resources/subscribe')),
      'The client did not unsubscribe': should(some('resources/unsubscribe')),
    },
  ),
]

// ── resources, prompts and completions, in the words of the revision ────────────────────────────────────────────────

const noteUri = 'test://notes/ä b'

const everything = reportedPlay('everything', {
  steps: [
    ...plainSteps,
    { do: 'list', what: 'resources' },
    { do: 'list', what: 'templates' },
    { do: 'read', uri: noteUri, as: 'read' },
    { do: 'list', what: 'prompts' },
    { do: 'prompt', name: 'test-prompt', arguments: { who: 'Ada' }, as: 'prompt' },
    { do: 'complete', prompt: 'test-prompt', argument: 'who', value: 'A', as: 'complete' },
  ],
  capabilities: revision => {
    const completions = revision === '2024-11-05' ? {} : { completions: {} }
    return { tools: {}, resources: {}, prompts: {}, ...completions }
  },
  on: {
    'resources/list': { resources: [{ uri: noteUri, name: 'notes' }] },
    'resources/templates/list': { resourceTemplates: [{ uriTemplate: 'test://notes/{name}', name: 'note' }] },
    'resources/read': { contents: [{ uri: noteUri, text: 'the note' }] },
    'prompts/list': { prompts: [{ name: 'test-prompt', arguments: [{ name: 'who', required: true }] }] },
    'prompts/get': { messages: [{ role: 'user', content: { type: 'text', text: 'Hello Ada' } }] },
    'completion/complete': { completion: { values: ['Ada'], total: 1 } },
  },
})

const useRow = clientTable('client/uses/', { play: everything, revisions: official })
const encodedUri = `=?base64?${Buffer.from(noteUri).toString('base64')}?=`

const using = [
  useRow('resources MCP basic#messages', 'A resource is read by its URI as it was listed').by({
    'the client reads no resources': orSkip(some('resources/read')),
    'The URI is not the one that was listed': first('resources/read', params({ uri: noteUri })),
    'The name in the header': first('resources/read', ({ headers }, { carrier, revision }) => {
      const encoded = revision !== '2026-07-28' || carrier !== 'http' || headers['mcp-name'] === encodedUri
      return encoded || `Mcp-Name must be the URI, encoded: ${encodedUri}`
    }),
    'The text': reported('read', ({ text, message }) => text === 'the note' || `The resource reads "${text ?? message}"`),
  }),
  useRow('prompts MCP basic#messages', 'A prompt is requested by its name, with string arguments').by({
    'the client uses no prompts': orSkip(some('prompts/get')),
    'The prompt must be asked for as the step says': first(
      'prompts/get',
      params({ name: 'test-prompt', arguments: { who: 'Ada' } }),
    ),
    'The text': reported('prompt', ({ text, message }) => text === 'Hello Ada' || `The prompt says "${text ?? message}"`),
  }),
  useRow('completion MCP server/utilities/completion', 'A completion names its reference and the typed prefix').by({
    'the client requests no completions': orSkip(some('completion/complete')),
    'ref must be the prompt': first('completion/complete', params({ ref: { type: 'ref/prompt', name: 'test-prompt' } })),
    'argument must have name and value': first('completion/complete', params({ argument: { name: 'who', value: 'A' } })),
  }),
]

/** Lists, changes, and what is read by its name. */
export const listScenarios = [...listing, ...changing, ...using]
