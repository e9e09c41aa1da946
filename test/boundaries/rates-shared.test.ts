/** A rate is of a caller, not of what a caller can have many of: connections, and programs that act for one user. */
import { describe, expect, it, onTestFinished } from 'vitest'
import { createServer, type Server } from '../../src/server/index.ts'
import { enveloped } from '../spec/wire.ts'
import { type From, post, user } from './raw-posts.ts'

const revision = '2026-07-28'

function rated(): Server {
  const server = createServer({
    name: 'rated',
    version: '1.0.0',
    log: 'silent',
    limits: { rates: { completions: { perSecond: 0.001, burst: 1 } } },
  })
  onTestFinished(() => server.close())
  server.tool('pay', { rate: { perSecond: 0.001, burst: 1 } }, () => 'paid')
  server.prompt('greet', { arguments: { name: { complete: () => ['ann'] } } }, () => 'Hello')
  return server
}

const call = { method: 'tools/call', params: enveloped(revision, { name: 'pay', arguments: {} }) }
const complete = {
  method: 'completion/complete',
  params: enveloped(revision, { ref: { type: 'ref/prompt', name: 'greet' }, argument: { name: 'name', value: '' } }),
}

/** Whether each of two requests, one after the other, was let in. */
async function letIn(server: Server, body: typeof call, first: From, second: From): Promise<readonly boolean[]> {
  const [one, two] = [await post(server, body, first), await post(server, body, second)]
  return [one, two].map(({ frame }) => !JSON.stringify(frame).includes('Too many'))
}

describe.each([
  ['the rate of a tool', call],
  ['the rate of completions', complete],
])('%s', (_, body) => {
  it.each<[string, From, From]>([
    ['another connection from the same address', { address: '192.0.2.1' }, { address: '192.0.2.1' }],
    ['another address of the same network', { address: '2001:db8:0:100::1' }, { address: '2001:db8:0:1ff::2' }],
    ['another program of the same user', { principal: user('ann', 'one') }, { principal: user('ann', 'two') }],
    [
      'another connection of the same user',
      { principal: user('ann'), address: '192.0.2.1' },
      { principal: user('ann'), address: '192.0.2.2' },
    ],
  ])('is not begun anew by %s', async (__, first, second) => {
    expect(await letIn(rated(), body, first, second)).toEqual([true, false])
  })

  it.each<[string, From, From]>([
    ['another network', { address: '192.0.2.1' }, { address: '192.0.2.2' }],
    ['another user', { principal: user('ann') }, { principal: user('bob') }],
    ['a user of the same network', { address: '192.0.2.1' }, { address: '192.0.2.1', principal: user('bob') }],
    ['whoever else comes by a proxy of this machine', { address: '127.0.0.1' }, { address: '127.0.0.1' }],
  ])('is not used up for %s', async (__, first, second) => {
    expect(await letIn(rated(), body, first, second)).toEqual([true, true])
  })
})
