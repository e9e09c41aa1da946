import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import { type Source, sourceOf } from '../../../../test/reliability/reference-source.ts'
import { type StoreKind, storeKinds, storesUnderTest } from '../../../../test/stores-under-test.ts'
import { until } from '../../../../test/until.ts'
import type { Client } from '../../../client/index.ts'
import { createServer, jsonSchema } from '../../../server/index.ts'
import { openStore, type Store } from '../../../stores/index.ts'
import { connectInMemory, type FakeClock, fakeClock } from '../../../testing/index.ts'

const stores = storesUnderTest()
const open: (() => unknown)[] = []
afterEach(async () => {
  for (const close of open.splice(0).reverse()) await close()
})

const data = new Uint8Array(300_000).map((_, at) => (at * 31) >> 5)
const middle = 100_000

interface World {
  readonly source: Source
  readonly store: Store
  /** A server on the same store and folder, as after a restart. */
  life(): Promise<Life>
  half(): string[]
}
interface Life {
  /** Imports, and gives what came of it. Cut off when so much has come. */
  take(cutAt?: number): Promise<string>
  /** Imports, and never lets go. */
  hold(): Promise<string>
  readonly client: Client
  close(): Promise<void>
}

async function world(era: '2025-11-25' | '2026-07-28', clock?: FakeClock, kind: StoreKind = 'sqlite'): Promise<World> {
  const folder = mkdtempSync(join(tmpdir(), 'vivarium-references-'))
  open.push(() => rmSync(folder, { recursive: true, force: true }))
  const source = await sourceOf(data)
  open.push(() => source.close())
  const store = clock === undefined ? await stores.open(kind) : await openStore('memory:', { now: clock.now })
  open.push(() => store.close())
  const life = async (): Promise<Life> => {
    const server = createServer({
      name: 'importer',
      version: '1.0.0',
      log: 'silent',
      store,
      ...(clock && { clock }),
      references: { from: [source.origin], blobs: folder },
    })
    const input = jsonSchema<{ cutAt?: number; held?: boolean }>({ type: 'object' })
    server.tool('take', { input }, async ({ cutAt, held = false }, ctx) => {
      const stop = new AbortController()
      const progress = (bytes: number): void => {
        if (cutAt !== undefined && bytes >= cutAt) stop.abort(new Error('cut'))
      }
      try {
        const taken = await ctx.importReference(source.reference, { progress, signal: stop.signal })
        const bytes = new Uint8Array(await new Response(await taken.open()).arrayBuffer())
        if (!held) await taken.release()
        return Buffer.compare(bytes, data) === 0 ? 'the same' : 'another'
      } catch (error) {
        return (error as Error).message
      }
    })
    const client = await connectInMemory(server, { revision: era })
    const close = async (): Promise<void> => {
      await client.close()
      await server.close()
    }
    open.push(close)
    const text = async (args: Record<string, unknown>): Promise<string> => (await client.callTool('take', args)).text
    return { client, close, take: cutAt => text({ ...(cutAt && { cutAt }) }), hold: () => text({ held: true }) }
  }
  return { source, store, life, half: () => readdirSync(join(folder, 'incoming')) }
}

describe.each(['2025-11-25', '2026-07-28'] as const)('an import that broke off, at %s', era => {
  it.each(storeKinds)('goes on where it was, also in another life, on %s', async kind => {
    const { source, store, life, half } = await world(era, undefined, kind)
    source.stopAt = middle
    const one = await life()
    expect(await one.take(middle)).toMatch(/cut/)
    expect(half()).toHaveLength(1)
    source.stopAt = 2 * middle
    expect(await one.take(2 * middle)).toMatch(/cut/)
    await one.close()
    source.stopAt = Number.POSITIVE_INFINITY
    expect(await (await life()).take()).toBe('the same')
    expect(source.asked).toEqual([
      [undefined, undefined],
      [`bytes=${middle}-`, '"one"'],
      [`bytes=${2 * middle}-`, '"one"'],
    ])
    expect([half(), await store.scan('reference-half/')]).toEqual([[], []])
  })

  it('begins anew where the first part was of something else, by its name or by its bytes', async () => {
    for (const change of [{ etag: '"two"' }, { etag: undefined, data: new Uint8Array(data.length) }]) {
      const { source, life, half } = await world(era)
      Object.assign(source, { stopAt: middle }, change)
      const one = await life()
      expect(await one.take(middle)).toMatch(/cut/)
      Object.assign(source, { stopAt: Number.POSITIVE_INFINITY, data, etag: change.etag && '"one"' })
      expect(await one.take()).toBe('the same')
      expect(source.asked.map(([range]) => range)).toEqual([undefined, `bytes=${middle}-`, undefined])
      expect(half()).toEqual([])
    }
  })

  it('E9-4: is not kept when all of it came and it was not what was announced', async () => {
    const { source, store, life, half } = await world(era)
    Object.assign(source, { stopAt: middle, data: new Uint8Array(data.length), etag: undefined })
    const one = await life()
    await one.take(middle)
    source.stopAt = Number.POSITIVE_INFINITY
    expect(await one.take()).toMatch(/does not match its reference/)
    expect([half(), await store.scan('reference-half/')]).toEqual([[], []])
  })

  it('goes on from a server that knows no parts, by passing over what there is', async () => {
    const { source, life } = await world(era)
    Object.assign(source, { stopAt: middle, ranges: false })
    const one = await life()
    await one.take(middle)
    source.stopAt = Number.POSITIVE_INFINITY
    expect(await one.take()).toBe('the same')
    expect(source.asked.map(([range]) => range)).toEqual([undefined, `bytes=${middle}-`])
  })

  it('is not fetched again when all of it had come, and whoever uses it had not', async () => {
    const { source, life } = await world(era)
    const one = await life()
    expect(await one.hold()).toBe('the same')
    await one.close()
    expect(await (await life()).take()).toBe('the same')
    expect(source.asked).toHaveLength(1)
  })

  it('is forgotten after an hour', async () => {
    const clock = fakeClock()
    const { source, store, life, half } = await world(era, clock)
    source.stopAt = middle
    const one = await life()
    expect(await one.take(middle)).toMatch(/cut/)
    clock.advance(3_500_000)
    expect(half()).toHaveLength(1)
    await until(async () => {
      clock.advance(60_000)
      expect([half(), await store.scan('reference-half/')]).toEqual([[], []])
    })
  })
})

it('two imports of the same content at the same time do not disturb each other', async () => {
  const { source, life, half } = await world('2026-07-28')
  const [one, two] = await Promise.all([life(), life()])
  const all = await Promise.all([one.take(), one.take(), two.take(), two.take(), one.take()])
  expect(all).toEqual(Array.from({ length: 5 }, () => 'the same'))
  expect(source.asked.length).toBeLessThanOrEqual(5)
  expect(half()).toEqual([])
})

it('an import that is under way here goes on although others begin with the same content', async () => {
  const { source, store, life, half } = await world('2026-07-28')
  source.stopAt = middle
  const one = await life()
  const taking: Promise<string>[] = []
  for (const count of [1, 2, 3]) {
    taking.push(one.take())
    await until(() => expect(source.held).toHaveLength(count))
  }
  expect(await store.scan('reference-half/')).toHaveLength(1)
  for (const [at, finish] of source.held.entries()) {
    finish()
    expect(await taking[at]).toBe('the same')
  }
  expect(half()).toEqual([])
})

it.each([
  ['64', 64, 0],
  ['4 GiB', 1, 4 * 1024 ** 3],
])('at most %s of them are kept', async (_, count, size) => {
  const { source, store, life, half } = await world('2026-07-28')
  await store.commit(
    Array.from({ length: count }, (_, at) => ({
      op: 'put' as const,
      key: `reference-half/${at}`,
      value: JSON.stringify({ id: 'x', size, until: Date.now() + 1e6 }),
    })),
  )
  source.stopAt = middle
  const one = await life()
  expect(await one.take(middle)).toMatch(/cut/)
  expect(half()).toEqual([])
  expect(await store.scan('reference-half/')).toHaveLength(count)
})
