/** References whose source lies, does not end, or outlives what it was given under. */
import { createHash } from 'node:crypto'
import { createServer as createHttpServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, describe, expect, it } from 'vitest'
import { until } from '../../../../test/until.ts'
import { dataReference } from '../../../client/index.ts'
import { createServer, type DataReference, type ServerOptions } from '../../../server/index.ts'
import { connectInMemory, fakeClock } from '../../../testing/index.ts'

const open: (() => unknown)[] = []
afterEach(async () => {
  for (const close of open.splice(0).reverse()) await close()
})

const eras = ['2025-11-25', '2026-07-28'] as const
const sha256 = (data: string) => ({ algorithm: 'sha256' as const, value: createHash('sha256').update(data).digest('hex') })
const MiB = 1024 ** 2

async function source(answer: RequestListener): Promise<string> {
  const http = createHttpServer(answer)
  await new Promise<void>(done => http.listen(0, '127.0.0.1', done))
  open.push(() => {
    http.closeAllConnections()
    http.close()
  })
  return `http://127.0.0.1:${(http.address() as AddressInfo).port}`
}

async function importer(origin: string, revision: (typeof eras)[number]) {
  const clock = fakeClock()
  const taken: string[] = []
  const server = createServer({ name: 'importer', version: '1.0.0', log: 'silent', clock, references: { from: [origin] } })
  open.push(() => server.close())
  server.importer({ pendingAfter: '1h' }, async data => {
    taken.push(await new Response(await data.open()).text())
    return { resourceId: 'taken' }
  })
  const client = await connectInMemory(server, { revision })
  open.push(() => client.close())
  const take = async (reference: Partial<DataReference>): Promise<unknown> => {
    const given = { ref_id: 'r', origin_server: 'there', mime_type: 'text/plain', access_url: `${origin}/x`, ...reference }
    const calling = client.callTool('import_from_ref', { reference: given }).catch(error => error)
    let over = false
    calling.then(() => {
      over = true
    })
    // It waits before each new attempt.
    await until(() => {
      clock.advance(1_000)
      expect(over).toBe(true)
    })
    return calling
  }
  return { take, taken }
}

async function exporter(revision: (typeof eras)[number], options: Partial<ServerOptions>) {
  const server = createServer({ name: 'exporter', version: '1.0.0', log: 'silent', references: true, ...options })
  open.push(() => server.close())
  await server.listen()
  const connected = await connectInMemory(server, { revision })
  open.push(() => connected.close())
  return { server, client: connected }
}

describe.each(eras)('at %s', revision => {
  it('E9-4: a size that is not that of the content is a mismatch, though the digest be right, and nothing is taken over', async () => {
    const origin = await source((_, res) => res.end('content'))
    const { take, taken } = await importer(origin, revision)
    for (const size_bytes of [6, 8, 0])
      expect(await take({ size_bytes, checksum: sha256('content') })).toMatchObject({
        isError: true,
        structured: { status: 'failed' },
      })
    expect(await take({ size_bytes: 6, checksum: sha256('content') })).toMatchObject({
      structured: { error: { code: 'CHECKSUM_MISMATCH' } },
    })
    expect(taken).toEqual([])
    expect(await take({ size_bytes: 7, checksum: sha256('content') })).toMatchObject({ structured: { status: 'imported' } })
    expect(taken).toEqual(['content'])
  })

  it('E9-4: what has no digest that counts is not even asked for', async () => {
    let asked = 0
    const origin = await source((_, res) => {
      asked++
      res.end('content')
    })
    const { take, taken } = await importer(origin, revision)
    const md5 = { algorithm: 'md5' as const, value: createHash('md5').update('content').digest('hex') }
    for (const checksum of [[], [md5], { algorithm: 'sha256' as const, value: 'ab' }])
      expect(await take({ size_bytes: 7, checksum })).toMatchObject({ structured: { error: { code: 'INVALID_INPUT' } } })
    expect([asked, taken]).toEqual([0, []])
  })

  it('E9-7: a source that sends more than it announced is left in the midst of it', async () => {
    let sent = 0
    const left = Promise.withResolvers<void>()
    const origin = await source((_, res) => {
      res.on('close', left.resolve).on('error', () => {})
      const chunk = Buffer.alloc(64 * 1024, 7)
      const more = (): void => {
        while (!res.destroyed && res.write(chunk)) sent += chunk.length
      }
      res.on('drain', more)
      more()
    })
    const { take, taken } = await importer(origin, revision)
    expect(await take({ size_bytes: 1_000, checksum: sha256('x') })).toMatchObject({
      structured: { status: 'failed', error: { code: 'CHECKSUM_MISMATCH' } },
    })
    await left.promise
    // What the kernel holds for both ends is the kernel's.
    expect(sent).toBeLessThan(16 * MiB)
    expect(taken).toEqual([])
  })

  it('E9-7: of a content without an end only as much is read as the cap allows', async () => {
    let read = 0
    const { server, client } = await exporter(revision, { references: { maxBytes: 2 * MiB } })
    server.tool('endless', {}, (_, ctx) =>
      ctx.reference(
        new ReadableStream<Uint8Array>(
          {
            pull: controller => {
              read += 64 * 1024
              controller.enqueue(new Uint8Array(64 * 1024))
            },
          },
          { highWaterMark: 0 },
        ),
      ),
    )
    expect(await client.callTool('endless')).toMatchObject({ isError: true, problem: { code: 'PAYLOAD_TOO_LARGE' } })
    expect(read).toBeLessThan(3 * MiB)
  })

  it.each([
    ['its time is over', 61_000],
    ['it was not used', 31_000],
  ])('E9-6: a reference is not valid any longer than the grant under which it was made, when %s', async (_, ms) => {
    const clock = fakeClock()
    const permissions = { grant: ({ scopes }: { scopes: readonly string[] }) => scopes, ttl: '1m', idle: '30s' } as const
    const { server, client } = await exporter(revision, { clock, permissions, references: { ttl: '1h' } })
    server.tool('export', { scopes: ['export'] }, (_args, ctx) => ctx.reference('mine', { ttl: '1h' }))
    server.tool('free', {}, (_args, ctx) => ctx.reference('free', { ttl: '1h' }))
    const made = async (tool: string): Promise<Required<DataReference>> =>
      dataReference((await client.callTool(tool)).content[0]) as Required<DataReference>
    const free = await made('free')
    await client.permissions.negotiate(['export'])
    const bound = await made('export')
    const until = clock.now() + 60_000
    expect(Date.parse(bound.expires_at)).toBeLessThanOrEqual(until)
    expect((await fetch(bound.access_url)).status).toBe(200)
    clock.advance(ms)
    expect([(await fetch(bound.access_url)).status, (await fetch(free.access_url)).status]).toEqual([403, 200])
  })
})
