/** Lists and resources that change: heard, and read again. */
import { isRecord } from '../../../jsonrpc/message.ts'
import { type Play, testTool } from '../play.ts'
import { type ClientScenario, EVERY, SESSIONS, STATELESS, scenario } from '../scenario.ts'
import type { Seen } from '../seen.ts'
import { paramsOf, type Said } from '../stage/book.ts'
import type { Stage } from '../stage/open.ts'
import { type Call, type Handler, silence } from '../stage/script.ts'

const SUBSCRIPTION = 'io.modelcontextprotocol/subscriptionId'
const URI = 'test://watched'

/** Answers a listen as the stateless wires say, and gives what tells on it. */
function listening(granted: (filter: Call['params']) => Call['params'], then: (tell: Call['tell'], call: Call) => void): Handler {
  return call => {
    const tag = { [SUBSCRIPTION]: call.revision === '2026-07-28' ? call.id : String(call.id) }
    const tell: Call['tell'] = (method, params) => call.tell(method, { ...params, _meta: tag })
    const filter = isRecord(call.params['notifications']) ? call.params['notifications'] : {}
    tell('notifications/subscriptions/acknowledged', { notifications: granted(filter) })
    then(tell, call)
    return silence
  }
}

const changed: Play = {
  name: 'list-changed',
  steps: [
    { do: 'list', what: 'tools' },
    { do: 'watch', what: 'tools', as: 'watch' },
  ],
  capabilities: () => ({ tools: { listChanged: true } }),
  on: stage => ({
    'tools/list': async ({ book }) => {
      const asked = book.of('tools/list').length
      // Session servers say it unasked, when the client has had time to listen.
      if (asked === 1 && !STATELESS.includes(stage.revision)) void later(stage)
      return { tools: asked === 1 ? [testTool] : [testTool, { ...testTool, name: 'new-tool' }] }
    },
    'subscriptions/listen': listening(
      filter => ({ toolsListChanged: filter['toolsListChanged'] === true }),
      tell => tell('notifications/tools/list_changed', {}),
    ),
  }),
}

/** Once it is said to somebody who hears it: over HTTP the stream may come late. */
async function later(stage: Stage): Promise<void> {
  for (let tries = 0; tries < 40; tries++) {
    await new Promise(resolve => setTimeout(resolve, 100))
    if (stage.unasked({ method: 'notifications/tools/list_changed' }) && tries > 1) return
  }
}

const updated: Play = {
  name: 'resource-updated',
  steps: [{ do: 'watch-resource', uri: URI, as: 'watch' }],
  capabilities: () => ({ resources: { subscribe: true }, tools: {} }),
  on: stage => ({
    'resources/list': () => ({ resources: [{ uri: URI, name: 'watched' }] }),
    'resources/read': () => ({ contents: [{ uri: URI, text: 'now' }] }),
    'resources/subscribe': () => {
      setTimeout(() => stage.unasked({ method: 'notifications/resources/updated', params: { uri: URI } }), 100)
      return {}
    },
    'resources/unsubscribe': () => ({}),
    'subscriptions/listen': listening(
      filter => ({ resourceSubscriptions: filter['resourceSubscriptions'] }),
      tell => tell('notifications/resources/updated', { uri: URI }),
    ),
  }),
}

function listens(seen: Seen): readonly Said[] {
  return seen.requests('subscriptions/listen')
}

export const changing: readonly ClientScenario[] = [
  scenario('client/changes/lists-again', 'A list that was announced as changed is read again', changed, {
    proves: ['MCP server/tools#list-changed-notification'],
    revisions: EVERY,
    check: (seen, { expect, skip }) => {
      const announced = seen.book.said.find(
        ({ from, frame }) => from === 'server' && frame?.['method'] === 'notifications/tools/list_changed',
      )
      if (seen.stateless && listens(seen).length === 0) skip('the client does not listen for changes')
      if (announced === undefined) return skip('the client opened no stream on which the change could be told')
      const again = seen.requests('tools/list').filter(({ at }) => at >= announced.at)
      if (again.length === 0 && seen.reported.size === 0 && seen.calls().length > 0) skip('the client does not follow changes')
      expect(again.length > 0, 'The list was not read again after the change', [announced, ...seen.fromClient.slice(-2)])
    },
  }),
  scenario('client/changes/listen', 'A listen says what it wants to hear, and ends with its stream', changed, {
    proves: ['MCP 2026-07-28 basic/versioning'],
    revisions: STATELESS,
    check: (seen, { expect, skip }) => {
      const [listen] = listens(seen)
      if (listen === undefined) return skip('the client does not listen for changes')
      const filter = paramsOf(listen)['notifications']
      expect(isRecord(filter) && filter['toolsListChanged'] === true, 'notifications must say toolsListChanged: true', [listen])
      const told = seen.notices('notifications/cancelled').some(notice => paramsOf(notice)['requestId'] === listen.frame?.['id'])
      const left = seen.book.hungUp.some(({ line }) => line === listen.line)
      expect(told || left, 'The client did not let go of its listen', [listen])
    },
  }),
  scenario(
    'client/changes/subscribes',
    'A resource that is watched is subscribed to, and read again when it was updated',
    updated,
    {
      proves: ['MCP server/resources#subscriptions'],
      revisions: EVERY,
      check: (seen, { expect, skip }) => {
        const asked = seen.stateless ? listens(seen) : seen.requests('resources/subscribe')
        const [first] = asked
        if (first === undefined) return skip('the client did not watch the resource')
        if (seen.stateless) {
          const filter = paramsOf(first)['notifications']
          const uris = isRecord(filter) ? filter['resourceSubscriptions'] : undefined
          expect(Array.isArray(uris) && uris.includes(URI), 'resourceSubscriptions must name the resource', [first])
        } else expect(paramsOf(first)['uri'] === URI, 'The subscription must name the resource', [first])
        const read = seen.requests('resources/read').filter(({ at }) => at >= first.at)
        expect(read.length > 0, 'The resource was not read again after its update', seen.fromClient.slice(-3))
      },
    },
  ),
  scenario('client/changes/unsubscribes', 'A resource that is no longer watched is given up', updated, {
    proves: ['MCP server/resources#subscriptions'],
    revisions: SESSIONS,
    check: (seen, { warn, skip }) => {
      if (seen.requests('resources/subscribe').length === 0) skip('the client did not watch the resource')
      if (seen.requests('resources/unsubscribe').length === 0) warn('The client left its subscription behind')
    },
  }),
]
