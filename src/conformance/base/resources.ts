/** Reading resources, by URI and by template, and watching them. */
import { isRecord } from '../../jsonrpc/message.ts'
import { capability, codeIn, listIn, type Need, official, resultIn, scenario, sessions, tool } from '../define.ts'
import type { Bench, Scenario } from '../scenario.ts'
import type { Answer } from '../wire/raw-peer.ts'
import { contentsFault } from './content.ts'

const reading = ['MCP server/resources#reading-resources']
const watching = ['MCP server/resources#subscriptions']
const watched = 'test://watched-resource'

/** A resource of conformance suites, listed or not: the template is not among the resources. */
function resource(uri: string): Need {
  return peer => (peer.resources.some(one => one['uri'] === uri) ? undefined : `it has no resource ${uri}`)
}

async function read(bench: Bench, uri: string): Promise<readonly unknown[]> {
  const peer = await bench.open()
  const answer = await peer.request('resources/read', { uri })
  const contents = listIn(answer.result, 'contents')
  bench.expect(isRecord(answer.result) && Array.isArray(answer.result['contents']), 'the result must have the list contents', [
    answer.frame,
  ])
  for (const one of contents) {
    const fault = contentsFault(one)
    bench.expect(fault === undefined, String(fault), [answer.frame])
  }
  return contents
}

/** Reading what is not there. */
async function readMissing(bench: Bench): Promise<Answer> {
  const peer = await bench.open()
  return peer.request('resources/read', { uri: 'vivarium-conformance://no/such/resource' })
}

export const resourceScenarios: readonly Scenario[] = [
  scenario('base/resources/read-text', {
    title: 'a text is read as text',
    proves: reading,
    revisions: official,
    needs: [capability('resources'), resource('test://static-text')],
    async run(bench) {
      const contents = await read(bench, 'test://static-text')
      bench.expect(
        contents.some(one => isRecord(one) && typeof one['text'] === 'string'),
        'the contents must hold a text',
      )
    },
  }),
  scenario('base/resources/read-binary', {
    title: 'bytes are read as base64',
    proves: reading,
    revisions: official,
    needs: [capability('resources'), resource('test://static-binary')],
    async run(bench) {
      const contents = await read(bench, 'test://static-binary')
      bench.expect(
        contents.some(one => isRecord(one) && typeof one['blob'] === 'string'),
        'the contents must hold a blob',
      )
    },
  }),
  scenario('base/resources/read-template', {
    title: 'a URI made of a template can be read',
    proves: ['MCP server/resources#resource-templates'],
    revisions: official,
    needs: [
      capability('resources'),
      peer =>
        peer.templates.some(one => one['uriTemplate'] === 'test://template/{id}/data')
          ? undefined
          : 'it has no template test://template/{id}/data',
    ],
    async run(bench) {
      const contents = await read(bench, 'test://template/123/data')
      bench.expect(JSON.stringify(contents ?? []).includes('123'), 'the contents must be those of the id')
    },
  }),
  scenario('base/resources/read-listed', {
    title: 'what is listed can be read',
    proves: reading,
    revisions: official,
    needs: [capability('resources'), peer => (peer.resources.length === 0 ? 'it lists no resources' : undefined)],
    async run(bench) {
      const uri = String(bench.peer.resources[0]?.['uri'])
      const contents = await read(bench, uri)
      bench.expect(contents.length > 0, 'the contents of a listed resource must not be empty')
    },
  }),
  scenario('base/resources/missing', {
    title: 'a resource that does not exist is an error, never empty contents',
    proves: ['MCP server/resources#error-handling', 'SEP-2164'],
    revisions: official,
    needs: [capability('resources')],
    async run(bench) {
      const answer = await readMissing(bench)
      bench.expect(answer.error !== undefined, 'a resource that does not exist must be refused with an error', [answer.frame])
      const code = bench.revision === '2026-07-28' ? -32602 : -32002
      if (codeIn(answer) !== code) bench.warn(`the error of a missing resource should be ${code}, not ${answer.error?.code}`)
    },
  }),
  scenario('base/resources/without-uri', {
    title: 'reading without a URI is refused',
    proves: reading,
    revisions: official,
    needs: [capability('resources')],
    async run(bench) {
      const peer = await bench.open()
      const answer = await peer.request('resources/read', {})
      bench.expect(answer.error !== undefined || (answer.status ?? 0) >= 400, 'resources/read without a uri must be refused', [
        answer.frame,
      ])
    },
  }),
  scenario('base/resources/subscribe', {
    title: 'subscribing and unsubscribing are answered with empty results',
    proves: watching,
    revisions: sessions,
    needs: [capability('resources.subscribe'), peer => (peer.resources.length === 0 ? 'it lists no resources' : undefined)],
    async run(bench) {
      const listed = bench.peer.resources.map(({ uri }) => String(uri))
      const uri = listed.includes(watched) ? watched : (listed[0] ?? '')
      const peer = await bench.open({ fresh: true })
      for (const method of ['resources/subscribe', 'resources/unsubscribe']) {
        const answer = await peer.request(method, { uri })
        bench.expect(isRecord(answer.result), `${method} must be answered with a result`, [answer.frame])
        const members = Object.keys(resultIn(answer)).filter(name => name !== '_meta')
        bench.expect(members.length === 0, `the result of ${method} must be empty`, [answer.frame])
      }
    },
  }),
  scenario('base/resources/updated', {
    title: 'those who subscribed hear of a change, and no longer after they unsubscribed',
    proves: watching,
    revisions: sessions,
    needs: [capability('resources.subscribe'), resource(watched), tool('test_trigger_resource_update')],
    async run(bench) {
      const peer = await bench.open({ fresh: true })
      const isUpdate = (message: Record<string, unknown>): boolean => message['method'] === 'notifications/resources/updated'
      await peer.request('resources/subscribe', { uri: watched })
      await peer.request('tools/call', { name: 'test_trigger_resource_update' })
      const frame = await peer.next('notifications/resources/updated')
      const params = isRecord(frame.value) && isRecord(frame.value['params']) ? frame.value['params'] : {}
      bench.expect(typeof params['uri'] === 'string', 'notifications/resources/updated must name the uri', [frame])
      await peer.request('resources/unsubscribe', { uri: watched })
      await peer.hears(isUpdate, 100)
      const before = peer.heard(isUpdate).length
      await peer.request('tools/call', { name: 'test_trigger_resource_update' })
      await peer.settled()
      await peer.hears(isUpdate, 300)
      bench.expect(peer.heard(isUpdate).length === before, 'after unsubscribing no update must come', peer.heard(isUpdate))
    },
  }),
  scenario('base/resources/not-subscribed', {
    title: 'who did not subscribe hears of no change',
    proves: watching,
    revisions: sessions,
    needs: [capability('resources.subscribe'), resource(watched), tool('test_trigger_resource_update')],
    async run(bench) {
      const peer = await bench.open({ fresh: true })
      await peer.request('tools/call', { name: 'test_trigger_resource_update' })
      await peer.settled()
      const came = await peer.hears('notifications/resources/updated', 300)
      bench.expect(!came, 'updates must not be sent to those who did not subscribe')
    },
  }),
]
