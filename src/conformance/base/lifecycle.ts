/** Opening a connection with a handshake: what the server says of itself, and which version it settles on. */
import { isRecord } from '../../jsonrpc/message.ts'
import { hasCode, isEmpty, isServed } from '../calls.ts'
import { official, sessions, stateless, table } from '../define.ts'
import { fitsPattern, is, objectIn } from '../expectations.ts'
import type { Scenario } from '../scenario.ts'
import { send, settle, step } from '../steps.ts'
import { harmlessMethod, kitInfo } from '../wire/envelope.ts'

const row = table('base/lifecycle/', { proves: ['MCP basic/lifecycle#initialization'], revisions: sessions })
const any = table('base/lifecycle/', {})

/** What servers may offer to a client that asked for something else. */
const withHandshake: readonly unknown[] = ['2024-10-07', ...sessions]

/** Versions that cannot be had, and what is said of them. */
const others = [
  ['unknown-version', '1999-01-01', 'an unknown version is answered with one that the server speaks'],
  ['stateless-version', '2026-07-28', 'a version that has no handshake is answered with one that has'],
] as const

/** The handshake, and what every connection must keep. */
export const lifecycleScenarios: readonly Scenario[] = [
  row('initialize-result', 'the result of initialize names the version, the capabilities and the server').by(
    { open: { fresh: true } },
    [
      step(({ peer }) => ({ hello: peer.hello ?? {}, frames: peer.frames.slice(0, 2) })).expect({
        'capabilities must be an object': ({ hello }) => isRecord(hello.capabilities),
        'serverInfo must be an object': ({ hello }) => isRecord(hello.serverInfo),
        'serverInfo.name must be a string': ({ hello }) => fitsPattern({ serverInfo: { name: is.string } }, hello),
        'serverInfo.version must be a string': ({ hello }) => fitsPattern({ serverInfo: { version: is.string } }, hello),
        'instructions must be a string': ({ hello }) => is.optional(is.string)(hello.instructions),
      }),
    ],
  ),
  any('capabilities-are-objects MCP basic/lifecycle#capability-negotiation', 'every capability that is declared is an object').by(
    { revisions: official, open: false },
    [
      step(({ bench }) => Object.entries(bench.peer.capabilities).filter(([, value]) => !isRecord(value))).expect({
        'capabilities that are not objects': (wrong, _, says) =>
          wrong.length === 0 || `${says}: ${wrong.map(([name]) => name).join(', ')}`,
      }),
    ],
  ),
  ...others.map(([id, protocolVersion, what]) =>
    row(id, `initialize with ${what}`).by({ proves: ['MCP basic/lifecycle#version-negotiation'], open: { hello: false } }, [
      send('initialize', { protocolVersion, capabilities: {}, clientInfo: kitInfo }).expect({
        [`initialize with ${protocolVersion} must be answered with a version, not an error`]: it => it.answer.error === undefined,
        'the version offered must be one that a handshake can settle on': ({ result }) =>
          withHandshake.includes(result.protocolVersion),
      }),
    ]),
  ),
  row('ping-before-ready', 'ping is answered before notifications/initialized').by({ open: { hello: false } }, [
    send('initialize', ({ revision }) => ({ protocolVersion: revision, capabilities: {}, clientInfo: kitInfo })),
    send('ping').expect({ 'ping must be answered with a result': isServed }),
  ]),
  row('ping MCP basic/utilities/ping', 'ping is answered with an empty result').by([
    send('ping').expect({ 'ping must be answered with a result': isServed, 'the result of ping must be empty': isEmpty }),
  ]),
  any(
    'unknown-method JSON-RPC 5.1 MCP basic',
    'a method that does not exist is refused with -32601, and the connection stays open',
  ).by([
    send('vivarium/no-such-method').expect({
      'an unknown method must be refused with error -32601': hasCode(-32601),
      'the error must carry the id of its request': ({ answer }) => objectIn(answer.frame?.value).id === answer.id,
      'the HTTP status of an unknown method': ({ status }, { carrier, revision }, says) => {
        const wanted = stateless.includes(revision) ? 404 : 200
        return carrier !== 'http' || status === wanted || `${says} must be ${wanted}, not ${status}`
      },
    }),
    settle,
  ]),
  any('answered-once JSON-RPC 5', 'a request is answered once, by a result or by an error').by(async x => {
    for (const method of [harmlessMethod(x.revision), 'vivarium/no-such-method']) {
      const { id } = await x.peer.request(method)
      await x.peer.settled()
      await x.peer.hears(() => false, 50)
      const answers = x.peer.heard(message => message.id === id && message.method === undefined)
      x.expect(answers.length === 1, `${method} must be answered once, not ${answers.length} times`, answers)
      const value = objectIn(answers[0]?.value)
      x.expect(!('result' in value && 'error' in value), 'an answer must have a result or an error, not both', answers)
    }
  }),
  any('several-in-flight JSON-RPC 4 MCP basic', 'requests sent at once are each answered under their own id').by(async x => {
    const answers = await Promise.all(['a', 'b', 'c', 'd', 'e'].map(id => x.ask(harmlessMethod(x.revision), {}, { id })))
    for (const it of answers) x.hold(it, { 'each request must be answered with a result': isServed })
  }),
]
