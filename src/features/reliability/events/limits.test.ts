import { afterEach, describe, expect, it } from 'vitest'
import { eras } from '../../../../test/spec/consent.ts'
import { listener, subscribe, subscriber } from '../../../../test/spec/eventing.ts'
import { type Frame, resultOf } from '../../../../test/spec/wire.ts'
import { createServer, type Server, type ServerOptions } from '../../../server/index.ts'
import { memoryStore } from '../../../stores/memory.ts'
import { type Store, StoreError } from '../../../stores/store.ts'
import { fakeClock } from '../../../testing/index.ts'

const servers: Server[] = []
afterEach(async () => {
  for (const server of servers.splice(0)) await server.close()
})

function serve(options: Partial<ServerOptions>): Server {
  const server = createServer({ name: 'limits', version: '1.0.0', log: 'silent', ...options })
  servers.push(server)
  return server
}

/** A store whose long reads fail, as those of a reader who comes from far behind. */
function failing(): Store {
  const store = memoryStore()
  return {
    get: key => store.get(key),
    scan: (prefix, options) => store.scan(prefix, options),
    commit: ops => store.commit(ops),
    watch: (prefixes, signal) => store.watch(prefixes, signal),
    close: () => store.close(),
    read: async (log, options) => {
      if (options?.limit === 102) throw new StoreError('failed', 'The disk is too slow')
      return store.read(log, options)
    },
  }
}

describe.each(eras)('at %s', revision => {
  it('E15-5: a subscription that cannot be served is told that it ended, and where to go on', async () => {
    const store = failing()
    const before = serve({ store })
    const noted = before.event('noted', {})
    const one = await subscriber(before, revision, { events: ['noted'] })
    await noted.emit({ n: 1 })
    const server = serve({ store })
    server.event('noted', {})
    const late = await subscriber(server, revision, { events: ['noted'], cursor: one.response.cursor })
    await expect.poll(() => late.terminated()).toEqual(['overload'])
    const { params } = await late.wire.next(({ method }) => method === 'notifications/event/terminated')
    expect((params as Frame)['cursor']).toBe(one.response.cursor)
    expect(late.events()).toEqual([])
    await one.heard(1)
  })

  it('E15-5, X5: a grant that ends in time ends what hangs on it, though nothing happens', async () => {
    const clock = fakeClock()
    const grant = { grant: ({ scopes }: { scopes: readonly string[] }) => scopes, ttl: 60_000 }
    const server = serve({ clock, permissions: grant })
    server.event('audited', { scopes: ['audit'] })
    const wire = await listener(server, revision)
    const { session } = resultOf(await wire.ask('permissions/negotiate', { requested_scopes: ['audit'] }))
    const meta = { 'dev.vivarium/permissions': { session_token: (session as Frame)['token'] } }
    const one = await subscribe(wire, revision, { events: ['audited'] }, meta)
    expect(one.response.status).toBe('active')
    await expect
      .poll(() => {
        clock.advance(5_000)
        return one.terminated()
      })
      .toEqual(['revoked'])
  })

  it('E15-6: who hears nothing for long is told how far nothing was, and comes back from there without loss', async () => {
    const server = serve({ events: { keep: 100 } })
    const [rare, often] = [server.event('rare', {}), server.event('often', {})]
    const one = await subscriber(server, revision, { events: ['rare'] })
    await rare.emit({ n: 1 })
    const [first] = await one.heard(1)
    for (let n = 0; n < 500; n++) {
      await often.emit({ n })
      if (n % 25 === 0) await one.wire.quiet()
    }
    const bookmarks = one.wire.heard.filter(({ method }) => method === 'notifications/event/bookmark')
    const places = bookmarks.map(({ params }) => params as { cursor: string; previous_cursor: string; truncated?: boolean })
    expect(places.length).toBeGreaterThan(2)
    expect(places.map(place => place.previous_cursor)).toEqual(
      [first?.cursor, ...places.map(({ cursor }) => cursor)].slice(0, -1),
    )
    expect(places.some(({ truncated }) => truncated)).toBe(false)
    const again = await subscriber(server, revision, { events: ['rare'], cursor: places.at(-1)?.cursor })
    expect(again.response.truncated).toBeUndefined()
    await rare.emit({ n: 2 })
    expect((await again.heard(1))[0]?.truncated).toBeUndefined()
  })
})

it('events that were kept on disk are there for the next process, and those of another server are not', async () => {
  const store = memoryStore()
  const before = serve({ store })
  const noted = before.event('noted', {})
  const one = await subscriber(before, '2026-07-28', { events: ['noted'] })
  await noted.emit({ n: 1 })
  await before.close()
  const after = serve({ store })
  after.event('noted', {})
  const again = await subscriber(after, '2026-07-28', { events: ['noted'], cursor: one.response.cursor })
  expect((await again.heard(1)).map(({ payload }) => payload)).toEqual([{ n: 1 }])
  const other = serve({ store, name: 'other' })
  other.event('noted', {})
  const elsewhere = await subscriber(other, '2026-07-28', { events: ['noted'], cursor: one.response.cursor })
  expect([elsewhere.response.truncated, elsewhere.events()]).toEqual([true, []])
})
