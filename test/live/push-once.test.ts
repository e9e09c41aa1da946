/** An event that a host has answered is over: on every store and wire, whoever has left or comes back, and after a restart. */
import { expect, onTestFinished, test } from 'vitest'
import { createHost } from '../../src/host/create.ts'
import { scripted } from '../../src/host/models/scripted.ts'
import { officialRevisions, type RevisionId } from '../../src/revisions/index.ts'
import { createServer } from '../../src/server/index.ts'
import { memoryStore } from '../../src/stores/memory.ts'
import type { Store } from '../../src/stores/store.ts'
import { memoryPair } from '../../src/transports/memory.ts'
import { storeKinds, storesUnderTest } from '../stores-under-test.ts'

const stores = storesUnderTest()
type Target = string | ReturnType<typeof inMemory>

async function pushing(store: Store, wire: 'http' | 'websocket' | 'memory' = 'http') {
  const server = createServer({ name: 's', version: '1.0.0', store })
  onTestFinished(() => server.close())
  const set = server.featureSet('a', { description: 'Pushes', uses: ['pushEvents'] })
  const { url } = await server.listen({ wsPath: '/ws' })
  const addresses: Record<typeof wire, Target> = {
    http: url,
    websocket: url.replace('http', 'ws').replace(/\/mcp$/, '/ws'),
    memory: inMemory(server),
  }
  return { server, set, target: addresses[wire] }
}

function inMemory(server: ReturnType<typeof createServer>) {
  return () => {
    const [here, there] = memoryPair()
    server.acceptor.accept(there)
    return here
  }
}

/** A host whose turns are counted by what the model was asked. */
async function hosting(target: Target, store: Store, revision: RevisionId) {
  const model = scripted('ok', { again: true })
  const host = await createHost({
    model,
    servers: { s: { target, live: { enable: ['a'] }, connect: { revisions: [revision] } } },
    store,
  })
  onTestFinished(() => host.close())
  await host.open()
  const count = async (kind: string) => (await host.audit({ kind })).notes.length
  return { host, model, count, close: () => host.close() }
}

const pending = (store: Store) => store.scan('live/outbox/event/')

const cases = storeKinds.flatMap(kind => officialRevisions.map(revision => [kind, revision, 'http'] as const))
const wires = (['websocket', 'memory'] as const).flatMap(wire =>
  (['2025-11-25', '2026-07-28'] as const).map(revision => ['memory', revision, wire] as const),
)

test.each([...cases, ...wires])(
  'an event is answered by the host that comes back, and not sent again: %s, %s, %s',
  async (kind, revision, wire) => {
    const [ours, theirs] = [await stores.open(kind), await stores.open(kind)]
    onTestFinished(async () => {
      await ours.close()
      await theirs.close()
    })
    const { set, server, target } = await pushing(ours, wire)
    await (await hosting(target, theirs, revision)).close()
    const { answered } = await set.push({ content: 'one', eventId: 'e-1' })
    const back = await hosting(target, theirs, revision)
    expect(await answered).toMatchObject({ accepted: true })
    await expect.poll(() => back.count('turn')).toBe(1)
    await expect.poll(() => pending(ours)).toEqual([])
    await back.close()
    // What the host gets next is the second event, and nothing of the first.
    const third = await hosting(target, theirs, revision)
    expect(await (await set.push({ content: 'two', eventId: 'e-2' })).answered).toMatchObject({ accepted: true })
    await expect.poll(() => third.count('turn')).toBe(2)
    await expect.poll(() => third.count('push')).toBe(2)
    expect(await third.count('inbox')).toBe(0)
    await third.close()
    await server.close()
    const after = await pushing(ours, wire)
    const fourth = await hosting(after.target, theirs, revision)
    expect(await (await after.set.push({ content: 'three', eventId: 'e-3' })).answered).toMatchObject({ accepted: true })
    await expect.poll(() => fourth.count('push')).toBe(3)
    expect(await fourth.count('inbox')).toBe(0)
  },
)

test.each(storeKinds)(
  'an event that a server sends again is not noted as another push, also after a restart of the host: %s',
  async kind => {
    const store = await stores.open(kind)
    onTestFinished(() => store.close())
    for (const [round, pushes, repeats] of [
      ['first', 1, 0],
      ['second', 1, 1],
      ['third', 1, 2],
    ] as const) {
      // A server with another store knows nothing of what it has sent before.
      const sent = memoryStore()
      const { set, target } = await pushing(sent, 'memory')
      const { count, close } = await hosting(target, store, '2026-07-28')
      const event = { content: 'one', eventId: 'e-1', timestamp: '2026-01-23T10:30:00Z' }
      expect(await (await set.push(event)).answered).toMatchObject({ accepted: true })
      await expect.poll(() => count('turn')).toBe(1)
      await expect.poll(() => count('inbox')).toBe(repeats)
      await expect.poll(async () => [round, await count('push')]).toEqual([round, pushes])
      await close()
    }
  },
)

test('of two hosts one may leave: the other one answers, and neither gets the event again', async () => {
  for (const revision of ['2025-11-25', '2026-07-28'] as const) {
    const ours = memoryStore()
    const { set, target } = await pushing(ours)
    const [leaving, staying] = [await hosting(target, memoryStore(), revision), await hosting(target, memoryStore(), revision)]
    await leaving.close()
    expect(await (await set.push({ content: 'one', eventId: 'e-1' })).answered).toMatchObject({ accepted: true })
    await expect.poll(() => pending(ours)).toEqual([])
    // A host with an empty store would take the event as new.
    const other = await hosting(target, memoryStore(), revision)
    expect(await (await set.push({ content: 'two', eventId: 'e-2' })).answered).toMatchObject({ accepted: true })
    await expect.poll(() => staying.count('push')).toBe(2)
    await expect.poll(() => other.count('push')).toBe(1)
  }
})
