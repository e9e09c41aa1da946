/** What carriers other than HTTP must keep: lines on a pipe, the old pair, messages of a WebSocket. */
import { isRecord } from '../../jsonrpc/message.ts'
import { every, official, scenario, sessions } from '../define.ts'
import type { Bench, Scenario } from '../scenario.ts'
import { harmless, harmlessMethod } from '../wire/envelope.ts'

const stdio = ['MCP basic/transports#stdio']
const pair = ['MCP 2024-11-05 basic/transports#http-with-sse']

/** Bytes in pieces, as a slow writer sends them. */
async function inPieces(bench: Bench, pieces: readonly string[], id: unknown): Promise<void> {
  const peer = await bench.open()
  for (const piece of pieces) {
    await peer.child.write(piece)
    await new Promise(resolve => setTimeout(resolve, 20))
  }
  await peer.next(message => message['id'] === id && 'result' in message)
}

export const stdioScenarios: readonly Scenario[] = [
  scenario('base/stdio/only-messages', {
    title: 'nothing but messages comes on standard output',
    proves: stdio,
    revisions: every,
    carriers: ['stdio'],
    async run(bench) {
      const peer = await bench.open({ fresh: true })
      await peer.settled()
      await peer.request('vivarium/no-such-method')
      const odd = peer.frames.filter(({ way, value }) => {
        const messages = Array.isArray(value) ? value : [value]
        return way === 'in' && !messages.every(one => isRecord(one) && one['jsonrpc'] === '2.0')
      })
      bench.expect(odd.length === 0, 'every line of standard output must be a JSON-RPC message', odd)
    },
  }),
  scenario('base/stdio/pieces', {
    title: 'a line that comes in pieces is one message',
    proves: stdio,
    revisions: every,
    carriers: ['stdio'],
    run(bench) {
      const text = `${JSON.stringify(harmless(bench.revision, 'in-pieces'))}\n`
      const middle = Math.floor(text.length / 2)
      return inPieces(bench, [text.slice(0, middle), text.slice(middle, -1), '\n'], 'in-pieces')
    },
  }),
  scenario('base/stdio/two-at-once', {
    title: 'two lines that come at once are two messages',
    proves: stdio,
    revisions: every,
    carriers: ['stdio'],
    async run(bench) {
      const peer = await bench.open()
      const lines = ['one', 'two'].map(id => `${JSON.stringify(harmless(bench.revision, id))}\n`)
      await peer.child.write(lines.join(''))
      for (const id of ['one', 'two']) await peer.next(message => message['id'] === id && 'result' in message)
    },
  }),
  scenario('base/stdio/crlf', {
    title: 'a line that ends as on Windows is taken',
    proves: stdio,
    revisions: every,
    carriers: ['stdio'],
    run: bench => inPieces(bench, [`${JSON.stringify(harmless(bench.revision, 'crlf'))}\r\n`], 'crlf'),
  }),
  scenario('base/stdio/long-line', {
    title: 'a message of 300,000 characters is one line',
    proves: stdio,
    revisions: official,
    carriers: ['stdio'],
    async run(bench) {
      const peer = await bench.open()
      await peer.request('vivarium/no-such-method', { padding: 'x'.repeat(300_000) })
      await peer.settled()
    },
  }),
  scenario('base/stdio/end', {
    title: 'the process ends by itself when its input ends',
    proves: ['MCP basic/lifecycle#shutdown'],
    revisions: every,
    carriers: ['stdio'],
    async run(bench) {
      const peer = await bench.open({ fresh: true })
      peer.child.endInput()
      bench.expect(await peer.child.exited(5_000), 'the process must end when its standard input was closed')
    },
  }),
  scenario('base/stdio/drains', {
    title: 'what was asked before the end is still answered',
    proves: stdio,
    revisions: every,
    carriers: ['stdio'],
    async run(bench) {
      const peer = await bench.open({ fresh: true })
      const answer = peer.request(harmlessMethod(bench.revision), {}, { id: 'last-words', ms: 5_000 })
      await new Promise(resolve => setTimeout(resolve, 100))
      peer.child.endInput()
      await answer
    },
  }),
]

export const pairScenarios: readonly Scenario[] = [
  scenario('base/sse/endpoint', {
    title: 'the stream names an endpoint of the same origin first, and takes messages there',
    proves: pair,
    revisions: sessions,
    carriers: ['sse'],
    async run(bench) {
      const peer = await bench.open()
      const sent = await peer.send(JSON.stringify(harmless(bench.revision, 'posted')))
      bench.expect(
        (sent.status ?? 0) >= 200 && (sent.status ?? 0) < 300,
        `a message must be taken with HTTP status 2xx, not ${sent.status}`,
      )
      const frame = await peer.next(message => message['id'] === 'posted')
      bench.expect(isRecord(frame.value) && 'result' in frame.value, 'the answer must come on the stream', [frame])
    },
  }),
  scenario('base/sse/not-in-post', {
    title: 'answers come on the stream, not in the answer to the POST',
    proves: pair,
    revisions: sessions,
    carriers: ['sse'],
    async run(bench) {
      const peer = await bench.open()
      const sent = await peer.send(JSON.stringify(harmless(bench.revision, 'posted')))
      await peer.next(message => message['id'] === 'posted')
      bench.expect(!(sent.body ?? '').includes('"result"'), 'the answer must not be in the body of the POST')
    },
  }),
  scenario('base/sse/unknown-endpoint', {
    title: 'a message for a stream that does not exist is refused',
    proves: pair,
    revisions: sessions,
    carriers: ['sse'],
    async run(bench) {
      const peer = await bench.open()
      const url = new URL(peer.http.url)
      const session = [...url.searchParams].at(0)
      if (session === undefined) bench.leave('the endpoint has no parameter that names the stream')
      else url.searchParams.set(session[0], '00000000-0000-4000-8000-000000000000')
      const body = JSON.stringify(harmless(bench.revision, 1))
      const { status } = await peer.http.call({ url, method: 'POST', headers: peer.http.headers(), body })
      bench.expect(status >= 400, `it must be refused with HTTP status 4xx, not ${status}`)
    },
  }),
]

export const webSocketScenarios: readonly Scenario[] = [
  ...[['mcp'], []].map(protocols =>
    scenario(`base/websocket/${protocols.length === 0 ? 'no-' : ''}subprotocol`, {
      title: protocols.length === 0 ? 'a client that offers no subprotocol is served' : 'the subprotocol mcp is taken',
      proves: ['MCP basic/transports#custom-transports'],
      revisions: every,
      carriers: ['websocket'],
      async run(bench) {
        // No revision says anything about subprotocols, so that it can be a remark at most.
        const peer = await bench.open({ protocols }).catch(() => undefined)
        if (peer === undefined) bench.warn(`a client that offers ${protocols.join() || 'none'} should be served`)
        else await peer.settled()
      },
    }),
  ),
  scenario('base/websocket/one-message', {
    title: 'each message of the socket is one message of the protocol',
    proves: ['MCP basic/transports#custom-transports'],
    revisions: every,
    carriers: ['websocket'],
    async run(bench) {
      const peer = await bench.open()
      for (const id of ['one', 'two']) await peer.send(JSON.stringify(harmless(bench.revision, id)))
      for (const id of ['one', 'two']) await peer.next(message => message['id'] === id && 'result' in message)
    },
  }),
  scenario('base/websocket/line-breaks', {
    title: 'line breaks between tokens do not split a message',
    proves: ['MCP basic/transports#custom-transports'],
    revisions: every,
    carriers: ['websocket'],
    async run(bench) {
      const peer = await bench.open()
      await peer.send(JSON.stringify(harmless(bench.revision, 'pretty'), null, 2))
      await peer.next(message => message['id'] === 'pretty' && 'result' in message)
    },
  }),
]
