/** The JSON-RPC envelope: ids of every kind, and frames that are no messages. */
import { isRecord } from '../../jsonrpc/message.ts'
import { every, official, scenario } from '../define.ts'
import type { Bench, Frame, Scenario } from '../scenario.ts'
import type { RawPeer } from '../wire/raw-peer.ts'
import { harmless, harmlessMethod } from './harmless.ts'

const ids: readonly (readonly [string, unknown, string])[] = [
  ['string', 'seven', 'a string'],
  ['zero', 0, 'zero'],
  ['big', 9_007_199_254_740_991, 'the largest safe integer'],
  ['negative', -7, 'a negative integer'],
  ['numeric-string', '7', 'a string of digits'],
  ['long', 'x'.repeat(200), 'a string of 200 characters'],
  ['unicode', 'ä/漢字/🙂', 'a string of any script'],
]

/** Sends a frame that must not be served, then sees that the connection goes on. */
async function mustNotServe(bench: Bench, text: string, what: string): Promise<void> {
  const peer = await bench.open({ listen: false })
  const { status } = await peer.send(text, { headers: headersFor(peer) })
  await peer.settled()
  const served = results(peer).slice(0, -1)
  bench.expect(served.length === 0, `${what} must not be answered with a result`, served)
  if (bench.carrier !== 'http') return
  bench.expect(
    status !== undefined && status >= 400 && status < 500,
    `${what} must be answered with HTTP status 4xx, not ${status}`,
  )
}

/** Over HTTP the headers of a right message, so that the body alone is wrong. */
function headersFor(peer: RawPeer): Record<string, string> {
  return peer.carrier === 'http' ? { 'mcp-method': harmlessMethod(peer.revision) } : {}
}

/** Answers with a result since the handshake. */
function results(peer: RawPeer): readonly Frame[] {
  const last = peer.frames.findLastIndex(({ way, value }) => way === 'in' && isRecord(value) && value['result'] === peer.hello)
  return peer.frames.slice(last + 1).filter(({ way, value }) => way === 'in' && isRecord(value) && 'result' in value)
}

const broken: readonly (readonly [string, string, string])[] = [
  ['not-json', '{"jsonrpc":"2.0","id":1,"method":"pi', 'text that is no JSON'],
  ['empty-object', '{}', 'an empty object'],
  ['number', '42', 'a number'],
  ['string', '"ping"', 'a string'],
  ['null', 'null', 'null'],
]

export const envelopeScenarios: readonly Scenario[] = [
  ...ids.map(([name, id, what]) =>
    scenario(`base/envelope/id-${name}`, {
      title: `an id that is ${what} comes back as it was, type included`,
      proves: ['JSON-RPC 5', 'MCP basic#requests'],
      revisions: every,
      async run(bench) {
        const peer = await bench.open()
        const answer = await peer.request(harmlessMethod(bench.revision), {}, { id })
        bench.expect(answer.result !== undefined, 'the request must be answered with a result', [answer.frame])
        const value = answer.frame?.value
        bench.expect(isRecord(value) && value['id'] === id, 'the id of the answer must be that of the request', [answer.frame])
      },
    }),
  ),
  scenario('base/envelope/id-null', {
    title: 'a request whose id is null is not served',
    proves: ['MCP basic#requests'],
    revisions: official,
    run: bench => mustNotServe(bench, JSON.stringify(harmless(bench.revision, null)), 'a request whose id is null'),
  }),
  scenario('base/envelope/id-object', {
    title: 'a request whose id is an object is not served',
    proves: ['MCP basic#requests'],
    revisions: official,
    run: bench => mustNotServe(bench, JSON.stringify(harmless(bench.revision, { a: 1 })), 'a request whose id is an object'),
  }),
  scenario('base/envelope/other-version', {
    title: 'a message of another JSON-RPC version is not served',
    proves: ['JSON-RPC 4'],
    revisions: official,
    run: bench =>
      mustNotServe(bench, JSON.stringify(harmless(bench.revision, 5, { jsonrpc: '1.0' })), 'a message of JSON-RPC 1.0'),
  }),
  scenario('base/envelope/array-params', {
    title: 'a request whose params are an array is not served',
    proves: ['MCP basic#requests'],
    revisions: official,
    run: bench =>
      mustNotServe(bench, JSON.stringify(harmless(bench.revision, 5, { params: ['x'] })), 'a request with params in an array'),
  }),
  ...broken.map(([name, text, what]) =>
    scenario(`base/envelope/${name}`, {
      title: `${what} is no message: it is not served, and the connection goes on`,
      proves: ['JSON-RPC 5.1'],
      revisions: every,
      run: bench => mustNotServe(bench, text, what),
    }),
  ),
  scenario('base/envelope/parse-error', {
    title: 'if text that is no JSON is answered, then with -32700',
    proves: ['JSON-RPC 5.1'],
    revisions: official,
    async run(bench) {
      const peer = await bench.open({ listen: false })
      const before = peer.frames.length
      await peer.send('{"jsonrpc":', { headers: headersFor(peer) })
      await peer.settled()
      const errors = peer.frames
        .slice(before)
        .filter(({ way, value }) => way === 'in' && isRecord(value) && isRecord(value['error']))
      for (const frame of errors) {
        const error = isRecord(frame.value) && isRecord(frame.value['error']) ? frame.value['error'] : {}
        bench.expect(error['code'] === -32700, 'text that is no JSON is a parse error (-32700)', [frame])
      }
    },
  }),
  scenario('base/envelope/unknown-notification', {
    title: 'a notification that nobody knows is ignored',
    proves: ['JSON-RPC 4.1'],
    revisions: every,
    async run(bench) {
      const peer = await bench.open({ listen: false })
      const before = peer.frames.length
      await peer.notify('notifications/vivarium/unknown', {})
      await peer.settled()
      if (bench.carrier === 'http') return
      const said = peer.frames.slice(before).filter(({ way, value }) => way === 'in' && isRecord(value) && 'error' in value)
      bench.expect(said.length === 0, 'a notification must not be answered', said)
    },
  }),
  scenario('base/envelope/unasked-response', {
    title: 'an answer to nothing does no harm',
    proves: ['JSON-RPC 5'],
    revisions: official,
    async run(bench) {
      const peer = await bench.open({ listen: false })
      await peer.send('{"jsonrpc":"2.0","id":"nobody-asked","result":{}}')
      await peer.settled()
    },
  }),
]
