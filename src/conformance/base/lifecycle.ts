/** Opening a connection with a handshake: what the server says of itself, and which version it settles on. */
import { isRecord } from '../../jsonrpc/message.ts'
import { codeIn, every, official, resultIn, scenario, sessions, stateless } from '../define.ts'
import type { Bench, Scenario } from '../scenario.ts'
import { kitInfo } from '../wire/envelope.ts'
import { harmlessMethod } from './harmless.ts'

const handshake = ['MCP basic/lifecycle#initialization']
const negotiation = ['MCP basic/lifecycle#version-negotiation']

/** What servers may offer to a client that asked for something else. */
const withHandshake: readonly unknown[] = ['2024-10-07', ...sessions]

async function offerFor(bench: Bench, protocolVersion: string): Promise<void> {
  const peer = await bench.open({ hello: false })
  const answer = await peer.request('initialize', { protocolVersion, capabilities: {}, clientInfo: kitInfo })
  const offered = resultIn(answer)['protocolVersion']
  bench.expect(answer.error === undefined, `initialize with ${protocolVersion} must be answered with a version, not an error`, [
    answer.frame,
  ])
  bench.expect(withHandshake.includes(offered), 'the version offered must be one that a handshake can settle on', [answer.frame])
}

export const lifecycleScenarios: readonly Scenario[] = [
  scenario('base/lifecycle/initialize-result', {
    title: 'the result of initialize names the version, the capabilities and the server',
    proves: handshake,
    revisions: sessions,
    async run(bench) {
      const peer = await bench.open({ fresh: true })
      const { serverInfo, capabilities, instructions } = peer.hello ?? {}
      const frames = peer.frames.slice(0, 2)
      bench.expect(isRecord(capabilities), 'capabilities must be an object', frames)
      bench.expect(isRecord(serverInfo), 'serverInfo must be an object', frames)
      const info = isRecord(serverInfo) ? serverInfo : {}
      bench.expect(typeof info['name'] === 'string', 'serverInfo.name must be a string', frames)
      bench.expect(typeof info['version'] === 'string', 'serverInfo.version must be a string', frames)
      bench.expect(['undefined', 'string'].includes(typeof instructions), 'instructions must be a string', frames)
    },
  }),
  scenario('base/lifecycle/capabilities-are-objects', {
    title: 'every capability that is declared is an object',
    proves: ['MCP basic/lifecycle#capability-negotiation'],
    revisions: official,
    async run(bench) {
      const wrong = Object.entries(bench.peer.capabilities).filter(([, value]) => !isRecord(value))
      bench.expect(wrong.length === 0, `capabilities that are no objects: ${wrong.map(([name]) => name).join(', ')}`)
    },
  }),
  scenario('base/lifecycle/unknown-version', {
    title: 'initialize with a version nobody knows is answered with one that the server speaks',
    proves: negotiation,
    revisions: sessions,
    run: bench => offerFor(bench, '1999-01-01'),
  }),
  scenario('base/lifecycle/stateless-version', {
    title: 'initialize with a version that has no handshake is answered with one that has',
    proves: negotiation,
    revisions: sessions,
    run: bench => offerFor(bench, '2026-07-28'),
  }),
  scenario('base/lifecycle/ping-before-ready', {
    title: 'ping is answered before notifications/initialized',
    proves: handshake,
    revisions: sessions,
    async run(bench) {
      const peer = await bench.open({ hello: false })
      const params = { protocolVersion: bench.revision, capabilities: {}, clientInfo: kitInfo }
      await peer.request('initialize', params)
      const answer = await peer.request('ping')
      bench.expect(answer.result !== undefined, 'ping must be answered with a result', [answer.frame])
    },
  }),
  scenario('base/lifecycle/ping', {
    title: 'ping is answered with an empty result',
    proves: ['MCP basic/utilities/ping'],
    revisions: sessions,
    async run(bench) {
      const peer = await bench.open()
      const answer = await peer.request('ping')
      bench.expect(answer.result !== undefined, 'ping must be answered with a result', [answer.frame])
      const members = Object.keys(resultIn(answer)).filter(name => name !== '_meta')
      bench.expect(members.length === 0, 'the result of ping must be empty', [answer.frame])
    },
  }),
  scenario('base/lifecycle/unknown-method', {
    title: 'a method that does not exist is refused with -32601, and the connection goes on',
    proves: ['JSON-RPC 5.1', 'MCP basic'],
    revisions: every,
    async run(bench) {
      const peer = await bench.open()
      const answer = await peer.request('vivarium/no-such-method')
      bench.expect(codeIn(answer) === -32601, 'an unknown method must be refused with error -32601', [answer.frame])
      bench.expect(
        answer.frame?.value !== undefined && idOf(answer.frame.value) === answer.id,
        'the error must carry the id of its request',
        [answer.frame],
      )
      if (bench.carrier === 'http') {
        const status = stateless.includes(bench.revision) ? 404 : 200
        bench.expect(answer.status === status, `the HTTP status of an unknown method must be ${status}, not ${answer.status}`, [
          answer.frame,
        ])
      }
      await peer.settled()
    },
  }),
  scenario('base/lifecycle/answered-once', {
    title: 'a request is answered once, by a result or by an error',
    proves: ['JSON-RPC 5'],
    revisions: every,
    async run(bench) {
      const peer = await bench.open()
      for (const method of [harmlessMethod(bench.revision), 'vivarium/no-such-method']) {
        const { id } = await peer.request(method)
        await peer.settled()
        await peer.hears(() => false, 50)
        const answers = peer.heard(message => message['id'] === id && message['method'] === undefined)
        bench.expect(answers.length === 1, `${method} must be answered once, not ${answers.length} times`, answers)
        const value = answers[0]?.value
        const both = isRecord(value) && 'result' in value && 'error' in value
        bench.expect(!both, 'an answer must have a result or an error, not both', answers)
      }
    },
  }),
  scenario('base/lifecycle/several-in-flight', {
    title: 'requests sent at once are each answered under their own id',
    proves: ['JSON-RPC 4', 'MCP basic'],
    revisions: every,
    async run(bench) {
      const peer = await bench.open()
      const ids = ['a', 'b', 'c', 'd', 'e']
      const answers = await Promise.all(ids.map(id => peer.request(harmlessMethod(bench.revision), {}, { id })))
      for (const answer of answers)
        bench.expect(answer.result !== undefined, 'each request must be answered with a result', [answer.frame])
    },
  }),
]

function idOf(value: unknown): unknown {
  return isRecord(value) ? value['id'] : undefined
}
