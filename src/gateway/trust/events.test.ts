import { expect, it, onTestFinished } from 'vitest'
import { createServer } from '../../server/index.ts'
import { connectInMemory, fakeClock } from '../../testing/index.ts'
import { UpstreamEvents } from './events.ts'

it('a server that speaks of more than can be told keeps nobody from hearing what another one says', async () => {
  const server = createServer({ name: 'gateway', version: '1.0.0', log: 'silent' })
  onTestFinished(() => server.close())
  const failures: unknown[] = []
  // The time stands still: nothing more is told of the one that spoke too much.
  const news = new UpstreamEvents(true, () => server, {
    store: undefined,
    clock: fakeClock(0),
    failed: error => void failures.push(error),
  })
  onTestFinished(() => news.close())
  for (const name of ['news', 'shop']) news.offer(name)
  const client = await connectInMemory(server)
  onTestFinished(() => client.close())
  const events = client.events(['shop/resource_updated'])
  await events.ready
  for (let i = 0; i < 10_001; i++) news.updated('news', 'news://all', `news://all/${i}`)
  news.updated('shop', 'shop://sale', 'shop://sale')
  expect(failures.map(String).filter(text => text.includes('shop/'))).toEqual([])
  const { value } = await events[Symbol.asyncIterator]().next()
  expect(value?.payload).toEqual({ upstream: 'shop', uri: 'shop://sale' })
})
