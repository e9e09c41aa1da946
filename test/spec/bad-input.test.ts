/** Bad input names what is wrong and what would be right, echoes at most 80 characters of it, and touches nobody else. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import type { RevisionId } from '../../src/revisions/index.ts'
import { createServer, jsonSchema, type Server } from '../../src/server/index.ts'
import { type HttpPeer, headersFor, httpPeer, send } from './http.ts'
import { callName, envelope, everyRevision, type Frame, speak, type Wire } from './wire.ts'

let server: Server
let url: string

beforeAll(async () => {
  server = createServer({ name: 'patient', version: '1.0.0', revisions: everyRevision })
  server.tool('strict', { input: z.strictObject({ name: z.enum(['a', 'b']), when: z.iso.date().optional() }) }, () => 'ok')
  server.tool(
    'schema',
    {
      input: jsonSchema({
        type: 'object',
        properties: { kind: { enum: ['a', 'b'] }, at: { type: 'string', pattern: '^a+$' } },
        additionalProperties: false,
      }),
    },
    () => 'ok',
  )
  server.tool('asks', {}, async (_, ctx) => ((await ctx.confirm('Sure?')) ? 'yes' : 'no'))
  server.tool('echo', { input: jsonSchema({ type: 'object' }) }, args => JSON.stringify(args))
  server.tool('late', { input: jsonSchema<{ nonce: string }>({ type: 'object' }) }, async ({ nonce }) => {
    for (let turn = 0; turn < nonce.length; turn++) await new Promise<void>(resolve => setImmediate(() => resolve()))
    return nonce
  })
  server.resource('memo://{id}', { name: 'memo', complete: { id: () => [] } }, ({ id }) => (id === 'x' ? 'x' : undefined))
  server.prompt('brief', { arguments: { topic: { required: true } } }, () => 'x')
  url = (await server.listen()).url
})
afterAll(() => server.close())

/** The longest run of our letter in a text: how much of what we sent came back. */
const echoed = (text: string): number => Math.max(0, ...[...text.matchAll(/q+/g)].map(([run]) => run.length))
const long = 'q'.repeat(5_000)

function hostile(revision: RevisionId): readonly (readonly [method: string, params: Frame])[] {
  const call = callName(revision)
  return [
    [long, {}],
    [call, { name: long }],
    [call, { name: 'strict', arguments: { [long]: 1, name: 'a' } }],
    [call, { name: 'strict', arguments: { name: long } }],
    [call, { name: 'strict', arguments: { name: 'a', when: long } }],
    [call, { name: 'schema', arguments: { [long]: 1 } }],
    [call, { name: 'schema', arguments: { kind: long, at: long } }],
    [call, { name: 'strict', arguments: long }],
    [call, { name: 'asks', requestState: long }],
    [call, { name: 'asks', inputResponses: { [long]: long } }],
    ['resources/read', { uri: long }],
    ['resources/read', { uri: `memo://${long}` }],
    ['prompts/get', { name: long }],
    ['prompts/get', { name: 'brief', arguments: { [long]: 7 } }],
    ['prompts/get', { name: 'brief', arguments: { [long]: long } }],
    ['tools/list', { cursor: long }],
    ['completion/complete', { ref: { type: long, name: long }, argument: { name: long, value: long } }],
    ['completion/complete', { ref: { type: 'ref/prompt', name: long }, argument: { name: long, value: long } }],
    ['completion/complete', { ref: { type: 'ref/resource', uri: 'memo://{id}' }, argument: { name: long, value: long } }],
    ['logging/setLevel', { level: long }],
    ['initialize', { protocolVersion: long, capabilities: long, clientInfo: long }],
    ['initialize', { [long]: long }],
    ['tasks/get', { taskId: long }],
    ['subscriptions/listen', { notifications: { toolsListChanged: long, [long]: long } }],
  ]
}

/** Errors, and results that report one. */
function failures(frames: readonly Frame[]): string[] {
  return frames
    .filter(frame => frame['error'] !== undefined || JSON.stringify(frame['result'] ?? '').includes('isError'))
    .map(frame => JSON.stringify(frame))
}

describe.each(everyRevision)('never more than 80 characters come back at %s', revision => {
  it('on a pipe', async () => {
    const wire = await speak(server, revision)
    for (const [method, params] of hostile(revision)) wire.begin(method, params)
    for (const text of [
      `{"jsonrpc":"2.0","id":1,"method":"${long}`,
      `"${long}"`,
      `{"jsonrpc":"${long}","id":1,"method":"x"}`,
      `{"${long}":1}`,
      long,
    ])
      wire.say(text)
    const heard = await wire.quiet()
    expect(failures(heard).length).toBeGreaterThan(15)
    for (const text of failures(heard)) expect([echoed(text) <= 80, text.slice(0, 200)]).toEqual([true, text.slice(0, 200)])
    for (const text of failures(heard)) expect(text.length).toBeLessThan(1_000)
    await wire.close()
  })
})

describe.each(['2025-11-25', '2026-07-28', 'draft-2026-v1'] as const)('over HTTP at %s', revision => {
  let peer: HttpPeer
  beforeAll(async () => {
    peer = await httpPeer(url, revision)
  })

  it('neither headers nor bodies come back at length', async () => {
    for (const [method, params] of hostile(revision)) {
      const { text } = await peer.ask(method, params, {
        headers: { 'mcp-method': method.slice(0, 4_000), 'mcp-name': undefined },
      })
      expect(echoed(text)).toBeLessThanOrEqual(80)
    }
    for (const headers of [
      { 'mcp-protocol-version': long },
      { 'mcp-session-id': long },
      { 'mcp-method': long },
      { 'mcp-name': long },
      { origin: `http://${long}` },
      { 'content-type': long },
      { accept: long },
      { 'content-encoding': long },
      { 'last-event-id': long },
    ]) {
      for (const method of ['POST', 'GET', 'DELETE']) {
        const body =
          method === 'POST'
            ? { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'echo', _meta: envelope(revision) } }
            : undefined
        const all = { ...headersFor(revision, 'tools/call', { name: 'echo' }, peer.session), ...headers }
        if (
          method === 'GET' &&
          !(
            'mcp-protocol-version' in headers ||
            'mcp-session-id' in headers ||
            'accept' in headers ||
            'origin' in headers ||
            'last-event-id' in headers
          )
        )
          continue
        expect(echoed((await send(url, { method, headers: all, body })).text)).toBeLessThanOrEqual(80)
      }
      peer = await httpPeer(url, revision)
    }
  })

  it('a path that nobody serves is 404 and clipped', async () => {
    const answer = await send(`${new URL(url).origin}/${long}`, {})
    expect([answer.status, echoed(answer.text) <= 80]).toEqual([404, true])
  })
})

describe('control characters do not come back', () => {
  it.each(everyRevision)('%s', async revision => {
    const wire = await speak(server, revision)
    const nasty = 'a\u001b[31m\u0000\n\r\u2028b'
    const answers = [
      await wire.ask(nasty),
      await wire.ask(callName(revision), { name: nasty }),
      await wire.ask('resources/read', { uri: nasty }),
      await wire.ask('prompts/get', { name: nasty }),
    ]
    for (const answer of answers) expect((answer['error'] as { message: string }).message).not.toMatch(/[\u0000-\u001f\u2028]/)
    await wire.close()
  })
})

describe('nobody else is touched', () => {
  it.each(everyRevision)(
    '%s: callers who all use one id each get their own answers, and all of them (C23, C24)',
    async revision => {
      const wires = await Promise.all(Array.from({ length: 10 }, () => speak(server, revision)))
      const call = callName(revision)
      for (let turn = 0; turn < 20; turn++)
        for (const [who, wire] of wires.entries()) wire.begin(call, { name: 'late', arguments: { nonce: `n${who}.${turn}.` } }, 1)
      const counts = await Promise.all(
        wires.map(async (wire, who) => {
          for (let turn = 0; turn < 20; turn++) await wire.next(frame => frame['id'] === 1)
          const text = wire.texts.join('')
          const own = Array.from({ length: 20 }, (_, turn) => text.includes(`n${who}.${turn}.`)).every(Boolean)
          return [own, text.match(/n\d+\./g)?.every(nonce => nonce === `n${who}.`)]
        }),
      )
      expect(counts).toEqual(wires.map(() => [true, true]))
      for (const wire of wires) await wire.close()
    },
  )

  it('by a connection that says only nonsense', async () => {
    const good = await speak(server, '2025-11-25')
    const nonsense = await Promise.all(everyRevision.map(revision => speak(server, revision)))
    const texts = [
      '',
      '[',
      '{}',
      'null',
      '[[]]',
      '{"jsonrpc":"2.0"}',
      '\u0000',
      '{"jsonrpc":"2.0","id":"x","method":"__proto__","params":{"__proto__":{"polluted":1}}}',
    ]
    for (const wire of nonsense) for (const text of texts) wire.say(text)
    await Promise.all(nonsense.map((wire: Wire) => wire.quiet()))
    expect(await good.ask('tools/call', { name: 'echo' })).toHaveProperty('result')
    expect(({} as Frame)['polluted']).toBeUndefined()
  })

  it('by names that objects inherit: arguments reach the tool as they were sent', async () => {
    const wire = await speak(server, '2026-07-28')
    const args = JSON.parse('{"__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}}}')
    const answer = await wire.ask('tools/call', { name: 'echo', arguments: args })
    expect(JSON.stringify(answer)).toContain('__proto__')
    expect(({} as Frame)['polluted']).toBeUndefined()
    await wire.close()
  })

  it('by what a handler writes into its arguments', async () => {
    const shared = createServer({ name: 'shared', version: '1' })
    const collect = (args: unknown): string => {
      const before = Object.keys(args as object).length
      Object.assign(args as object, { [`seen${before}`]: true })
      return String(before)
    }
    shared.tool('bare', {}, collect)
    shared.tool('open', { input: jsonSchema({ type: 'object' }) }, collect)
    shared.prompt('p', {}, collect)
    const wire = await speak(shared, '2025-11-25')
    for (let turn = 0; turn < 3; turn++) {
      for (const name of ['bare', 'open']) expect(JSON.stringify(await wire.ask('tools/call', { name }))).toContain('"text":"0"')
      expect(JSON.stringify(await wire.ask('prompts/get', { name: 'p' }))).toContain('"text":"0"')
    }
    await wire.close()
  })
})
