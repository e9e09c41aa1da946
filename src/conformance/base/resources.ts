/** Reading resources, by URI and by template, and watching them. */
import { hasResult, isEmpty, isFault, isRefused, isResult, type PeerAnswer } from '../calls.ts'
import { official, sessions, table } from '../define.ts'
import { type Expectations, firstFault, is, listIn, objectIn, objectsIn, should } from '../expectations.ts'
import { capability, peerHas, resource, tool } from '../needs.ts'
import type { Json, Scenario } from '../scenario.ts'
import { callTool, send, settle, step } from '../steps.ts'
import { contentsFault } from './content.ts'

const row = table('base/resources/', {
  proves: ['MCP server/resources#reading-resources'],
  revisions: official,
  needs: [capability('resources')],
})
const watch = table('base/resources/', {
  proves: ['MCP server/resources#subscriptions'],
  revisions: sessions,
  needs: [capability('resources.subscribe')],
  open: { fresh: true },
})
const watched = 'test://watched-resource'
const change = 'test_trigger_resource_update'
const update = 'notifications/resources/updated'
const listsAny = peerHas(peer => peer.resources.length > 0, 'the server lists no resources')
const template = 'test://template/{id}/data'
const hasTemplate = peerHas(
  peer => peer.templates.some(one => one.uriTemplate === template),
  `the server has no template ${template}`,
)

const isWhole: Expectations<PeerAnswer> = {
  'the result must have the list contents': hasResult({ contents: Array.isArray }),
  'all contents must be complete': ({ result }) => firstFault(listIn(result, 'contents'), contentsFault),
}
const holdsMember = (member: string) => (it: PeerAnswer) => objectsIn(it.result, 'contents').some(one => is.string(one[member]))
/** Reads a resource of conformance suites. */
const read = (uri: string) => step(x => x.ask('resources/read', { uri }), resource(uri))
/** Waits whether an update comes, and gives all that have come. */
const updatesWithin = (ms: number) => step(x => x.peer.hears(update, ms).then(() => x.peer.heard(update)))

/** Reading resources, and subscribing to them. */
export const resourceScenarios: readonly Scenario[] = [
  row('read-text', 'a text is read as text').by([
    read('test://static-text').expect({ ...isWhole, 'the contents must hold a text': holdsMember('text') }),
  ]),
  row('read-binary', 'bytes are read as base64').by([
    read('test://static-binary').expect({ ...isWhole, 'the contents must hold a blob': holdsMember('blob') }),
  ]),
  row('read-template MCP server/resources#resource-templates', 'a URI made of a template can be read').by(hasTemplate, [
    send('resources/read', { uri: 'test://template/123/data' }).expect({
      ...isWhole,
      'the contents must be those of the id': ({ result }) => JSON.stringify(listIn(result, 'contents')).includes('123'),
    }),
  ]),
  row('read-listed', 'listed resources can be read').by(listsAny, [
    send('resources/read', ({ bench }) => ({ uri: String(bench.peer.resources[0]?.uri) })).expect({
      ...isWhole,
      'the contents of a listed resource must not be empty': ({ result }) => listIn(result, 'contents').length > 0,
    }),
  ]),
  row(
    'missing MCP server/resources#error-handling SEP-2164',
    'a resource that does not exist is an error, never empty contents',
  ).by([
    send('resources/read', { uri: 'vivarium-conformance://no/such/resource' }).expect({
      'a resource that does not exist must be refused with an error': isFault,
      'the error of a missing resource': should(({ code }, { modern }, says) => {
        const wanted = modern ? -32602 : -32002
        return code === wanted || `${says} should be ${wanted}, not ${code}`
      }),
    }),
  ]),
  row('without-uri', 'reading without a URI is refused').by([
    send('resources/read', {}).expect({ 'resources/read without a uri must be refused': isRefused }),
  ]),
  watch('subscribe', 'subscribing and unsubscribing are answered with empty results').by(
    listsAny,
    ['resources/subscribe', 'resources/unsubscribe'].map(method =>
      send(method, ({ bench }): Json => {
        const listed = bench.peer.resources.map(({ uri }) => String(uri))
        return { uri: listed.includes(watched) ? watched : (listed[0] ?? '') }
      }).expect({
        [`${method} must be answered with a result`]: isResult,
        [`the result of ${method} must be empty`]: isEmpty,
      }),
    ),
  ),
  watch('updated', 'subscribers are notified of a change, but not after they unsubscribed').by(
    [resource(watched), tool(change)],
    async x => {
      await x.ask('resources/subscribe', { uri: watched })
      await x.call(change)
      const frame = await x.peer.next(update)
      const { uri } = objectIn(frame.value, 'params')
      x.expect(is.string(uri), 'notifications/resources/updated must name the uri', [frame])
      await x.ask('resources/unsubscribe', { uri: watched })
      await x.peer.hears(update, 100)
      const before = x.peer.heard(update).length
      await x.call(change)
      await x.peer.settled()
      await x.peer.hears(update, 300)
      const heard = x.peer.heard(update)
      x.expect(heard.length === before, 'after unsubscribing no update must come', heard)
    },
  ),
  watch('not-subscribed', 'a client that did not subscribe is not notified').by(resource(watched), [
    callTool(change),
    settle,
    updatesWithin(300).expect({
      'updates must not be sent to those who did not subscribe': heard => heard.length === 0,
    }),
  ]),
]
