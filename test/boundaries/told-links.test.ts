/** Addresses that a server gives one caller inside a result are that caller's: nobody else reads them, and nobody else's calls make them forgotten. */
import { expect, it } from 'vitest'
import { z } from 'zod'
import { reply } from '../../src/server/index.ts'
import { enveloped } from '../spec/wire.ts'
import { type From, hello, post, user } from './raw-posts.ts'
import { behind, gatewayOf } from './tenants.ts'

/** The tool `report` links to `report://WHO`, which is in no list. */
async function reporting() {
  const made = behind('reports')
  made.server.tool('report', { input: z.object({ who: z.string() }) }, ({ who }) =>
    reply({ content: [{ type: 'resource_link', uri: `report://${who}`, name: who }] }),
  )
  made.server.resource('other://1', { name: 'other' }, () => '')
  made.server.engine.unlisted = uri => (uri.startsWith('report://') ? () => `about ${uri.slice(9)}` : undefined)
  const { server } = await gatewayOf({ reports: made })
  const ask = async (method: string, params: Record<string, unknown>, from: From): Promise<string> => {
    const body = { method, params: from.session === undefined ? enveloped('2026-07-28', params) : params }
    return JSON.stringify((await post(server, body, { ...from, name: String(params['name'] ?? params['uri']) })).frame)
  }
  return {
    /** The address that the caller is told. */
    told: async (who: string, from: From): Promise<string> =>
      /"uri":"([^"]+)"/.exec(await ask('tools/call', { name: 'report', arguments: { who } }, from))?.[1] ?? '',
    read: (uri: string, from: From) => ask('resources/read', { uri }, from),
    session: async (address: string): Promise<From> => ({ address, session: (await post(server, hello, { address })).session }),
  }
}

it.each<[string, From, From]>([
  ['without a token or a session', { address: '192.0.2.1' }, { address: '192.0.2.2' }],
  ['without a token, in the same network', { address: '192.0.2.1' }, { address: '192.0.2.1' }],
  ['of another user', { principal: user('ann') }, { principal: user('bob') }],
])('what one was told is not read by a caller %s who guesses it', async (_, ann, bob) => {
  const { told, read } = await reporting()
  const uri = await told('ann', ann)
  expect(await read('report://ann', bob)).toContain('There is no resource')
  expect(await read(uri, ann)).toContain('about ann')
})

it('one caller with many sessions makes nobody else forget what was told', async () => {
  const { told, read, session } = await reporting()
  const bob = await session('198.51.100.1')
  const uri = await told('bob', bob)
  for (let i = 0; i < 1_001; i++) await told(`flood-${i}`, await session('203.0.113.9'))
  expect(await read(uri, bob)).toContain('about bob')
})

it('strangers without sessions who are told much forget only what their own network was told', async () => {
  const { told, read } = await reporting()
  const [bob, mallory] = [{ address: '198.51.100.1' }, { address: '203.0.113.9' }]
  const uri = await told('bob', bob)
  for (let i = 0; i < 1_001; i++) await told(`flood-${i}`, mallory)
  expect(await read(uri, bob)).toContain('about bob')
})
