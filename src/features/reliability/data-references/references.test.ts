import { createHash } from 'node:crypto'
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { createServer as createHttpServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { type Client, connect, dataReference } from '../../../client/index.ts'
import { createServer, type DataReference, jsonSchema, reply, type Server, type ServerOptions } from '../../../server/index.ts'
import { memoryBlobs, memoryStore } from '../../../stores/index.ts'
import { connectInMemory, fakeClock } from '../../../testing/index.ts'

const open: (() => unknown)[] = []
afterEach(async () => {
  for (const close of open.splice(0).reverse()) await close()
})

const eras = ['2025-11-25', '2026-07-28'] as const
type Era = (typeof eras)[number]
const csv = 'id,name\n'.repeat(20_000)
const sha256 = (data: string | Uint8Array): string => createHash('sha256').update(data).digest('hex')

function make(name: string, options: Partial<ServerOptions> = {}): Server {
  const server = createServer({ name, version: '1.0.0', log: 'silent', references: true, ...options })
  open.push(() => server.close())
  return server
}

async function exporter(options: Partial<ServerOptions> = {}) {
  const server = make('exporter', options)
  server.tool(
    'export',
    { input: z.object({ text: z.string().optional(), ttl: z.string().optional() }) },
    ({ text = csv, ttl }, ctx) => ctx.reference(text, { mime: 'text/csv', name: 'people.csv', ...(ttl && { ttl: ttl as '1s' }) }),
  )
  const { url } = await server.listen()
  return { server, url, origin: new URL(url).origin }
}

async function clientOf(url: string, era: Era): Promise<Client> {
  const client = await connect(url, { revisions: [era] })
  open.push(() => client.close())
  return client
}

async function exported(client: Client, args: Record<string, unknown> = {}, options = {}): Promise<Required<DataReference>> {
  const outcome = await client.callTool('export', args, options)
  const found = outcome.content.map(dataReference).find(each => each !== undefined)
  if (found === undefined) throw new Error(JSON.stringify(outcome))
  return found as Required<DataReference>
}

/** A server of somebody else's, and what it was asked. */
async function foreign(
  answer: RequestListener,
): Promise<{ origin: string; asked: { url: string; headers: Record<string, unknown> }[] }> {
  const asked: { url: string; headers: Record<string, unknown> }[] = []
  const server = createHttpServer((req, res) => {
    asked.push({ url: req.url ?? '', headers: req.headers })
    answer(req, res)
  })
  await new Promise<void>(done => server.listen(0, '127.0.0.1', done))
  open.push(() => {
    server.closeAllConnections()
    server.close()
  })
  return { origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, asked }
}

const referenceTo = (url: string, data: string, more: Partial<DataReference> = {}): DataReference => ({
  ref_id: 'r',
  origin_server: 'elsewhere',
  mime_type: 'text/plain',
  size_bytes: data.length,
  access_url: url,
  checksum: { algorithm: 'sha256', value: sha256(data) },
  ...more,
})

async function importing(from: readonly string[], era: Era, options: Partial<ServerOptions> = {}) {
  const taken: string[] = []
  const server = make('importer', { ...options, references: { from, ...(options.references as object) } })
  server.importer({}, async data => {
    const text = await new Response(await data.open()).text()
    taken.push(text)
    return { resourceId: `table-${taken.length}`, rows: text.split('\n').length - 1 }
  })
  const { url } = await server.listen()
  const client = await clientOf(url, era)
  const take = async (reference: unknown, more = {}) => (await client.callTool('import_from_ref', { reference }, more)) as Outcome
  return { server, client, take, taken }
}
interface Outcome {
  readonly isError: boolean
  readonly structured: Record<string, unknown>
}

describe.each(eras)('at %s', era => {
  it('E9-1: what is given by reference goes from server to server, and neither the result nor the call holds it', async () => {
    const { url, origin } = await exporter()
    const client = await clientOf(url, era)
    const outcome = await client.callTool('export')
    expect(JSON.stringify(outcome)).not.toContain('id,name')
    const [block] = outcome.content
    expect(block).toMatchObject({ type: 'resource_link', name: 'people.csv', mimeType: 'text/csv', size: csv.length })
    const { _meta, ...shown } = block as { _meta: unknown }
    // What a model is shown has no address that lets in.
    expect(JSON.stringify(shown)).not.toContain('signature')
    const { take, taken } = await importing([origin], era)
    const { structured } = await take(dataReference(block))
    expect(structured).toEqual({ status: 'imported', imported_resource_id: 'table-1', rows_imported: 20_000 })
    expect(taken).toEqual([csv])
  })

  it('E9-2: an address is good for its method, path, time and server alone; all else is one and the same 403', async () => {
    const clock = fakeClock()
    const secret = 'a secret that is long enough for anybody'
    const shared = { clock, secret, store: memoryStore({ now: clock.now }), references: { blobs: memoryBlobs() } }
    const { url } = await exporter(shared)
    // Another server, which has the same secret and finds the same contents.
    const other = await exporter({ ...shared, name: 'other' })
    const client = await clientOf(url, era)
    const one = await exported(client, { ttl: '1m' })
    const two = await exported(client, { ttl: '1h' })
    expect((await fetch(one.access_url)).status).toBe(200)
    const last = one.access_url.at(-2)
    const wrong: [string, RequestInit?][] = [
      [one.access_url, { method: 'HEAD' }],
      [one.access_url, { method: 'POST', body: 'x' }],
      [one.access_url, { method: 'DELETE' }],
      [one.access_url.replace(one.ref_id, two.ref_id)],
      [`${one.access_url.slice(0, -2)}${last === 'A' ? 'B' : 'A'}${one.access_url.at(-1)}`],
      [one.access_url.replace(/\?.*/, '')],
      [one.access_url.replace(url, other.url)],
    ]
    const bodies = new Set<string>()
    for (const [address, init] of wrong) {
      const answer = await fetch(address, init)
      expect([address, answer.status]).toEqual([address, 403])
      if (init?.method !== 'HEAD') bodies.add(await answer.text())
    }
    clock.advance(60_001)
    const late = await fetch(one.access_url)
    expect(late.status).toBe(403)
    bodies.add(await late.text())
    expect([...bodies]).toEqual(['This address is not valid or has expired'])
    expect((await fetch(two.access_url)).status).toBe(200)
  })

  it('E9-3: a transfer that began goes on after the end of its reference', async () => {
    const clock = fakeClock()
    const folder = mkdtempSync(join(tmpdir(), 'references-'))
    open.push(() => rmSync(folder, { recursive: true }))
    const { url } = await exporter({ clock, references: { blobs: folder } })
    const { access_url } = await exported(await clientOf(url, era), { text: csv.repeat(20), ttl: '1m' })
    const answer = await fetch(access_url)
    const reader = (answer.body as ReadableStream<Uint8Array>).getReader()
    let size = (await reader.read()).value?.length ?? 0
    clock.advance(60_001)
    for (let part = await reader.read(); !part.done; part = await reader.read()) size += part.value.length
    expect(size).toBe(csv.length * 20)
    expect((await fetch(access_url)).status).toBe(403)
  })

  it('E9-3: parts are given by Range, with the digest of the whole', async () => {
    const { url } = await exporter()
    const { access_url, checksum } = await exported(await clientOf(url, era), { text: '0123456789' })
    const ask = async (headers: Record<string, string>) => {
      const answer = await fetch(access_url, { headers })
      return [answer.status, answer.headers.get('content-range'), await answer.text()]
    }
    const etag = `"sha256:${(checksum as { value: string }).value}"`
    expect(await ask({ range: 'bytes=2-4' })).toEqual([206, 'bytes 2-4/10', '234'])
    expect(await ask({ range: 'bytes=7-' })).toEqual([206, 'bytes 7-9/10', '789'])
    expect(await ask({ range: 'bytes=-3' })).toEqual([206, 'bytes 7-9/10', '789'])
    expect(await ask({ range: 'bytes=7-99', 'if-range': etag })).toEqual([206, 'bytes 7-9/10', '789'])
    expect(await ask({ range: 'bytes=7-', 'if-range': '"other"' })).toEqual([200, null, '0123456789'])
    expect(await ask({ range: 'bytes=1-2,4-5' })).toEqual([200, null, '0123456789'])
    expect((await ask({ range: 'bytes=10-' })).slice(0, 2)).toEqual([416, 'bytes */10'])
    const whole = await fetch(access_url)
    expect(whole.headers.get('repr-digest')).toBe(`sha-256=:${createHash('sha256').update('0123456789').digest('base64')}:`)
    expect(whole.headers.get('accept-ranges')).toBe('bytes')
  })

  it('E9-4: what is not what was announced is not imported, and nothing of it is left', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'references-'))
    open.push(() => rmSync(folder, { recursive: true }))
    const { origin } = await foreign((_, res) => res.end('tampered'))
    const { take, taken } = await importing([origin], era, { references: { blobs: folder } })
    const mismatch = await take(referenceTo(`${origin}/x`, 'original'))
    expect(mismatch).toMatchObject({ isError: true, structured: { status: 'failed', error: { code: 'CHECKSUM_MISMATCH' } } })
    const longer = await take(referenceTo(`${origin}/x`, 'tam'))
    expect(longer.structured).toMatchObject({ status: 'failed', error: { code: 'CHECKSUM_MISMATCH' } })
    const md5 = { algorithm: 'md5' as const, value: createHash('md5').update('tampered').digest('hex') }
    const weak = await take(referenceTo(`${origin}/x`, 'tampered', { checksum: md5 }))
    expect(weak.structured).toMatchObject({ status: 'failed', error: { code: 'INVALID_INPUT' } })
    expect(taken).toEqual([])
    expect(readdirSync(folder).filter(name => name !== 'incoming')).toEqual([])
    const strong = { algorithm: 'sha256' as const, value: sha256('tampered') }
    expect((await take(referenceTo(`${origin}/x`, 'tampered', { checksum: [md5, strong] }))).structured['status']).toBe(
      'imported',
    )
    expect(taken).toEqual(['tampered'])
  })

  it('E9-5: nothing is fetched but from origins that were named, publicly reachable, without redirects or credentials', async () => {
    const inner = await foreign((_, res) => res.end('secret'))
    const { origin, asked } = await foreign((req, res) => {
      if (req.url === '/away') res.writeHead(302, { location: `${inner.origin}/x` }).end()
      else res.end('content')
    })
    const { take } = await importing([origin, 'https://10.0.0.1', 'http://example.com'], era)
    const codeOf = async (url: string) =>
      ((await take(referenceTo(url, 'content'))).structured['error'] as { code: string })?.code
    expect(await codeOf(`${inner.origin}/x`)).toBe('PERMISSION_DENIED')
    expect(await codeOf('https://10.0.0.1/x')).toBe('PERMISSION_DENIED')
    expect(await codeOf('http://example.com/x')).toBe('PERMISSION_DENIED')
    expect(await codeOf('file:///etc/hostname')).toBe('PERMISSION_DENIED')
    expect(await codeOf(`${origin}/away`)).toBe('PERMISSION_DENIED')
    expect(await codeOf(`${origin}/x`)).toBeUndefined()
    expect(inner.asked).toEqual([])
    for (const { headers } of asked) expect(Object.keys(headers).sort()).toEqual(['accept-encoding', 'connection', 'host'])
  })

  it('E9-6: a reference ends with the grant under which it was made', async () => {
    const { server } = await exporter({ permissions: { grant: ({ scopes }) => scopes, ttl: '1h' } })
    server.tool('export_scoped', { scopes: ['export'] }, (_, ctx) => ctx.reference('mine'))
    const client = await connectInMemory(server, { revisions: [era] })
    open.push(() => client.close())
    const free = await exported(client)
    await client.permissions.negotiate(['export'])
    const outcome = await client.callTool('export_scoped')
    const scoped = dataReference(outcome.content[0]) as Required<DataReference>
    const beside = await exported(client)
    const statuses = async () => Promise.all([free, scoped, beside].map(async each => (await fetch(each.access_url)).status))
    expect(await statuses()).toEqual([200, 200, 200])
    expect(Date.parse(scoped.expires_at)).toBeLessThanOrEqual(Date.now() + 3_600_000)
    for (const { session } of await server.permissions.sessions()) await server.permissions.revoke(session)
    expect(await statuses()).toEqual([200, 403, 403])
  })

  it('E9-6, X3: a reference ends with the step that made it, when that is taken back', async () => {
    const { server, url } = await exporter()
    const undone: string[] = []
    server.tool('make', { undo: { tool: 'unmake' } }, async (_, ctx) => {
      await ctx.state.set({ made: true })
      return reply({ content: [await ctx.reference('one'), await ctx.reference('two')] })
    })
    server.tool('unmake', { input: jsonSchema({ type: 'object' }) }, () => void undone.push('unmade'))
    const client = await clientOf(url, era)
    const references = async (commit: boolean): Promise<string[]> => {
      const tx = await client.transaction()
      const { content } = await tx.callTool('make')
      const urls = content.map(block => dataReference(block)?.access_url ?? '')
      for (const each of urls) expect((await fetch(each)).status).toBe(200)
      if (commit) await tx.commit()
      else await tx.rollback()
      return urls
    }
    for (const each of await references(false)) expect((await fetch(each)).status).toBe(403)
    for (const each of await references(true)) expect((await fetch(each)).status).toBe(200)
    expect(undone).toEqual(['unmade'])
  })

  it('E9-7: what is larger than the cap is refused before or as it comes, on both sides', async () => {
    const { url } = await exporter({ references: { maxBytes: 1_000 } })
    const client = await clientOf(url, era)
    expect(await client.callTool('export')).toMatchObject({ isError: true, problem: { code: 'PAYLOAD_TOO_LARGE' } })
    const { origin, asked } = await foreign((_, res) => res.end('x'.repeat(100)))
    const { take } = await importing([origin], era, { references: { maxBytes: 50 } })
    const announced = await take(referenceTo(`${origin}/x`, 'x'.repeat(100)))
    expect(announced.structured).toMatchObject({ status: 'failed', error: { code: 'PAYLOAD_TOO_LARGE' } })
    expect(asked).toEqual([])
    const reference = { ...referenceTo(`${origin}/x`, 'x'.repeat(2_000)) }
    await expect(client.readReference(reference, { maxBytes: 1_000 })).rejects.toMatchObject({ code: 'PAYLOAD_TOO_LARGE' })
  })

  it('E9-8: an import under an idempotency key is done once', async () => {
    const { origin, asked } = await foreign((_, res) => res.end('content'))
    const { take, taken } = await importing([origin], era)
    const reference = referenceTo(`${origin}/x`, 'content')
    const first = await take(reference, { idempotencyKey: 'import-0001-abcdefgh-ijklmnop' })
    const again = await take(reference, { idempotencyKey: 'import-0001-abcdefgh-ijklmnop' })
    expect(again.structured).toEqual(first.structured)
    expect([asked.length, taken.length]).toEqual([1, 1])
  })

  it('E9-9: an import that takes long is pending, and its id tells what became of it', async () => {
    let go = (): void => {}
    const { origin } = await foreign((_, res) => {
      res.writeHead(200, { 'content-length': 7 }).write('con')
      go = () => res.end('tent')
    })
    const server = make('importer', { references: { from: [origin] } })
    const { promise: imported, resolve } = Promise.withResolvers<void>()
    server.importer({ pendingAfter: 1 }, () => {
      setImmediate(resolve)
      return { resourceId: 'late' }
    })
    const client = await clientOf((await server.listen()).url, era)
    const first = await client.callTool('import_from_ref', { reference: referenceTo(`${origin}/x`, 'content') })
    expect(first.structured).toEqual({ status: 'pending', operation_id: expect.any(String) })
    const { operation_id } = first.structured as { operation_id: string }
    const ask = () => client.callTool('import_from_ref', { operation_id })
    expect((await ask()).structured).toEqual({ status: 'pending', operation_id })
    while (go.toString() === '() => { }') await new Promise(setImmediate)
    go()
    await imported
    let now = await ask()
    while ((now.structured as Outcome['structured'])['status'] === 'pending') now = await ask()
    expect(now.structured).toEqual({ status: 'imported', imported_resource_id: 'late', operation_id })
    expect(await client.callTool('import_from_ref', { operation_id: 'nobody' })).toMatchObject({
      isError: true,
      problem: { code: 'RESOURCE_NOT_FOUND' },
    })
  })

  it('the client reads a reference as a stream, from the beginning or from where it was, and checks it at its end', async () => {
    const { url } = await exporter()
    const client = await clientOf(url, era)
    const reference = await exported(client)
    expect(await new Response(await client.readReference(reference)).text()).toBe(csv)
    expect(await new Response(await client.readReference(reference, { start: csv.length - 5 })).text()).toBe(csv.slice(-5))
    const forged = { ...reference, checksum: { algorithm: 'sha256' as const, value: sha256('other') } }
    await expect(new Response(await client.readReference(forged)).text()).rejects.toMatchObject({ code: 'CHECKSUM_MISMATCH' })
  })

  it('a connection that breaks is taken up again where it broke', async () => {
    const data = 'abcdefghij'.repeat(1_000)
    const { origin, asked } = await foreign((req, res) => {
      const from = Number(/bytes=(\d+)-/.exec(req.headers.range ?? '')?.[1] ?? 0)
      const head = from === 0 ? {} : { 'content-range': `bytes ${from}-${data.length - 1}/${data.length}` }
      res.writeHead(from === 0 ? 200 : 206, { 'content-length': data.length - from, ...head })
      // Each answer brings a part, then the line is cut.
      if (from >= 6_000) res.end(data.slice(from))
      else res.write(data.slice(from, from + 3_000), () => setTimeout(() => res.destroy(), 20))
    })
    const { take, taken, client } = await importing([origin], era)
    expect((await take(referenceTo(`${origin}/x`, data))).structured['status']).toBe('imported')
    expect(taken).toEqual([data])
    expect(asked.map(({ headers }) => headers['range'])).toEqual([undefined, 'bytes=3000-', 'bytes=6000-'])
    expect(await new Response(await client.readReference(referenceTo(`${origin}/x`, data))).text()).toBe(data)
  })

  it('the manifest names references only where they are on', async () => {
    for (const references of [true, false]) {
      const server = make('exporter', { references, manifest: true })
      const client = await connectInMemory(server, { revision: era })
      open.push(() => client.close())
      expect((await client.manifest()).document.supported_extensions?.includes('data_references')).toBe(references)
    }
  })

  it('clients that know no references get small contents whole, and larger ones as a resource to be read', async () => {
    const { url } = await exporter({ references: { inlineBytes: 10 } })
    const ask = await plainCaller(url, era)
    const small = await ask('tools/call', { name: 'export', arguments: { text: 'tiny' } })
    expect(small['content']).toEqual([
      { type: 'resource', resource: { uri: expect.stringMatching(/^ref:/), mimeType: 'text/csv', text: 'tiny' } },
    ])
    const large = await ask('tools/call', { name: 'export', arguments: {} })
    const [link] = large['content'] as Record<string, unknown>[]
    expect(link).toEqual({
      type: 'resource_link',
      uri: expect.stringMatching(/^ref:/),
      name: 'people.csv',
      mimeType: 'text/csv',
      size: csv.length,
    })
    const read = await ask('resources/read', { uri: link?.['uri'] })
    expect(read['contents']).toMatchObject([{ text: csv }])
  })
})

/** A client that declares nothing. */
async function plainCaller(url: string, era: Era): Promise<(method: string, params: object) => Promise<Record<string, unknown>>> {
  let session: string | null = null
  let id = 0
  const send = async (method: string, params: Record<string, unknown>, notify = false): Promise<Record<string, unknown>> => {
    const _meta = {
      'io.modelcontextprotocol/protocolVersion': era,
      'io.modelcontextprotocol/clientInfo': { name: 'plain', version: '1' },
      'io.modelcontextprotocol/clientCapabilities': {},
    }
    const name = params['name'] ?? params['uri']
    const answer = await fetch(url, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
        'mcp-protocol-version': era,
        ...(era === '2026-07-28' ? { 'mcp-method': method, ...(typeof name === 'string' && { 'mcp-name': name }) } : {}),
        ...(session === null ? {} : { 'mcp-session-id': session }),
      },
      body: JSON.stringify({
        jsonrpc: '2.0',
        ...(notify ? {} : { id: ++id }),
        method,
        params: era === '2026-07-28' ? { ...params, _meta } : params,
      }),
    })
    session = answer.headers.get('mcp-session-id') ?? session
    const text = await answer.text()
    if (notify) return {}
    const message = JSON.parse(text.startsWith('{') ? text : (/^data: (\{.*\})$/m.exec(text)?.[1] ?? '{}'))
    if (message.result === undefined) throw new Error(text)
    return message.result
  }
  if (era === '2025-11-25') {
    await send('initialize', { protocolVersion: era, capabilities: {}, clientInfo: { name: 'plain', version: '1' } })
    await send('notifications/initialized', {}, true)
  }
  return (method, params) => send(method, { ...params })
}
