import { afterEach, describe, expect, it } from 'vitest'
import { call, revisions, type World, world } from '../../../../test/reliability/keyed-world.ts'
import { type HttpPeer, httpPeer } from '../../../../test/spec/http.ts'
import { errorOf, resultOf, textOf } from '../../../../test/spec/wire.ts'
import { connect } from '../../../client/index.ts'
import { idempotencyExtension } from './messages.ts'

const worlds: World[] = []
afterEach(async () => {
  for (const { server } of worlds.splice(0)) await server.close()
})

/** One that nobody guesses, as callers need that nobody knows. */
const secret = '0b9c1f1e-6c3f-4d0a-9d53-0f5d5d1f9a11'

async function listen(): Promise<World & { url: string }> {
  const made = world({ store: 'memory:' })
  worlds.push(made)
  return { ...made, url: (await made.server.listen()).url }
}

describe.each(revisions)('the header Idempotency-Key at %s', revision => {
  const ask = (peer: HttpPeer, name: string, headers: Record<string, string>, key?: string) =>
    peer.ask('tools/call', call(name, key), { headers })

  it.each(['idempotency-key', 'x-idempotency-key'])('C7: %s counts like the member of _meta', async header => {
    const { url, runs } = await listen()
    const peer = await httpPeer(url, revision)
    const answers = [await ask(peer, 'say', { [header]: secret }), await ask(peer, 'say', { [header]: `"${secret}"` })]
    answers.push(await ask(peer, 'say', {}, secret))
    expect(answers.map(({ frame }) => textOf(frame))).toEqual(['said 1', 'said 1', 'said 1'])
    expect(runs.get('say')).toBe(1)
  })

  it('C7: must be equal to what _meta says, and to the other spelling', async () => {
    const { url, runs } = await listen()
    const peer = await httpPeer(url, revision)
    const refused = [
      await ask(peer, 'say', { 'idempotency-key': 'a' }, 'b'),
      await ask(peer, 'say', { 'idempotency-key': 'a', 'x-idempotency-key': 'b' }),
      await ask(peer, 'say', { 'idempotency-key': 'not one' }),
    ]
    expect(refused.map(({ frame }) => errorOf(frame).code)).toEqual([-32602, -32602, -32602])
    expect(resultOf((await ask(peer, 'say', { 'idempotency-key': secret }, secret)).frame)).toBeDefined()
    expect(runs.get('say')).toBe(1)
  })

  it('E5-2: a client sends it with a key of its own, which the server tells back', async () => {
    const { server } = await listen()
    const headers: (string | null)[] = []
    const mcp = await connect('http://localhost/mcp', {
      revisions: [revision],
      fetch: (input, init) => {
        headers.push(new Headers(init?.headers).get('idempotency-key'))
        return server.fetch(new Request(input, init))
      },
    })
    const out = await mcp.callTool('say')
    const { idempotency_key: key } = (out.meta?.[idempotencyExtension] ?? {}) as Record<string, unknown>
    expect(key).toMatch(/^[0-9a-f-]{36}$/)
    expect(headers.filter(header => header !== null)).toEqual([key])
    await mcp.close()
  })
})

it('without a principal a session has keys of its own', async () => {
  const { url, runs } = await listen()
  const [one, two] = [await httpPeer(url, '2025-11-25'), await httpPeer(url, '2025-11-25')]
  for (const peer of [one, two, one]) await peer.ask('tools/call', call('say', 'k'))
  expect(runs.get('say')).toBe(2)
})

it('C8: without a principal and without a session only a key that nobody can guess is one, whoever has it', async () => {
  const { url, runs } = await listen()
  const [one, two] = [await httpPeer(url, '2026-07-28'), await httpPeer(url, '2026-07-28')]
  expect(errorOf((await one.ask('tools/call', call('say', 'k'))).frame)).toMatchObject({ code: -32602 })
  expect(runs.get('say')).toBeUndefined()
  for (const peer of [one, two]) await peer.ask('tools/call', call('say', secret))
  expect(runs.get('say')).toBe(1)
})
