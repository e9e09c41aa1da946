import { expect, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import { connect } from '../../src/client/index.ts'
import { createGateway } from '../../src/gateway/index.ts'
import { createServer } from '../../src/server/index.ts'
import { memoryStore, type Store } from '../../src/stores/index.ts'

const secret = 'a secret of the tests, which both replicas have'

/** A server of an old wire whose tool asks twice in a row, and says how often it was called. */
async function asker() {
  const server = createServer({ name: 'asker', version: '1.0.0', revisions: ['2025-11-25'], limits: { rates: false } })
  let calls = 0
  const form = z.object({ fish: z.string() })
  server.tool('order', {}, async (_, ctx) => {
    calls++
    const first = await ctx.elicit({ message: 'First?', schema: form })
    const second = await ctx.elicit({ message: 'Second?', schema: form })
    const said = [first, second].map(answer => (answer.action === 'accept' ? answer.content.fish : answer.action))
    return said.join(' and ')
  })
  onTestFinished(() => server.close())
  return { url: (await server.listen()).url, calls: () => calls }
}

/** Two gateways before it, and a client whose requests go to one and the other in turn. */
async function replicas(url: string, stores: readonly [Store | string, Store | string]) {
  const both = await Promise.all(
    stores.map(store => createGateway({ servers: { asker: url }, store, secret, limits: { rates: false } })),
  )
  for (const gateway of both) onTestFinished(() => gateway.close())
  await Promise.all(both.map(gateway => gateway.ready()))
  const urls = await Promise.all(both.map(async gateway => (await gateway.listen()).url))
  const used: number[] = []
  let turn = 0
  const inTurn: typeof fetch = (input, init) => {
    const at = turn++ % urls.length
    used.push(at)
    return fetch(String(input).replace(urls[0] ?? '', urls[at] ?? ''), init)
  }
  return { both, urls, used, inTurn }
}

test('the answer to a question reaches the call, whichever replica it comes to', async () => {
  const store = memoryStore()
  const { url, calls } = await asker()
  const { urls, inTurn } = await replicas(url, [store, store])
  const asked: string[] = []
  await using client = await connect(urls[0] ?? '', {
    fetch: inTurn,
    revisions: ['2026-07-28'],
    onElicit: ({ message }) => {
      asked.push(message)
      return { action: 'accept', content: { fish: message === 'First?' ? 'cod' : 'hake' } }
    },
  })
  for (let i = 1; i <= 3; i++) {
    expect((await client.callTool('order')).text).toBe('cod and hake')
    expect([calls(), asked.length]).toEqual([i, 2 * i])
  }
})

test('where the replica that made the call has gone its outcome is unknown, and it is not made again', async () => {
  const store = memoryStore()
  const { url, calls } = await asker()
  const { both, urls } = await replicas(url, [store, store])
  let gone = false
  await using client = await connect(urls[0] ?? '', {
    revisions: ['2026-07-28'],
    fetch: (input, init) => fetch(String(input).replace(urls[0] ?? '', gone ? (urls[1] ?? '') : (urls[0] ?? '')), init),
    onElicit: async () => {
      gone = true
      await both[0]?.close()
      return { action: 'accept', content: { fish: 'cod' } }
    },
  })
  const outcome = await client.callTool('order')
  expect(outcome).toMatchObject({ isError: true, problem: { code: 'OUTCOME_UNKNOWN' } })
  expect(calls()).toBe(1)
})
