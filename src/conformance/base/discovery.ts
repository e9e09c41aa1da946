/** Wires without a handshake: what every request must say of itself, and how a server introduces itself. */
import { isRecord } from '../../jsonrpc/message.ts'
import { codeIn, listIn, objectIn, resultIn, scenario, stateless } from '../define.ts'
import type { Bench, Json, Scenario } from '../scenario.ts'
import { isStateless, keys, kitInfo, wireVersion } from '../wire/envelope.ts'
import type { Answer, RawPeer } from '../wire/raw-peer.ts'

const overview = ['MCP 2026-07-28 basic/versioning']
const metadata = ['MCP 2026-07-28 basic#_meta']
const discovery = ['MCP 2026-07-28 server/discover']

/** A request with exactly this `_meta`. */
function askWith(
  peer: RawPeer,
  meta: Json,
  headers: Record<string, string | undefined> = {},
  method = 'server/discover',
): Promise<Answer> {
  return peer.request(method, { _meta: meta }, { envelope: false, headers })
}

/** Discovering may be how a client finds out which version to speak, so that it is not held against a server there. */
function ordinaryMethod(bench: Bench): string {
  const found = ['tools', 'resources', 'prompts'].find(name => bench.peer.has(name))
  return found === undefined ? bench.leave('it lists nothing') : `${found}/list`
}

function whole(bench: Bench): Record<string, unknown> {
  return { [keys.version]: wireVersion(bench.revision), [keys.info]: kitInfo, [keys.capabilities]: {} }
}

function expectRefusal(bench: Bench, answer: Answer, codes: readonly number[], what: string): void {
  bench.expect(codes.includes(Number(codeIn(answer))), `${what} must be refused with error ${codes.join(' or ')}`, [answer.frame])
  if (bench.carrier === 'http')
    bench.expect(answer.status === 400, `${what} must be refused with HTTP status 400`, [answer.frame])
}

const removed = ['initialize', 'ping', 'logging/setLevel', 'resources/subscribe', 'resources/unsubscribe']

export const discoveryScenarios: readonly Scenario[] = [
  scenario('base/discovery/result', {
    title: 'server/discover names the versions and the capabilities',
    proves: discovery,
    revisions: stateless,
    async run(bench) {
      const peer = await bench.open({ fresh: true })
      const hello = peer.hello ?? {}
      const frames = peer.frames.slice(0, 2)
      const versions = listIn(hello, 'supportedVersions')
      bench.expect(
        versions.includes(wireVersion(bench.revision)),
        'supportedVersions must hold the version that is spoken',
        frames,
      )
      bench.expect(isRecord(hello['capabilities']), 'capabilities must be an object', frames)
      const draft = bench.revision === 'draft-2026-v1'
      const info = draft ? hello['serverInfo'] : objectIn(hello, '_meta')[keys.serverInfo]
      if (draft) bench.expect(isRecord(info), 'serverInfo must be in the result', frames)
      else if (!isRecord(info)) bench.warn(`_meta should hold ${keys.serverInfo}`)
    },
  }),
  scenario('base/discovery/unknown-version', {
    title: 'a version that the server does not speak is refused, and the refusal names those it does',
    proves: overview,
    revisions: stateless,
    async run(bench) {
      const peer = await bench.open()
      const asked = '1999-01-01'
      const meta = { ...whole(bench), [keys.version]: asked }
      const answer = await askWith(peer, meta, { 'mcp-protocol-version': asked }, ordinaryMethod(bench))
      // Between the draft and the release the number changed more than once.
      expectRefusal(bench, answer, bench.revision === 'draft-2026-v1' ? [-32602, -32022, -32004] : [-32022], 'an unknown version')
      const data = objectIn(answer.error, 'data')
      const supported = listIn(data, 'supported')
      bench.expect(supported.length > 0, 'data.supported must list versions', [answer.frame])
      bench.expect(data['requested'] === asked, 'data.requested must repeat the version asked for', [answer.frame])
      const offered = listIn(peer.hello, 'supportedVersions')
      const wrong = supported.filter(version => !offered.includes(version))
      if (offered.length > 0) bench.expect(wrong.length === 0, 'data.supported must be among supportedVersions', [answer.frame])
    },
  }),
  ...[keys.capabilities, keys.version].map(key =>
    scenario(`base/discovery/without-${key === keys.version ? 'version' : 'capabilities'}`, {
      title: `a request without ${key} is refused`,
      proves: metadata,
      revisions: stateless,
      // Without a version a pipe cannot know that a stateless request is meant.
      ...(key === keys.version ? { carriers: ['http' as const] } : {}),
      async run(bench) {
        const peer = await bench.open()
        const { [key]: _, ...rest } = whole(bench)
        expectRefusal(bench, await askWith(peer, rest), [-32602], `a request without ${key}`)
      },
    }),
  ),
  scenario('base/discovery/without-meta', {
    title: 'a request without _meta is refused',
    proves: metadata,
    revisions: stateless,
    carriers: ['http'],
    async run(bench) {
      const peer = await bench.open()
      const answer = await peer.request('server/discover', {}, { envelope: false })
      expectRefusal(bench, answer, [-32602], 'a request without _meta')
    },
  }),
  scenario('base/discovery/without-client-info', {
    title: 'clientInfo may be left out',
    proves: metadata,
    revisions: ['2026-07-28'],
    async run(bench) {
      const peer = await bench.open()
      const { [keys.info]: _, ...rest } = whole(bench)
      const answer = await askWith(peer, rest)
      bench.expect(answer.result !== undefined, 'a request without clientInfo must be served', [answer.frame])
    },
  }),
  scenario('base/discovery/draft-client-info', {
    title: 'the draft demands clientInfo',
    proves: ['SEP-2575 draft'],
    revisions: ['draft-2026-v1'],
    async run(bench) {
      const peer = await bench.open()
      const { [keys.info]: _, ...rest } = whole(bench)
      expectRefusal(bench, await askWith(peer, rest), [-32602], 'a request without clientInfo')
    },
  }),
  scenario('base/discovery/bad-client-capabilities', {
    title: 'clientCapabilities that are no object are refused',
    proves: metadata,
    revisions: stateless,
    async run(bench) {
      const peer = await bench.open()
      const answer = await askWith(peer, { ...whole(bench), [keys.capabilities]: 'all of them' })
      expectRefusal(bench, answer, [-32602], 'clientCapabilities that are no object')
    },
  }),
  ...removed.map(method =>
    scenario(`base/discovery/removed-${method.replace('/', '-')}`, {
      title: `${method} no longer exists where every request stands alone`,
      proves: ['MCP 2026-07-28 changelog'],
      revisions: stateless,
      async run(bench) {
        const peer = await bench.open()
        const answer = await peer.request(method, { uri: 'test://none', level: 'info' })
        bench.expect(codeIn(answer) === -32601, `${method} must be refused with error -32601`, [answer.frame])
        if (bench.carrier === 'http') bench.expect(answer.status === 404, 'the HTTP status must be 404', [answer.frame])
      },
    }),
  ),
  scenario('base/discovery/result-type', {
    title: 'every result says which kind it is',
    proves: ['MCP 2026-07-28 basic#results'],
    revisions: stateless,
    async run(bench) {
      const peer = await bench.open()
      const methods = [
        'server/discover',
        ...['tools', 'resources', 'prompts'].filter(name => bench.peer.has(name)).map(name => `${name}/list`),
      ]
      for (const method of methods) {
        const answer = await peer.request(method)
        bench.expect(resultIn(answer)['resultType'] === 'complete', `the resultType of ${method} must be "complete"`, [
          answer.frame,
        ])
      }
    },
  }),
  scenario('base/discovery/nothing-remembered', {
    title: 'what one request declared is not remembered for the next',
    proves: metadata,
    revisions: stateless,
    async run(bench) {
      const peer = await bench.open()
      await peer.request('server/discover', {}, { meta: { [keys.capabilities]: { sampling: {} } } })
      const { [keys.capabilities]: _, ...rest } = whole(bench)
      bench.expect(isStateless(bench.revision), 'only where every request stands alone')
      expectRefusal(bench, await askWith(peer, rest), [-32602], 'a request without clientCapabilities after one that had them')
    },
  }),
]
