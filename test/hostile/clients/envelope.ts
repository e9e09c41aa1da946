/** E: the stateless wire says things twice, in headers and body. What contradicts itself is refused before it runs. */
import type { Verdict } from '../case.ts'
import { type Arena, type Attack, all, badly, describe, judge, resultOf, textOf, well } from './attack.ts'
import { unrun, withPeer } from './data.ts'
import { type Spoiled, shot } from './edge-shot.ts'
import { fire } from './raw.ts'
import { call, capabilitiesKey, type Frame, isModern, meta, request, versionKey } from './wire.ts'

const mismatch = { codes: [-32020, -32001, -32600, -32602], statuses: [400] }

/** A good call whose head is spoiled: 400, and the tool does not run. */
async function head(arena: Arena, spoiled: Spoiled): Promise<Verdict> {
  const before = (await arena.target.facts()).runs
  const answer = await fire(arena.port, shot(arena, spoiled))
  const { runs } = await arena.target.facts()
  if (runs > before) return badly(`${answer.status}, and the tool ran`)
  return judge(answer.status === 400 && answer.bytes < 2_048, `${answer.status} ${/"code":(-\d+)/.exec(answer.body)?.[1] ?? ''}`)
}

function heads(arena: Arena, spoiled: readonly Spoiled[]): Promise<Verdict> {
  return spoiled.reduce(
    async (before, each) => all([await head(arena, each), await before].reverse()),
    Promise.resolve(well('400')),
  )
}

/** A good call whose _meta is another. */
function withMeta(arena: Arena, _meta: unknown): Promise<Verdict> {
  const frame = call(arena.era, 'echo', { text: 'a' })
  return withPeer(arena, peer => unrun(arena, peer, { ...frame, params: { ...(frame['params'] as Frame), _meta } }, {}, mismatch))
}

const instead = (name: string, ...lines: string[]): Spoiled => ({ without: [name], lines })

const attacks: readonly Attack[] = [
  {
    key: 'E01',
    name: 'no MCP-Protocol-Version beside an envelope: 400',
    run: arena => head(arena, instead('mcp-protocol-version')),
  },
  {
    key: 'E02',
    name: 'another version in the header than in the body: 400',
    run: arena =>
      heads(arena, [
        instead('mcp-protocol-version', 'MCP-Protocol-Version: 2025-11-25'),
        instead('mcp-protocol-version', 'MCP-Protocol-Version: 2025-03-26'),
      ]),
  },
  {
    key: 'E03',
    name: 'no Mcp-Method: 400',
    run: arena => head(arena, instead('mcp-method')),
  },
  {
    key: 'E04',
    name: 'another method in the header (policy sees a list, the server a call): 400',
    run: arena =>
      heads(arena, [
        instead('mcp-method', 'Mcp-Method: tools/list'),
        instead('mcp-method', 'Mcp-Method: TOOLS/CALL'),
        instead('mcp-method', 'Mcp-Method: __proto__'),
      ]),
  },
  {
    key: 'E05',
    name: 'no Mcp-Name, or that of another tool: 400',
    run: arena =>
      heads(arena, [instead('mcp-name'), instead('mcp-name', 'Mcp-Name: mirror'), instead('mcp-name', 'Mcp-Name: Echo')]),
  },
  {
    key: 'E06',
    name: 'a version that nobody speaks, in both places: refused with those that are spoken',
    run: arena =>
      withPeer(arena, async () => {
        const frame = call(arena.era, 'echo', { text: 'a' }, 1, { _meta: { [versionKey]: '2099-01-01' } })
        const data = shot(arena, {
          ...instead('mcp-protocol-version', 'MCP-Protocol-Version: 2099-01-01'),
          body: JSON.stringify(frame),
        })
        const answer = await fire(arena.port, data)
        return judge(answer.status === 400 && answer.body.includes('2026-07-28') && answer.bytes < 2_048, `${answer.status}`)
      }),
  },
  {
    key: 'E07',
    name: 'no envelope under a header that demands one: 400',
    run: arena => withMeta(arena, {}),
  },
  {
    key: 'E08',
    name: 'an envelope whose members are of the wrong kind: 400',
    run: async arena => {
      const verdicts: Verdict[] = []
      for (const more of [
        { [capabilitiesKey]: 'all' },
        { [capabilitiesKey]: [] },
        { [capabilitiesKey]: null },
        { [versionKey]: 20260728 },
        { [versionKey]: ['2026-07-28'] },
      ])
        verdicts.push(await withMeta(arena, meta(arena.era, more)))
      return all(verdicts)
    },
  },
  {
    key: 'E09',
    name: 'the same header twice, once false: 400',
    run: arena =>
      heads(arena, [
        { lines: ['Mcp-Method: tools/list'] },
        { lines: ['Mcp-Name: mirror'] },
        { lines: ['MCP-Protocol-Version: 2025-11-25'] },
      ]),
  },
  {
    key: 'E10',
    name: 'names in an encoding that is broken, or that hides another: 400',
    run: arena =>
      heads(
        arena,
        [
          '=?base64?!!!!?=',
          `=?base64?${Buffer.from('mirror').toString('base64')}?=`,
          '=?base64??=',
          '=?utf-7?echo?=',
          '=?base64?/w==?=',
        ].map(value => instead('mcp-name', `Mcp-Name: ${value}`)),
      ),
  },
  {
    key: 'E11',
    name: 'GET, DELETE and a stale session id on a wire without sessions: 405, and the id is ignored',
    run: async arena => {
      for (const method of ['GET', 'DELETE']) {
        const text = `${method} /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: text/event-stream\r\nMCP-Protocol-Version: 2026-07-28\r\nMcp-Session-Id: constructor\r\nConnection: close\r\n\r\n`
        const answer = await fire(arena.port, text)
        if (answer.status !== 405) return badly(`${method}: ${answer.status} instead of 405`)
      }
      return withPeer(arena, async peer => {
        const heard = await peer.say(call(arena.era, 'echo', { text: 'a' }), {
          lines: ['Mcp-Session-Id: constructor'],
          awaits: 1,
        })
        return judge(textOf(resultOf(heard)) === 'a', `405, then ${describe(heard)}`)
      })
    },
  },
  {
    key: 'E12',
    name: '__proto__ as a member of the envelope: no prototype changes, and no version comes from one',
    run: arena =>
      withPeer(arena, async peer => {
        const text = JSON.stringify(request(arena.era, 'tools/call', { name: 'echo', arguments: { text: 'a' } }))
        const own = `"_meta":${JSON.stringify(meta(arena.era))}`
        const inherited = text.replace(own, `"_meta":{"__proto__":${JSON.stringify({ ...meta(arena.era), polluted: 1 })}}`)
        const verdict = await unrun(arena, peer, inherited, { method: 'tools/call', name: 'echo' }, mismatch)
        const heard = await peer.say(text.replace('"_meta":{', '"_meta":{"__proto__":{"polluted":1},'), {
          method: 'tools/call',
          name: 'echo',
        })
        return heard.status >= 500 || (await arena.target.facts()).polluted ? badly(describe(heard)) : verdict
      }),
  },
]

export const headerAttacks: readonly Attack[] = attacks.map(attack => ({ ...attack, fits: isModern }))
