/** What carriers other than HTTP must keep: lines on a pipe, the old pair, messages of a WebSocket. */
import { setTimeout as wait } from 'node:timers/promises'
import { isRecord } from '../../jsonrpc/message.ts'
import { official, sessions, table } from '../define.ts'
import { objectIn } from '../expectations.ts'
import type { Scenario } from '../scenario.ts'
import { type ScenarioContext, send, settle, step, type TableStep } from '../steps.ts'
import { harmless, harmlessMethod } from '../wire/envelope.ts'

const stdio = table('base/stdio/', { proves: ['MCP basic/transports#stdio'], carriers: ['stdio'] })
const fresh = { open: { fresh: true } }
const unknown = 'vivarium/no-such-method'

/** A harmless request as text. */
const request = ({ revision }: ScenarioContext, id: string): string => JSON.stringify(harmless(revision, id))

/** Waits for the results of these requests. */
const results = (...ids: readonly string[]): TableStep =>
  step(async ({ peer }) => {
    for (const id of ids) await peer.next(message => message.id === id && 'result' in message)
  })

/** Writes bytes in pieces, as a slow writer sends them. */
const writes = (pieces: (x: ScenarioContext) => readonly string[]): TableStep =>
  step(async x => {
    for (const piece of pieces(x)) {
      await x.peer.child.write(piece)
      await wait(20)
    }
  })

/** Lines on the pipes of a process. */
export const stdioScenarios: readonly Scenario[] = [
  stdio('only-messages', 'standard output contains only messages').by(fresh, [
    settle,
    send(unknown),
    step(({ peer }) =>
      peer.frames.filter(({ way, value }) => {
        const messages = Array.isArray(value) ? value : [value]
        return way === 'in' && !messages.every(one => isRecord(one) && one.jsonrpc === '2.0')
      }),
    ).expect({ 'every line of standard output must be a JSON-RPC message': odd => odd.length === 0 }),
  ]),
  stdio('pieces', 'a line that comes in pieces is one message').by([
    writes(x => {
      const text = request(x, 'in-pieces')
      const middle = Math.floor(text.length / 2)
      return [text.slice(0, middle), text.slice(middle), '\n']
    }),
    results('in-pieces'),
  ]),
  stdio('two-at-once', 'two lines that come at once are two messages').by([
    writes(x => [['one', 'two'].map(id => `${request(x, id)}\n`).join('')]),
    results('one', 'two'),
  ]),
  stdio('crlf', 'a line that ends with CR LF is accepted').by([writes(x => [`${request(x, 'crlf')}\r\n`]), results('crlf')]),
  stdio('long-line', 'a message of 300,000 characters is one line').by({ revisions: official }, [
    send(unknown, { padding: 'x'.repeat(300_000) }),
    settle,
  ]),
  stdio('end MCP basic/lifecycle#shutdown', 'the process ends when its input ends').by(fresh, [
    step(({ peer }) => {
      peer.child.endInput()
      return peer.child.exited(5_000)
    }).expect({ 'the process must end when its standard input was closed': exited => exited }),
  ]),
  stdio('drains', 'requests sent before the end of the input are answered').by(fresh, async ({ peer, revision }) => {
    const answer = peer.request(harmlessMethod(revision), {}, { id: 'last-words', ms: 5_000 })
    await wait(100)
    peer.child.endInput()
    await answer
  }),
]

const pair = table('base/sse/', {
  proves: ['MCP 2024-11-05 basic/transports#http-with-sse'],
  revisions: sessions,
  carriers: ['sse'],
})
/** Posts a request; its answer should come on the stream. */
const posted = step(x => x.peer.send(request(x, 'posted')))
const onStream = step(({ peer }) => peer.next(message => message.id === 'posted'))

/** The old pair of a stream and an endpoint (2024-11-05). */
export const pairScenarios: readonly Scenario[] = [
  pair('endpoint', 'the stream first names an endpoint of the same origin, which accepts messages').by([
    posted.expect({
      'a message must be accepted with HTTP status 2xx': ({ status = 0 }, _, says) =>
        (status >= 200 && status < 300) || `${says}, not ${status}`,
    }),
    onStream.expect({ 'the answer must come on the stream': ({ value }) => 'result' in objectIn(value) }),
  ]),
  pair('not-in-post', 'answers come on the stream, not in the answer to the POST').by(async x => {
    const sent = await x.peer.send(request(x, 'posted'))
    await onStream.run(x)
    x.expect(!(sent.body ?? '').includes('"result"'), 'the answer must not be in the body of the POST')
  }),
  pair('unknown-endpoint', 'a message for a stream that does not exist is refused').by(async x => {
    const { url, headers, call } = x.peer.http
    const other = new URL(url)
    const [name] = [...other.searchParams.keys()]
    if (name === undefined) return x.leave('the endpoint has no parameter that names the stream')
    other.searchParams.set(name, '00000000-0000-4000-8000-000000000000')
    const { status } = await call({
      url: other,
      method: 'POST',
      headers: headers(),
      body: JSON.stringify(harmless(x.revision, 1)),
    })
    x.expect(status >= 400, `it must be refused with HTTP status 4xx, not ${status}`)
  }),
]

const socket = table('base/websocket/', { proves: ['MCP basic/transports#custom-transports'], carriers: ['websocket'] })

/** No revision says anything about subprotocols, so that it can be a remark at most. */
const offering = (protocols: readonly string[]): TableStep =>
  step(async ({ bench, warn }) => {
    const peer = await bench.open({ protocols }).catch(() => undefined)
    if (peer === undefined) warn(`a client that offers ${protocols.join() || 'none'} should be served`)
    else await peer.settled()
  })

/** Messages of a WebSocket. */
export const webSocketScenarios: readonly Scenario[] = [
  socket('subprotocol', 'the subprotocol mcp is accepted').by({ open: false }, [offering(['mcp'])]),
  socket('no-subprotocol', 'a client that offers no subprotocol is served').by({ open: false }, [offering([])]),
  socket('one-message', 'each message of the socket is one message of the protocol').by([
    step(async x => {
      for (const id of ['one', 'two']) await x.peer.send(request(x, id))
    }),
    results('one', 'two'),
  ]),
  socket('line-breaks', 'line breaks between tokens do not split a message').by([
    step(x => x.peer.send(JSON.stringify(harmless(x.revision, 'pretty'), null, 2))),
    results('pretty'),
  ]),
]
