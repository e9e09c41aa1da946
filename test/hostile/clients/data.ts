/** B: text that is no JSON, or JSON that is meant to hurt whoever reads it. */
import type { Verdict } from '../case.ts'
import { type Arena, type Attack, all, badly, describe, judge, refused, resultOf, textOf } from './attack.ts'
import type { Peer, Saying } from './peer.ts'
import { call, type Frame, isHttp, isModern, request } from './wire.ts'

const echo = { method: 'tools/call', name: 'echo' }
const parseError = { codes: [-32700], statuses: [400] }
const invalid = { codes: [-32600], statuses: [400] }
/** Too deep or too wide is refused before it is known what it is, or after. */
const beyond = { codes: [-32600, -32700, -32602] }

/** A client of its own for the length of an attack. */
export async function withPeer(arena: Arena, work: (peer: Peer) => Promise<Verdict>): Promise<Verdict> {
  const peer = await arena.peer()
  try {
    return await work(peer)
  } finally {
    peer.close()
  }
}

/** Says it, holds that no tool ran, and judges the answer. */
export async function unrun(
  arena: Arena,
  peer: Peer,
  body: string | Buffer | Frame,
  saying: Saying,
  ask: Parameters<typeof refused>[1],
) {
  const before = (await arena.target.facts()).runs
  const verdict = refused(await peer.say(body, saying), ask)
  const { runs } = await arena.target.facts()
  return runs > before ? badly(`${verdict.detail}, and the tool ran`) : verdict
}

function each(arena: Arena, bodies: readonly (string | Buffer)[], ask: Parameters<typeof refused>[1]): Promise<Verdict> {
  return withPeer(arena, async peer => {
    const verdicts: Verdict[] = []
    for (const body of bodies) verdicts.push(await unrun(arena, peer, body, echo, ask))
    return all(verdicts)
  })
}

/** The text of a good call with a placeholder replaced by bytes of the attacker's choice. */
function withBytes(arena: Arena, bytes: readonly number[]): Buffer {
  const text = JSON.stringify(call(arena.era, 'echo', { text: '@@' }))
  const [before = '', after = ''] = text.split('@@')
  return Buffer.concat([Buffer.from(before), Buffer.from(bytes), Buffer.from(after)])
}

/** The text of a good call of `mirror` with the text of its arguments replaced. */
function withArguments(arena: Arena, text: string): string {
  return JSON.stringify(call(arena.era, 'mirror', '@@')).replace('"@@"', () => text)
}

const mirror = { method: 'tools/call', name: 'mirror' }

export const textAttacks: readonly Attack[] = [
  {
    key: 'B01',
    name: 'text that is no JSON: −32700',
    run: arena =>
      each(
        arena,
        ['{', '{"jsonrpc":', 'hello', '', ' ', "{'a':1}", '{"a":1}}', '[1,', 'NaN', '\u0000'].filter(
          text => isHttp(arena.era) || text.trim() !== '',
        ),
        parseError,
      ),
  },
  {
    key: 'B04',
    name: 'an argument that is not UTF-8: −32700, and no tool runs',
    fits: era => era.carrier !== 'websocket',
    run: arena => each(arena, [withBytes(arena, [0xff]), withBytes(arena, [0xc3]), withBytes(arena, [0x80, 0x80])], parseError),
  },
  {
    key: 'B05',
    name: 'overlong forms, halves of surrogates, code points that are none: −32700',
    fits: era => era.carrier !== 'websocket',
    run: arena =>
      each(
        arena,
        [
          [0xc0, 0xaf],
          [0xed, 0xa0, 0x80],
          [0xf4, 0x90, 0x80, 0x80],
          [0xe0, 0x80, 0x80],
        ].map(bytes => withBytes(arena, bytes)),
        parseError,
      ),
  },
  {
    key: 'B06',
    name: 'UTF-16, or a mark of byte order before UTF-8: −32700',
    fits: era => era.carrier !== 'websocket',
    run: arena => {
      const text = JSON.stringify(call(arena.era, 'echo', { text: 'a' }))
      return each(arena, [Buffer.from(`\ufeff${text}`, 'utf16le'), Buffer.from(`\ufeff${text}`)], parseError)
    },
  },
]

/** An object whose own text is given, because it says the same thing twice. */
async function twice(arena: Arena, text: string): Promise<Verdict> {
  return withPeer(arena, async peer => {
    const before = (await arena.target.facts()).runs
    const heard = await peer.say(text, { ...echo, awaits: 1 })
    const ran = (await arena.target.facts()).runs - before
    if (heard.status >= 500) return badly(describe(heard))
    // JSON.parse keeps the last; whoever reads the first must not get the other through.
    return judge(ran === 0, `${describe(heard)}, not run`)
  })
}

export const keyAttacks: readonly Attack[] = [
  {
    key: 'B07',
    name: 'a member twice: read once, and the same for all who read it',
    run: arena => {
      const text = JSON.stringify(call(arena.era, 'echo', { text: 'a' }))
      const other = isModern(arena.era) ? 'tools/list' : 'ping'
      return twice(arena, `${text.slice(0, -1)},"method":"${other}"}`)
    },
  },
  {
    key: 'B08',
    name: 'members in another case: not taken for the true ones',
    run: arena => {
      const text = JSON.stringify(call(arena.era, 'echo', { text: 'a' }))
      return twice(arena, text.replace('"method"', '"Method"').replace('"params"', '"PARAMS"'))
    },
  },
  {
    key: 'B09',
    name: '__proto__ in arguments: data like any other, no prototype changes',
    run: arena =>
      withPeer(arena, async peer => {
        const heard = await peer.say(withArguments(arena, '{"__proto__":{"polluted":1,"isAdmin":true},"a":1}'), {
          ...mirror,
          awaits: 1,
        })
        const text = textOf(resultOf(heard)) ?? ''
        return judge(text.includes('"a":1') && !(await arena.target.facts()).polluted, `${describe(heard)} ${text}`)
      }),
  },
  {
    key: 'B10',
    name: 'constructor.prototype in arguments and _meta: likewise',
    run: arena =>
      withPeer(arena, async peer => {
        const args = '{"constructor":{"prototype":{"polluted":1}},"toString":1,"hasOwnProperty":1,"valueOf":{}}'
        const heard = await peer.say(withArguments(arena, args), { ...mirror, awaits: 1 })
        const meta = call(arena.era, 'echo', { text: 'm' }, 2, {
          _meta: { constructor: { prototype: { polluted: 1 } }, progressToken: 'p' },
        })
        const second = await peer.say(meta, { awaits: 2 })
        const fine = textOf(resultOf(heard)) === args && textOf(resultOf(second, 2)) === 'm'
        return judge(fine && !(await arena.target.facts()).polluted, `${describe(heard)}, unchanged`)
      }),
  },
  {
    key: 'B11',
    name: 'ids that are no safe integers: −32600, and no tool runs',
    run: arena => {
      const text = JSON.stringify(call(arena.era, 'echo', { text: 'a' }, 7))
      const ids = ['1e999', '9007199254740993', '1.5', '-9007199254740993', '1e21', '0.1e1000']
      return each(
        arena,
        ids.map(id => text.replace('"id":7', `"id":${id}`)),
        invalid,
      )
    },
  },
  {
    key: 'B12',
    name: 'an id of 100 KiB: −32600, and it does not come back',
    run: arena => each(arena, [JSON.stringify(call(arena.era, 'echo', { text: 'a' }, 'x'.repeat(100_000)))], invalid),
  },
]

const mebibyte = 1024 * 1024

export const sizeAttacks: readonly Attack[] = [
  {
    key: 'B02',
    name: 'arrays nested 100,000 deep: refused before anything recursive sees them',
    run: arena => each(arena, ['['.repeat(100_000), '['.repeat(100_000) + ']'.repeat(100_000)], beyond),
  },
  {
    key: 'B03',
    name: 'objects nested 5,000 deep in arguments: refused, and no tool runs',
    run: arena => each(arena, [withArguments(arena, `${'{"a":'.repeat(5_000)}1${'}'.repeat(5_000)}`)], beyond),
  },
  {
    key: 'B13',
    name: 'a million items, or a hundred thousand objects: refused, and no tool runs',
    memory: 64,
    run: arena =>
      each(
        arena,
        [
          withArguments(arena, `{"a":[${'0,'.repeat(1_000_000)}0]}`),
          withArguments(arena, `{"a":[${'[],{},'.repeat(150_000)}0]}`),
        ],
        beyond,
      ),
  },
  {
    key: 'B14',
    name: 'almost 4 MiB of brackets and quotes inside strings: no stall',
    memory: 96,
    run: arena =>
      withPeer(arena, async peer => {
        const heard = await peer.say(call(arena.era, 'echo', { text: '[{"\\'.repeat(700_000).slice(0, 1_200_000) }), {
          awaits: 1,
          ms: 10_000,
        })
        return judge(textOf(resultOf(heard))?.length === 1_200_000, describe(heard))
      }),
  },
  {
    key: 'B15',
    name: 'a method of 1 MiB: refused in less than 2 KiB',
    memory: 64,
    run: arena =>
      withPeer(arena, async peer =>
        refused(await peer.say(request(arena.era, 'm'.repeat(mebibyte)), { method: 'm', awaits: 1 }), {
          codes: [-32601, -32600, -32020, -32001],
        }),
      ),
  },
  {
    key: 'B16',
    name: 'a tool of 1 MiB: not found in less than 2 KiB',
    memory: 64,
    run: arena =>
      withPeer(arena, async peer => {
        const heard = await peer.say(call(arena.era, 't'.repeat(mebibyte)), { name: 't', awaits: 1 })
        if (heard.text.length > 2_048) return badly(`${heard.text.length} bytes came back`)
        return judge(
          textOf(resultOf(heard)) !== undefined || refused(heard).well,
          `${describe(heard)}, ${heard.text.length} bytes`,
        )
      }),
  },
  {
    key: 'B17',
    name: 'line breaks and escape sequences in names: in no answer and in no log',
    run: arena =>
      withPeer(arena, async peer => {
        const evil = '\u001b[2J\u001b[31mroot\r\nvivarium: forged\u2028line\u009b'
        const before = arena.target.stderr().length
        const one = await peer.say(call(arena.era, evil), {
          name: `=?base64?${Buffer.from(evil).toString('base64')}?=`,
          awaits: 1,
        })
        const two = await peer.say(request(arena.era, evil, {}, 2), { method: 'x', awaits: 2 })
        await arena.target.facts()
        const log = arena.target.stderr().slice(before)
        const said = JSON.stringify([one.frames, two.frames])
        if (/\\u001b|\\u009b|\u2028/.test(said)) return badly(`an answer holds it: ${said.slice(0, 200)}`)
        return judge(!/\u001b|^vivarium: forged/m.test(log), `${describe(one)}, ${describe(two)}`)
      }),
  },
]
