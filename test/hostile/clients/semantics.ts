/** C, first half: messages that are none, and parameters that are not what they should be. */
import type { Verdict } from '../case.ts'
import { type Attack, all, badly, describe, errorCode, judge, refused, resultOf, textOf, well } from './attack.ts'
import { unrun, withPeer } from './data.ts'
import type { Peer } from './peer.ts'
import { call, type Era, type Frame, hasBatches, hello, isHttp, isModern, lasts, request } from './wire.ts'

const invalid = { codes: [-32600], statuses: [400] }
const badParams = { codes: [-32602, -32600], statuses: [200, 400] }
const notFound = { codes: [-32601], statuses: [200, 404] }
const echo = { method: 'tools/call', name: 'echo' }

/** A request of another method, refused for its parameters. */
function bad(era: Era, peer: Peer, method: string, params: unknown, ask = badParams): Promise<Verdict> {
  const frame = request(era, method, {}, 5)
  const full = params === undefined || typeof params !== 'object' || params === null || Array.isArray(params)
  const body = { ...frame, params: full ? params : { ...(frame['params'] as Frame), ...(params as Frame) } }
  return peer.say(body as Frame, { awaits: 5 }).then(heard => refused(heard, ask))
}

export const envelopeAttacks: readonly Attack[] = [
  {
    key: 'C01',
    name: 'JSON that is no message: −32600',
    run: arena =>
      withPeer(arena, async peer => {
        const verdicts: Verdict[] = []
        for (const body of ['null', '1', '"text"', 'true', '{}', '[[]]', '[null]'])
          verdicts.push(refused(await peer.say(body, echo), { codes: [-32600], statuses: [200, 400] }))
        return all(verdicts)
      }),
  },
  {
    key: 'C02',
    name: 'no "jsonrpc": −32600, under its id where it has one',
    run: arena =>
      withPeer(arena, peer => unrun(arena, peer, strip(call(arena.era, 'echo', { text: 'a' }), 'jsonrpc'), {}, invalid)),
  },
  {
    key: 'C03',
    name: 'another "jsonrpc" (1.0, the number 2, 2.0 with a space): −32600',
    run: arena =>
      withPeer(arena, async peer => {
        const verdicts: Verdict[] = []
        for (const jsonrpc of ['1.0', 2, '2.0 ', ['2.0'], null])
          verdicts.push(await unrun(arena, peer, { ...call(arena.era, 'echo', { text: 'a' }), jsonrpc }, echo, invalid))
        return all(verdicts)
      }),
  },
  {
    key: 'C04',
    name: 'a method that is no string: −32600',
    run: arena =>
      withPeer(arena, async peer => {
        const verdicts: Verdict[] = []
        for (const method of [1, null, ['tools/call'], { name: 'tools/call' }, true])
          verdicts.push(await unrun(arena, peer, { ...call(arena.era, 'echo', { text: 'a' }), method }, echo, invalid))
        return all(verdicts)
      }),
  },
  {
    key: 'C05',
    name: 'an id that is null, a boolean, an object or an array: −32600',
    run: arena =>
      withPeer(arena, async peer => {
        const verdicts: Verdict[] = []
        for (const id of [null, true, {}, [1], { toString: 1 }])
          verdicts.push(await unrun(arena, peer, { ...call(arena.era, 'echo', { text: 'a' }), id }, echo, invalid))
        return all(verdicts)
      }),
  },
  {
    key: 'C06',
    name: 'an empty method: −32601',
    run: arena =>
      withPeer(arena, async peer =>
        refused(await peer.say(request(arena.era, ''), { awaits: 1 }), { codes: [-32601, -32600, -32020, -32001] }),
      ),
  },
  {
    key: 'C07',
    name: 'methods that nobody offers, names of Object.prototype among them: −32601',
    run: arena =>
      withPeer(arena, async peer => {
        const verdicts: Verdict[] = []
        for (const method of [
          'no/such',
          'rpc.discover',
          'constructor',
          '__proto__',
          'hasOwnProperty',
          'toString',
          'TOOLS/CALL',
          'notifications/initialized',
        ])
          verdicts.push(refused(await peer.say(request(arena.era, method), { awaits: 1 }), notFound))
        return all(verdicts)
      }),
  },
  {
    key: 'C08',
    name: 'params that are an array: refused, and no tool runs',
    run: arena =>
      withPeer(arena, async peer =>
        unrun(arena, peer, { ...call(arena.era, 'echo'), params: ['echo', { text: 'a' }] }, echo, { codes: [-32600, -32602] }),
      ),
  },
  {
    key: 'C09',
    name: 'params that are text, a number or null: refused, and no tool runs',
    run: arena =>
      withPeer(arena, async peer => {
        const verdicts: Verdict[] = []
        for (const params of ['echo', 1, null, false])
          verdicts.push(await unrun(arena, peer, { ...call(arena.era, 'echo'), params }, echo, { codes: [-32600, -32602] }))
        return all(verdicts)
      }),
  },
  {
    key: 'C10',
    name: 'a request that carries a result as well: no tool runs twice, no 5xx',
    run: arena =>
      withPeer(arena, async peer => {
        const before = (await arena.target.facts()).runs
        const heard = await peer.say(
          { ...call(arena.era, 'echo', { text: 'a' }), result: {}, error: { code: 1, message: '' } },
          { awaits: 1 },
        )
        const ran = (await arena.target.facts()).runs - before
        return judge(heard.status < 500 && ran <= 1 && heard.frames.length === 1, describe(heard))
      }),
  },
  {
    key: 'C11',
    name: 'an answer with neither or both of result and error: refused or passed over',
    run: arena =>
      withPeer(arena, async peer => {
        for (const body of [
          { jsonrpc: '2.0', id: 1 },
          { jsonrpc: '2.0', id: 1, result: {}, error: {} },
          { jsonrpc: '2.0', id: 1, error: 'text' },
        ]) {
          const heard = await peer.say(body, {})
          if (heard.status >= 500 || heard.frames.some(frame => frame['result'] !== undefined)) return badly(describe(heard))
        }
        return well('passed over')
      }),
  },
  {
    key: 'C12',
    name: 'notifications that nobody knows, or with parameters of any kind: not answered',
    run: arena =>
      withPeer(arena, async peer => {
        for (const params of [undefined, {}, [], 'x', { requestId: {} }]) {
          for (const method of [
            'no/such',
            'notifications/cancelled',
            'notifications/progress',
            'notifications/roots/list_changed',
            '__proto__',
          ]) {
            const heard = await peer.say({ jsonrpc: '2.0', method, ...(params === undefined ? {} : { params }) }, { method })
            if (heard.status >= 500 || resultOf(heard) !== undefined) return badly(`${method}: ${describe(heard)}`)
            if (!isHttp(arena.era) && heard.frames.length > 0) return badly(`${method} was answered: ${heard.text.slice(0, 100)}`)
          }
        }
        return well('not answered')
      }),
  },
  {
    key: 'C14',
    name: 'a second handshake, or one of another era: refused or harmless',
    run: arena =>
      withPeer(arena, async peer => {
        const heard = await peer.say(hello(arena.era, {}, 9), { awaits: 9 })
        if (heard.status >= 500) return badly(describe(heard))
        const after = await peer.say(call(arena.era, 'echo', { text: 'still' }), { awaits: 1 })
        return judge(textOf(resultOf(after)) === 'still', `${describe(heard)}, then ${describe(after)}`)
      }),
  },
]

function strip(frame: Frame, member: string): Frame {
  return Object.fromEntries(Object.entries(frame).filter(([name]) => name !== member))
}

const batchCodes = { codes: [-32600], statuses: [400] }

export const batchAttacks: readonly Attack[] = [
  {
    key: 'C19',
    name: 'a batch of 10,000: refused whole',
    memory: 96,
    run: arena => {
      const one = JSON.stringify(isModern(arena.era) ? call(arena.era, 'echo', { text: 'a' }) : request(arena.era, 'ping'))
      return withPeer(arena, peer =>
        unrun(arena, peer, `[${Array.from({ length: 10_000 }, () => one).join(',')}]`, echo, batchCodes),
      )
    },
  },
  {
    key: 'C20',
    name: 'an empty batch: −32600',
    run: arena => withPeer(arena, async peer => refused(await peer.say('[]', echo), batchCodes)),
  },
  {
    key: 'C21',
    name: 'batches in batches, and a handshake in one: refused',
    run: arena =>
      withPeer(arena, async peer => {
        const one = JSON.stringify(call(arena.era, 'echo', { text: 'a' }))
        const bodies = [`[[${one}]]`, `[[[[${one}]]]]`, `[${JSON.stringify(hello(arena.era))}]`, `[[],[]]`]
        const verdicts: Verdict[] = []
        for (const body of bodies) verdicts.push(await unrun(arena, peer, body, echo, { codes: [-32600], statuses: [200, 400] }))
        return all(verdicts)
      }),
  },
  {
    key: 'C22',
    name: 'a batch where there are none: refused whole, and no tool runs',
    fits: era => !hasBatches(era),
    run: arena => {
      const body = JSON.stringify([call(arena.era, 'echo', { text: 'a' }), call(arena.era, 'echo', { text: 'b' }, 2)])
      return withPeer(arena, peer => unrun(arena, peer, body, echo, batchCodes))
    },
  },
  {
    key: 'C22',
    name: 'a batch with the same id a hundred times: a hundred answers',
    fits: hasBatches,
    run: arena =>
      withPeer(arena, async peer => {
        const body = JSON.stringify(Array.from({ length: 100 }, (_, at) => call(arena.era, 'echo', { text: `${at}` })))
        const heard = await peer.say(body, {})
        const texts = new Set(heard.frames.map(frame => textOf(frame['result'] as Frame)))
        return judge(heard.frames.length === 100 && texts.size === 100, `${texts.size} answers`)
      }),
  },
]

const magic = ['constructor', '__proto__', 'toString', 'hasOwnProperty', 'valueOf', 'prototype']

export const namesAttacks: readonly Attack[] = [
  {
    key: 'C30',
    name: 'tools named like members of Object.prototype: not found',
    run: arena => eachName(arena, name => call(arena.era, name)),
  },
  {
    key: 'C31',
    name: 'prompts named like members of Object.prototype: not found',
    run: arena => eachName(arena, name => request(arena.era, 'prompts/get', { name })),
  },
  {
    key: 'C32',
    name: 'resources and completions named so: not found, or nothing to offer',
    run: arena =>
      withPeer(arena, async peer => {
        for (const name of magic) {
          const read = refused(await peer.say(request(arena.era, 'resources/read', { uri: name }), { awaits: 1 }))
          if (!read.well) return badly(`${name}: ${read.detail}`)
          const complete = { ref: { type: 'ref/prompt', name }, argument: { name, value: '' } }
          const heard = await peer.say(request(arena.era, 'completion/complete', complete), { awaits: 1 })
          if (heard.status >= 500 || errorCode(heard) === -32603) return badly(`completion of ${name}: ${describe(heard)}`)
        }
        return well('not found')
      }),
  },
]

async function eachName(arena: Parameters<Attack['run']>[0], make: (name: string) => Frame): Promise<Verdict> {
  return withPeer(arena, async peer => {
    let last = ''
    for (const name of magic) {
      const heard = await peer.say(make(name), { awaits: 1 })
      last = describe(heard)
      const code = errorCode(heard)
      const text = textOf(resultOf(heard)) ?? ''
      const told = code === -32602 || code === -32601 || code === -32002 || /no tool|not found|unknown/i.test(text)
      if (!told || heard.status >= 500) return badly(`${name}: ${last} ${heard.text.slice(0, 150)}`)
    }
    return well(last)
  })
}

export const parameterAttacks: readonly Attack[] = [
  {
    key: 'C26',
    name: 'progress tokens that are objects, or a megabyte long: not sent back with every step',
    run: arena =>
      withPeer(arena, async peer => {
        for (const progressToken of [{}, [], null, 1.5, 'x'.repeat(1024 * 1024)]) {
          const heard = await peer.say(
            call(arena.era, 'flood', { pieces: 3, bytes: 1, kind: 'progress' }, 1, { _meta: { progressToken } }),
            { awaits: 1 },
          )
          if (heard.status >= 500 || heard.text.length > 4_096) return badly(`${describe(heard)}, ${heard.text.length} bytes`)
        }
        return well('not repeated')
      }),
  },
  {
    key: 'C27',
    name: 'cursors that were never given out: −32602',
    run: arena =>
      withPeer(arena, async peer => {
        const verdicts: Verdict[] = []
        for (const cursor of ['x', '__proto__', 'A'.repeat(100_000), '../../etc', '-1', 5, {}])
          for (const method of ['tools/list', 'resources/list']) verdicts.push(await bad(arena.era, peer, method, { cursor }))
        return all(verdicts)
      }),
  },
  {
    key: 'C28',
    name: '_meta that is no object: refused, or taken for none',
    run: arena =>
      withPeer(arena, async peer => {
        for (const _meta of ['x', 1, [], null]) {
          const frame = call(arena.era, 'echo', { text: 'a' })
          const heard = await peer.say({ ...frame, params: { ...(frame['params'] as Frame), _meta } }, { awaits: 1 })
          if (heard.status >= 500 || errorCode(heard) === -32603) return badly(describe(heard))
        }
        return well('no harm')
      }),
  },
  {
    key: 'C33',
    name: 'URIs made to make a matcher go back and forth: answered at once',
    run: arena =>
      withPeer(arena, async peer => {
        const uris = [
          `note://${'a'.repeat(8_000)}`,
          `deep://${'a/'.repeat(4_000)}`,
          `deep://a/b/c?${'d=1&'.repeat(2_000)}`,
          `tree:///${'%2f'.repeat(2_500)}`,
          `deep://${'/'.repeat(8_000)}!`,
        ]
        for (const uri of uris) {
          const started = performance.now()
          const heard = await peer.say(request(arena.era, 'resources/read', { uri }), { awaits: 1 })
          const ms = performance.now() - started
          if (heard.status >= 500 || ms > 2_000) return badly(`${describe(heard)} after ${ms.toFixed(0)} ms`)
        }
        return well('no stall')
      }),
  },
  {
    key: 'C34',
    name: 'addresses that climb out, or are none: refused',
    run: arena =>
      withPeer(arena, async peer => {
        const uris = [
          'file:///etc/passwd',
          'note://../../etc/passwd',
          '../../etc/passwd',
          'no uri at all',
          '',
          'note://',
          '\u0000',
          'note://%2e%2e%2fetc',
          'javascript:alert(1)',
          'x'.repeat(100_000),
        ]
        for (const uri of uris) {
          const heard = await peer.say(request(arena.era, 'resources/read', { uri }), { name: headerSafe(uri), awaits: 1 })
          if (heard.status >= 500 || errorCode(heard) === -32603 || /root:/.test(heard.text))
            return badly(`${uri.slice(0, 40)}: ${describe(heard)}`)
        }
        return well('refused')
      }),
  },
  {
    key: 'C35',
    name: 'log levels that are none: −32602',
    fits: era => !isModern(era) && lasts(era),
    run: arena =>
      withPeer(arena, async peer => {
        const verdicts: Verdict[] = []
        for (const level of ['loud', '__proto__', 'constructor', 1, null, undefined, {}])
          verdicts.push(await bad(arena.era, peer, 'logging/setLevel', { level }, { codes: [-32602], statuses: [200, 400] }))
        return all(verdicts)
      }),
  },
  {
    key: 'C36',
    name: 'arguments of the wrong kind, thousands of them: told in less than 4 KiB',
    run: arena =>
      withPeer(arena, async peer => {
        const junk = Object.fromEntries(Array.from({ length: 5_000 }, (_, at) => [`key ${at}`, at]))
        const heard = await peer.say(call(arena.era, 'echo', { ...junk, text: { deep: 'x'.repeat(100_000) } }), { awaits: 1 })
        if (heard.status >= 500 || heard.text.length > 4_096) return badly(`${describe(heard)}, ${heard.text.length} bytes`)
        return judge(errorCode(heard) === -32602 || resultOf(heard)?.['isError'] === true, describe(heard))
      }),
  },
  {
    key: 'C37',
    name: 'completions of a megabyte, of unknown kinds, of nothing: refused or empty',
    run: arena =>
      withPeer(arena, async peer => {
        const asks = [
          { ref: { type: 'ref/prompt', name: 'greet' }, argument: { name: 'name', value: 'x'.repeat(1024 * 1024) } },
          { ref: { type: 'ref/nothing', name: 'greet' }, argument: { name: 'name', value: '' } },
          { ref: null, argument: null },
          { ref: { type: 'ref/resource', uri: 'no://{such}' }, argument: { name: '__proto__', value: '' } },
          {},
        ]
        for (const params of asks) {
          const heard = await peer.say(request(arena.era, 'completion/complete', params), { awaits: 1 })
          if (heard.status >= 500 || errorCode(heard) === -32603 || heard.text.length > 4_096)
            return badly(`${describe(heard)}, ${heard.text.length} bytes`)
        }
        return well('refused or empty')
      }),
  },
  {
    key: 'C38',
    name: 'arguments that are no object: refused, and no tool runs',
    run: arena =>
      withPeer(arena, async peer => {
        for (const args of ['text', 1, [], [{ text: 'a' }], null, true]) {
          const before = (await arena.target.facts()).runs
          const heard = await peer.say(call(arena.era, 'echo', args), { awaits: 1 })
          const code = errorCode(heard)
          if ((await arena.target.facts()).runs > before) return badly('the tool ran')
          const told = code === -32602 || code === -32600 || resultOf(heard)?.['isError'] === true
          if (!told || heard.status >= 500) return badly(`${JSON.stringify(args)}: ${describe(heard)}`)
        }
        return well('refused')
      }),
  },
]

/** What a header can carry: the name as it is, or encoded (2026-07-28 basic/transports). */
function headerSafe(text: string): string {
  const plain = /^[\x21-\x7e]([\x20-\x7e]{0,200}[\x21-\x7e])?$/.test(text)
  return plain ? text : `=?base64?${Buffer.from(text.slice(0, 4_000)).toString('base64')}?=`
}
