import { createHash } from 'node:crypto'
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { createServer as createHttpServer, get, type IncomingMessage } from 'node:http'
import { type AddressInfo, createServer as createTcpServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import express from 'express'
import fastify from 'fastify'
import { Hono } from 'hono'
import { afterEach, describe, expect, it } from 'vitest'
import { sourceOf } from '../../../../test/reliability/reference-source.ts'
import { storeKinds, storesUnderTest } from '../../../../test/stores-under-test.ts'
import { until } from '../../../../test/until.ts'
import { type Client, connect, dataReference } from '../../../client/index.ts'
import { mcp as expressMcp } from '../../../server/express.ts'
import { mcp as fastifyMcp } from '../../../server/fastify.ts'
import { mcp as honoMcp } from '../../../server/hono.ts'
import { createServer, type DataReference, type Server, type ServerOptions } from '../../../server/index.ts'
import { memoryBlobs } from '../../../stores/index.ts'
import { connectInMemory, fakeClock } from '../../../testing/index.ts'

const stores = storesUnderTest()
const open: (() => unknown)[] = []
afterEach(async () => {
  for (const close of open.splice(0).reverse()) await close()
})

const digits = '0123456789'
const large = digits.repeat(50_000)

function folder(): string {
  const path = mkdtempSync(join(tmpdir(), 'references-'))
  open.push(() => rmSync(path, { recursive: true, force: true }))
  return path
}

function exporter(references: NonNullable<ServerOptions['references']>, more: Partial<ServerOptions> = {}): Server {
  const server = createServer({ name: 'exporter', version: '1.0.0', log: 'silent', references, ...more })
  open.push(() => server.close())
  server.tool('digits', {}, (_, ctx) => ctx.reference(digits, { mime: 'text/plain' }))
  server.tool('large', {}, (_, ctx) => ctx.reference(large, { mime: 'text/plain' }))
  return server
}

async function referenceFrom(client: Client, tool = 'digits'): Promise<Required<DataReference>> {
  open.push(() => client.close())
  const { content, text } = await client.callTool(tool)
  const found = content.map(dataReference).find(each => each !== undefined)
  if (found === undefined) throw new Error(text)
  return found as Required<DataReference>
}

/** A port that answers with whatever is put there. */
async function port(handle: (req: IncomingMessage) => Promise<Response>): Promise<string> {
  const http = createHttpServer(async (req, res) => {
    const answer = await handle(req)
    res.writeHead(answer.status, Object.fromEntries(answer.headers))
    const reader = (answer.body ?? new Blob().stream()).getReader()
    res.on('close', () => void reader.cancel())
    for (let part = await reader.read(); !part.done; part = await reader.read()) res.write(part.value)
    res.end()
  })
  return `http://127.0.0.1:${await listening(http)}/mcp`
}

async function listening(http: ReturnType<typeof createHttpServer>): Promise<number> {
  await new Promise<void>(done => http.listen(0, '127.0.0.1', done))
  open.push(() => {
    http.closeAllConnections()
    http.close()
  })
  return (http.address() as AddressInfo).port
}

function webRequest(url: string, { method = 'GET', headers }: IncomingMessage): Request {
  return new Request(url, { method, headers: headers as Record<string, string> })
}

type Face = (make: (url: string) => Server) => Promise<Server>

/** Each gives the endpoint its address before the server is made, as a deployment does. */
const faces: Record<string, Face> = {
  'a port of its own': async make => {
    const server = make('')
    await server.listen()
    return server
  },
  'server.fetch': async make => {
    let server: Server | undefined
    const url = await port(req => (server as Server).fetch(webRequest(new URL(req.url ?? '', url).href, req)))
    server = make(url)
    return server
  },
  Hono: async make => {
    let app: Hono | undefined
    const url = await port(async req => (app as Hono).fetch(webRequest(new URL(req.url ?? '', url).href, req)))
    const server = make(url)
    const handle = honoMcp(server)
    app = new Hono().all('/mcp', handle).all('/mcp/references/*', handle)
    return server
  },
  Express: async make => {
    const app = express()
    const url = `http://127.0.0.1:${await listening(createHttpServer(app))}/mcp`
    const server = make(url)
    app.use(express.json()).all(['/mcp', '/mcp/references/{*name}'], expressMcp(server))
    return server
  },
  'Express, mounted below a path': async make => {
    const app = express()
    const url = `http://127.0.0.1:${await listening(createHttpServer(app))}/api/mcp`
    const server = make(url)
    app.use('/api', express.Router().use('/mcp', expressMcp(server)))
    return server
  },
  Fastify: async make => {
    const app = fastify()
    open.push(() => app.close())
    const holder = createHttpServer()
    const free = await listening(holder)
    holder.close()
    const server = make(`http://127.0.0.1:${free}/mcp`)
    await app.register(fastifyMcp, { server })
    await app.listen({ port: free, host: '127.0.0.1' })
    return server
  },
}

describe.each(Object.entries(faces))('references through %s', (_name, face) => {
  const made = async (blobs?: string): Promise<Required<DataReference>> => {
    const server = await face(url => exporter({ ...(url && { url }), ...(blobs && { blobs }) }))
    return referenceFrom(await connectInMemory(server), blobs === undefined ? 'digits' : 'large')
  }

  it('E9-3: parts, wholes and what is neither', async () => {
    const { access_url, checksum } = await made()
    const etag = `"sha256:${(checksum as { value: string }).value}"`
    const ask = async (headers: Record<string, string>) => {
      const answer = await fetch(access_url, { headers })
      return [answer.status, answer.headers.get('content-range'), answer.headers.get('content-length'), await answer.text()]
    }
    const whole = [200, null, '10', digits]
    expect(await ask({})).toEqual(whole)
    expect(await ask({ range: 'bytes=0-0' })).toEqual([206, 'bytes 0-0/10', '1', '0'])
    expect(await ask({ range: 'bytes=9-9' })).toEqual([206, 'bytes 9-9/10', '1', '9'])
    expect(await ask({ range: 'bytes=0-' })).toEqual([206, 'bytes 0-9/10', '10', digits])
    expect(await ask({ range: 'bytes=-20' })).toEqual([206, 'bytes 0-9/10', '10', digits])
    expect(await ask({ range: 'bytes=5-99999' })).toEqual([206, 'bytes 5-9/10', '5', '56789'])
    expect(await ask({ range: 'BYTES=5-6', 'if-range': etag })).toEqual([206, 'bytes 5-6/10', '2', '56'])
    for (const range of ['bytes=5-4', 'bytes=-', 'bytes=a-b', 'lines=1-2', 'bytes=1-2,5-6', 'bytes=1e1-'])
      expect([range, ...(await ask({ range }))]).toEqual([range, ...whole])
    // A weak name, or a date, says nothing of bytes (RFC 9110 §13.1.5).
    for (const ifRange of ['"other"', `W/${etag}`, 'Mon, 01 Jan 2035 00:00:00 GMT'])
      expect(await ask({ range: 'bytes=5-6', 'if-range': ifRange })).toEqual(whole)
    for (const range of ['bytes=10-', 'bytes=-0', 'bytes=999-'])
      expect([range, ...(await ask({ range })).slice(0, 2)]).toEqual([range, 416, 'bytes */10'])
  })

  it('E9-2: other methods, and names that lead elsewhere, are refused', async () => {
    const { access_url } = await made()
    for (const method of ['HEAD', 'PUT', 'DELETE', 'POST', 'PATCH'])
      expect([method, (await fetch(access_url, { method })).status]).toEqual([method, 403])
    const [path = '', query = ''] = access_url.split('?')
    for (const strange of [`${path}x?${query}`, `${path}?${query}x`, `${path}?signature=`])
      expect([strange, (await fetch(strange)).status]).toEqual([strange, 403])
  })

  it('a content from a folder comes whole, and by parts', async () => {
    const { access_url } = await made(folder())
    expect(await (await fetch(access_url)).text()).toBe(large)
    const answer = await fetch(access_url, { headers: { range: 'bytes=123456-400000' } })
    expect(await answer.text()).toBe(large.slice(123_456, 400_001))
  })
})

describe.each(['a port of its own', 'server.fetch'])('the cap on transfers at %s', face => {
  it('503 with Retry-After when too many are read at once, until one of them is over, however it ended', async () => {
    const mount = faces[face] as Face
    const blobs = memoryBlobs()
    const server = await mount(url => exporter({ ...(url && { url }), transfers: 2, blobs: endless(blobs) }))
    const { access_url } = await referenceFrom(await connectInMemory(server))
    const reading = async () => {
      const stop = new AbortController()
      const answer = await fetch(access_url, { signal: stop.signal })
      return { status: answer.status, after: answer.headers.get('retry-after'), stop }
    }
    const [one, two] = [await reading(), await reading()]
    expect([one.status, two.status]).toEqual([200, 200])
    const three = await reading()
    expect([three.status, three.after]).toEqual([503, '1'])
    one.stop.abort()
    await until(async () => expect((await reading()).status).toBe(200))
    two.stop.abort()
    // What has no content to be read takes no place.
    const none = async (): Promise<number> => (await fetch(access_url, { headers: { range: 'bytes=99-' } })).status
    await until(async () => expect(await none()).toBe(416))
    for (let times = 0; times < 5; times++) expect(await none()).toBe(416)
  })

  it('a reader who has gone before the first byte takes no place', async () => {
    const mount = faces[face] as Face
    const server = await mount(url => exporter({ ...(url && { url }), transfers: 1, blobs: folder() }))
    const { access_url } = await referenceFrom(await connectInMemory(server), 'large')
    for (let times = 0; times < 5; times++)
      await new Promise<void>(resolve => {
        const request = get(access_url, () => request.destroy()).on('close', resolve)
      })
    await until(async () => expect(await (await fetch(access_url)).text()).toBe(large))
  })
})

/** Contents of which a part comes, and then nothing. */
function endless(blobs: ReturnType<typeof memoryBlobs>): ReturnType<typeof memoryBlobs> {
  const stuck = (bytes: number): ReadableStream<Uint8Array> =>
    new ReadableStream({ start: controller => controller.enqueue(new Uint8Array(bytes)) })
  return {
    ...blobs,
    get: async (digest, range) => {
      const found = await blobs.get(digest, range)
      return found && { size: found.size, stream: stuck(5) }
    },
  }
}

describe.each(storeKinds)('references on %s', kind => {
  it('E9-1, E9-4, E9-6: are given, found by another process, imported, and gone when they are over', async () => {
    const clock = stores.clock()
    const store = await stores.open(kind, clock)
    open.push(() => store.close())
    const blobs = folder()
    const shared = { store, clock, secret: 'a secret that is long enough for anybody' }
    const one = exporter({ blobs }, shared)
    const { url } = await one.listen()
    const { access_url, ...reference } = await referenceFrom(await connect(url), 'large')
    const other = exporter({ blobs }, shared)
    const there = access_url.replace(url, (await other.listen()).url)
    expect(await (await fetch(there)).text()).toBe(large)
    const importer = createServer({
      name: 'importer',
      version: '1.0.0',
      log: 'silent',
      store: await stores.open(kind),
      references: { from: [new URL(there).origin], blobs: folder() },
    })
    open.push(() => importer.close())
    importer.importer({}, async data => ({
      resourceId: createHash('sha256')
        .update(await text(data))
        .digest('hex'),
    }))
    const client = await connectInMemory(importer)
    open.push(() => client.close())
    const { structured } = await client.callTool('import_from_ref', { reference: { ...reference, access_url: there } })
    expect(structured).toEqual({ status: 'imported', imported_resource_id: (reference.checksum as { value: string }).value })
    await clock.advance(16 * 60_000)
    expect([(await fetch(access_url)).status, (await fetch(there)).status]).toEqual([403, 403])
    await until(async () => {
      await clock.advance(60_000)
      expect(readdirSync(blobs)).toEqual(['incoming'])
    })
    expect(await store.scan('reference')).toMatchObject([
      { key: 'reference-bytes', value: '0' },
      { key: 'reference-count', value: '0' },
    ])
  })
})

async function text(data: { open(): Promise<ReadableStream<Uint8Array>> }): Promise<string> {
  return new Response(await data.open()).text()
}

it('E9-7: a reference that there is no place for leaves no content behind', async () => {
  const blobs = folder()
  const server = exporter({ blobs, most: 1 })
  await server.listen()
  const client = await connectInMemory(server)
  await referenceFrom(client)
  expect((await client.callTool('large')).problem?.code).toBe('QUOTA_EXHAUSTED')
  expect(readdirSync(blobs)).toHaveLength(2)
  expect(readdirSync(join(blobs, 'incoming'))).toEqual([])
})

describe('the addresses that origins may have', () => {
  async function importing(origin: string, allow?: readonly string[]) {
    const clock = fakeClock()
    const server = createServer({
      name: 'importer',
      version: '1.0.0',
      log: 'silent',
      clock,
      references: { from: [origin], ...(allow && { allow }) },
    })
    open.push(() => server.close())
    server.importer({ pendingAfter: '1h' }, () => undefined)
    const client = await connectInMemory(server)
    open.push(() => client.close())
    const { reference } = await sourced()
    const calling = client.callTool('import_from_ref', { reference: { ...reference, access_url: `${origin}/x` } })
    let over = false
    calling.finally(() => {
      over = true
    })
    // It waits before each new attempt.
    await until(() => {
      clock.advance(1_000)
      expect(over).toBe(true)
    })
    return (await calling).problem?.code
  }
  async function sourced() {
    const source = await sourceOf(new Uint8Array(10))
    open.push(() => source.close())
    return source
  }

  it('E9-5: a special address is spoken to only where its range was allowed', async () => {
    let connections = 0
    const tcp = createTcpServer(socket => {
      connections++
      socket.on('error', () => undefined).destroy()
    })
    await new Promise<void>(done => tcp.listen(0, '127.0.0.1', done))
    open.push(() => tcp.close())
    // By this name Linux means the machine itself, too.
    const origin = `https://0.0.0.0:${(tcp.address() as AddressInfo).port}`
    expect(await importing(origin)).toBe('PERMISSION_DENIED')
    expect(await importing(origin, ['10.0.0.0/8'])).toBe('PERMISSION_DENIED')
    expect(connections).toBe(0)
    expect(await importing(origin, ['0.0.0.0/32'])).toBe('SERVER_UNAVAILABLE')
    expect(connections).toBeGreaterThan(0)
  })
})

it('an exporter that is busy is asked again when it said so', async () => {
  let asked = 0
  const source = await sourceOf(new TextEncoder().encode(digits))
  open.push(() => source.close())
  const http = createHttpServer((_, res) => {
    if (++asked === 1) res.writeHead(503, { 'retry-after': '5' }).end()
    else res.end(digits)
  })
  const origin = `http://127.0.0.1:${await listening(http)}`
  const clock = fakeClock()
  const server = createServer({ name: 'importer', version: '1.0.0', log: 'silent', clock, references: { from: [origin] } })
  open.push(() => server.close())
  server.importer({ pendingAfter: '1h' }, async data => ({ resourceId: await text(data) }))
  const client = await connectInMemory(server)
  open.push(() => client.close())
  const calling = client.callTool('import_from_ref', { reference: { ...source.reference, access_url: `${origin}/x` } })
  await until(() => expect(asked).toBe(1))
  const began = clock.now()
  await until(() => {
    clock.advance(100)
    expect(asked).toBe(2)
  })
  expect(clock.now() - began).toBeGreaterThanOrEqual(5_000)
  expect((await calling).structured).toEqual({ status: 'imported', imported_resource_id: digits })
})
