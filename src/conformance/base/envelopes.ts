/** The JSON-RPC envelope: ids of every kind, frames that are no messages, and arrays of messages, which one revision has. */
import { isRecord } from '../../jsonrpc/message.ts'
import { isServed } from '../calls.ts'
import { official, since, table } from '../define.ts'
import { objectIn } from '../expectations.ts'
import type { Frame, Json, RevisionId, Scenario } from '../scenario.ts'
import { type ScenarioContext, settle, step } from '../steps.ts'
import { harmless, harmlessMethod, kitInfo } from '../wire/envelope.ts'
import type { RawPeer } from '../wire/raw-peer.ts'

const silent = { listen: false }
const row = table('base/envelope/', { revisions: official, open: silent })

const ids: readonly (readonly [string, unknown, string])[] = [
  ['string', 'seven', 'a string'],
  ['zero', 0, 'zero'],
  ['big', 9_007_199_254_740_991, 'the largest safe integer'],
  ['negative', -7, 'a negative integer'],
  ['numeric-string', '7', 'a string of digits'],
  ['long', 'x'.repeat(200), 'a string of 200 characters'],
  ['unicode', 'ä/漢字/🙂', 'a string of any script'],
]

/** What came in since this many frames. */
function cameSince(peer: RawPeer, before: number): readonly Frame[] {
  return peer.frames.slice(before).filter(({ way }) => way === 'in')
}

/** Sends a frame that must not be served, then sees that the connection goes on. */
function mustNotServe(what: string, text: (revision: RevisionId) => string) {
  return async ({ peer, carrier, revision, expect }: ScenarioContext): Promise<void> => {
    const { status = 0 } = await peer.send(text(revision), { headers: headersFor(peer) })
    await peer.settled()
    const hello = peer.frames.findLastIndex(({ way, value }) => way === 'in' && isRecord(value) && value.result === peer.hello)
    const served = cameSince(peer, hello + 1)
      .filter(({ value }) => 'result' in objectIn(value))
      .slice(0, -1)
    expect(served.length === 0, `${what} must not be answered with a result`, served)
    const isRight = carrier !== 'http' || (status >= 400 && status < 500)
    expect(isRight, `${what} must be answered with HTTP status 4xx, not ${status}`, [])
  }
}

/** Over HTTP the headers of a right message, so that the body alone is wrong. */
function headersFor(peer: RawPeer): Record<string, string> {
  return peer.carrier === 'http' ? { 'mcp-method': harmlessMethod(peer.revision) } : {}
}

/** Requests that are none: the row, what its title calls them, what failures call them, and how they look. */
const wrong: readonly (readonly [string, string, string, (on: RevisionId) => Json])[] = [
  ['id-null MCP basic#requests', 'a request whose id is null', 'a request whose id is null', on => harmless(on, null)],
  [
    'id-object MCP basic#requests',
    'a request whose id is an object',
    'a request whose id is an object',
    on => harmless(on, { a: 1 }),
  ],
  [
    'other-version JSON-RPC 4',
    'a message of another JSON-RPC version',
    'a message of JSON-RPC 1.0',
    on => harmless(on, 5, { jsonrpc: '1.0' }),
  ],
  [
    'array-params MCP basic#requests',
    'a request whose params are an array',
    'a request with params in an array',
    on => harmless(on, 5, { params: ['x'] }),
  ],
]

const broken: readonly (readonly [string, string, string])[] = [
  ['not-json', '{"jsonrpc":"2.0","id":1,"method":"pi', 'text that is not JSON'],
  ['empty-object', '{}', 'an empty object'],
  ['number', '42', 'a number'],
  ['string', '"ping"', 'a string'],
  ['null', 'null', 'null'],
]

/** Sends something, and gives the errors that come before all is quiet. */
const errorsAfter = (sent: (peer: RawPeer) => Promise<unknown>) =>
  step(async ({ peer }) => {
    const before = peer.frames.length
    await sent(peer)
    await peer.settled()
    return cameSince(peer, before).filter(({ value }) => 'error' in objectIn(value))
  })

const any = table('base/envelope/', {})

/** Ids of every kind, and frames that are no messages. */
export const envelopeScenarios: readonly Scenario[] = [
  ...ids.map(([name, id, what]) =>
    any(`id-${name} JSON-RPC 5 MCP basic#requests`, `an id that is ${what} is returned unchanged, type included`).by(async x => {
      x.hold(await x.ask(harmlessMethod(x.revision), {}, { id }), {
        'the request must be answered with a result': isServed,
        'the id of the answer must be that of the request': it => objectIn(it.answer.frame?.value).id === id,
      })
    }),
  ),
  ...wrong.map(([ids, title, what, message]) =>
    row(ids, `${title} is not served`).by(mustNotServe(what, on => JSON.stringify(message(on)))),
  ),
  ...broken.map(([name, text, what]) =>
    any(name, `${what} is not a message: it is not served, and the connection stays open`).by(
      { proves: ['JSON-RPC 5.1'], open: silent },
      mustNotServe(what, () => text),
    ),
  ),
  row('parse-error JSON-RPC 5.1', 'if text that is not JSON is answered, the error is -32700').by([
    errorsAfter(peer => peer.send('{"jsonrpc":', { headers: headersFor(peer) })).expect({
      'text that is not JSON is a parse error (-32700)': errors =>
        errors.every(({ value }) => !isRecord(objectIn(value).error) || objectIn(value, 'error').code === -32700),
    }),
  ]),
  any('unknown-notification JSON-RPC 4.1', 'an unknown notification is ignored').by({ open: silent }, [
    errorsAfter(peer => peer.notify('notifications/vivarium/unknown', {})).expect({
      'a notification must not be answered': (errors, { carrier }) => carrier === 'http' || errors.length === 0,
    }),
  ]),
  row('unasked-response JSON-RPC 5', 'a response without a request does no harm').by([
    step(x => x.peer.send('{"jsonrpc":"2.0","id":"nobody-asked","result":{}}')),
    settle,
  ]),
]

const batch = table('base/batch/', {
  proves: ['MCP 2025-03-26 basic#batching'],
  revisions: ['2025-03-26'],
  open: silent,
})
const note: Json = { jsonrpc: '2.0', method: 'notifications/roots/list_changed' }

/** All messages that came after this many frames, those in arrays too. */
function messagesAfter(peer: RawPeer, before: number): readonly Json[] {
  return cameSince(peer, before)
    .flatMap(({ value }) => (Array.isArray(value) ? value : [value]))
    .filter(isRecord)
}

function answers(peer: RawPeer, before: number, id: unknown): boolean {
  return messagesAfter(peer, before).some(message => message.id === id && 'result' in message)
}

/** Sends two requests in one array, with other things between them. The answers may be one array or single messages. */
const bothAnswered =
  (...between: readonly Json[]) =>
  async ({ peer, revision, expect }: ScenarioContext): Promise<void> => {
    const before = peer.frames.length
    const both = (): boolean => answers(peer, before, 'b1') && answers(peer, before, 'b2')
    await peer.send(JSON.stringify([harmless(revision, 'b1'), ...between, harmless(revision, 'b2')]))
    await peer.hears(both, 3_000)
    expect(both(), 'every request of a batch must be answered', peer.frames.slice(before))
  }

/** Arrays of messages: served at 2025-03-26, refused later. */
export const batchScenarios: readonly Scenario[] = [
  batch('requests', 'every request of a batch is answered').by(bothAnswered()),
  batch('mixed', 'notifications in a batch do not keep its requests from being answered').by(bothAnswered(note)),
  batch('notifications-only', 'a batch of notifications is accepted without a response').by(async ({ peer, carrier, expect }) => {
    const before = peer.frames.length
    const { status } = await peer.send(JSON.stringify([note, note]))
    if (carrier === 'http')
      return expect(status === 202, `a batch of notifications must be answered with HTTP status 202, not ${status}`)
    await peer.settled()
    const answered = messagesAfter(peer, before).filter(({ method }) => method === undefined)
    expect(answered.length === 1, 'notifications must not be answered', peer.frames.slice(before))
  }),
  batch('no-initialize MCP 2025-03-26 basic/lifecycle#initialization', 'initialize does not work inside a batch').by(
    { open: { hello: false } },
    async x => {
      const params = { protocolVersion: x.revision, capabilities: {}, clientInfo: kitInfo }
      const initialize = { jsonrpc: '2.0', id: 'i', method: 'initialize', params }
      await x.peer.send(JSON.stringify([initialize, harmless(x.revision, 'p')]))
      const came = await x.peer.hears(() => answers(x.peer, 0, 'i'), 500)
      x.expect(!came, 'initialize must not be part of a batch', x.peer.frames)
    },
  ),
  batch('refused MCP 2025-06-18 changelog MCP basic/transports', 'revisions without batches do not serve arrays').by(
    { revisions: since('2025-06-18') },
    async x => {
      const before = x.peer.frames.length
      const { status = 0 } = await x.peer.send(JSON.stringify([harmless(x.revision, 'b1'), harmless(x.revision, 'b2')]))
      await x.peer.settled()
      const served = answers(x.peer, before, 'b1') || answers(x.peer, before, 'b2')
      x.expect(!served, 'a batch must not be served: this revision has none', x.peer.frames.slice(before))
      x.expect(x.carrier !== 'http' || status >= 400, `a batch must be refused with HTTP status 4xx, not ${status}`)
    },
  ),
]
