import { describe, expect, it } from 'vitest'
import { expectLog } from '../../../../test/log-lines/lines.ts'
import { declaredAt, envelope, everyRevision, type Frame, rawWire } from '../../../../test/raw-wire.ts'
import type { RevisionId } from '../../../revisions/index.ts'
import { createServer, type Server } from '../../../server/server.ts'

expectLog('internal', /broken:\/\/x error="Error: password is hunter2/)

function library(options: { pageSize?: number } = {}): Server {
  const server = createServer({ name: 'library', version: '1', revisions: everyRevision, ...options })
  server.resource(
    'book://one',
    {
      name: 'one',
      title: 'The first',
      description: 'A book',
      mimeType: 'text/plain',
      size: 5,
      icons: [{ src: 'https://example.com/one.png' }],
      annotations: { priority: 1, lastModified: '2025-01-01T00:00:00Z' },
      meta: { shelf: 3 },
    },
    () => 'Hello',
  )
  server.resource('cover://one', { name: 'cover', mimeType: 'image/png' }, () => new Uint8Array([0, 255, 16]))
  server.resource('page://{book}/{number}', { name: 'page', mimeType: 'text/plain' }, ({ book, number }) => `${book} ${number}`)
  return server
}

async function ask(server: Server, revision: RevisionId, method: string, params?: Frame): Promise<Frame> {
  const wire = await rawWire(server.acceptor, revision)
  return wire.ask(method, params)
}

async function result(server: Server, revision: RevisionId, method: string, params?: Frame): Promise<Frame> {
  return (await ask(server, revision, method, params))['result'] as Frame
}

describe('resources/list', () => {
  const first = async (revision: RevisionId): Promise<Frame> => {
    const list = await result(library(), revision, 'resources/list')
    return (Array.isArray(list) ? list[0] : (list['resources'] as Frame[])[0]) as Frame
  }
  const plain = { uri: 'book://one', name: 'one', description: 'A book', mimeType: 'text/plain' }
  const titled = {
    ...plain,
    size: 5,
    title: 'The first',
    _meta: { shelf: 3 },
    annotations: { priority: 1, lastModified: '2025-01-01T00:00:00Z' },
  }

  it.each<RevisionId>(['2024-11-05', '2025-03-26'])(
    'gives %s neither title nor _meta nor lastModified (rev A, B §1.5)',
    async revision => {
      expect(await first(revision)).toEqual({ ...plain, size: 5, annotations: { priority: 1 } })
    },
  )

  it('gives 2025-06-18 titles, but no icons (rev C §1.5)', async () => {
    expect(await first('2025-06-18')).toEqual(titled)
  })

  it.each<RevisionId>(['2025-11-25', '2026-07-28', 'draft-2026-v1'])('gives %s all there is (rev D, E §1.5)', async revision => {
    expect(await first(revision)).toEqual({ ...titled, icons: [{ src: 'https://example.com/one.png' }] })
  })

  it('gives the dialect a bare array of four members (S3 §3.1)', async () => {
    const list = await result(library(), 's3', 'resources/list')
    expect(list).toEqual([plain, { uri: 'cover://one', name: 'cover', mimeType: 'image/png' }])
  })

  it('says how long it may be kept only where that is known (trap 10)', async () => {
    expect(await result(library(), '2026-07-28', 'resources/list')).toMatchObject({ ttlMs: 0, cacheScope: 'private' })
    for (const revision of ['2025-11-25', 'draft-2026-v1'] as const) {
      const list = await result(library(), revision, 'resources/list')
      expect(Object.keys(list)).not.toContain('ttlMs')
    }
  })

  it('is not there, and neither is the capability, while nothing is offered', async () => {
    const server = createServer({ name: 'empty', version: '1' })
    expect(await ask(server, '2025-11-25', 'resources/list')).toMatchObject({ error: { code: -32601 } })
    expect(await declaredAt(server.acceptor, '2025-11-25')).not.toHaveProperty('resources')
    expect(await declaredAt(library().acceptor, '2025-11-25')).toMatchObject({
      resources: { subscribe: true, listChanged: true },
    })
  })
})

describe('resources/list with a template that lists', () => {
  const shelf = (pageSize: number): Server => {
    const server = library({ pageSize })
    const pages = [1, 2, 3].map(number => ({ uri: `leaf://one/${number}`, name: `leaf ${number}` }))
    server.resource(
      'leaf://{book}/{number}',
      { name: 'leaf', mimeType: 'text/plain', list: () => [...pages, { uri: 'book://one' }] },
      () => 'x',
    )
    return server
  }

  it('tells what is registered first, then what the template knows, each URI once', async () => {
    const { resources } = (await result(shelf(100), '2025-11-25', 'resources/list')) as { resources: Frame[] }
    expect(resources.map(({ uri }) => uri)).toEqual(['book://one', 'cover://one', 'leaf://one/1', 'leaf://one/2', 'leaf://one/3'])
    expect(resources[2]).toEqual({ uri: 'leaf://one/1', name: 'leaf 1', mimeType: 'text/plain' })
  })

  it.each([1, 2, 3, 4, 5])('gives the same list in pages of %i', async pageSize => {
    const wire = await rawWire(shelf(pageSize).acceptor, '2025-11-25')
    const uris: unknown[] = []
    let params: Frame = {}
    for (let cursor: unknown = ''; cursor !== undefined; params = { cursor }) {
      const page = (await wire.ask('resources/list', params))['result'] as { resources: Frame[]; nextCursor?: string }
      expect(page.resources.length).toBeLessThanOrEqual(pageSize)
      uris.push(...page.resources.map(({ uri }) => uri))
      cursor = page.nextCursor
    }
    expect(uris).toEqual(['book://one', 'cover://one', 'leaf://one/1', 'leaf://one/2', 'leaf://one/3'])
  })

  it('gives the dialect everything at once, as it has no pages', async () => {
    expect(await result(shelf(2), 's3', 'resources/list')).toHaveLength(5)
  })

  it('refuses a cursor that it did not give, also the empty one (trap 29)', async () => {
    expect(await ask(shelf(2), '2025-11-25', 'resources/list', { cursor: '' })).toMatchObject({ error: { code: -32602 } })
  })
})

describe('resources/templates/list', () => {
  it('lists templates apart from resources', async () => {
    const list = await result(library(), '2025-11-25', 'resources/templates/list')
    expect(list).toEqual({ resourceTemplates: [{ uriTemplate: 'page://{book}/{number}', name: 'page', mimeType: 'text/plain' }] })
  })
})

describe('resources/read', () => {
  it('gives text as text and bytes as base64, each with the type of the resource', async () => {
    expect(await result(library(), '2025-11-25', 'resources/read', { uri: 'book://one' })).toEqual({
      contents: [{ uri: 'book://one', mimeType: 'text/plain', text: 'Hello' }],
    })
    expect(await result(library(), '2025-11-25', 'resources/read', { uri: 'cover://one' })).toEqual({
      contents: [{ uri: 'cover://one', mimeType: 'image/png', blob: 'AP8Q' }],
    })
  })

  it('names the list that can help where there are templates only', async () => {
    const server = createServer({ name: 'pages', version: '1.0.0' })
    server.resource('page://{n}', { name: 'page' }, () => undefined)
    for (const uri of ['page://1', 'book://1']) {
      const answer = await ask(server, '2025-11-25', 'resources/read', { uri })
      expect(answer['error']).toMatchObject({ message: expect.stringContaining('resources/templates/list lists') })
    }
  })

  it('takes an exact URI before any template, and templates in the order in which they came', async () => {
    const server = library()
    server.resource('page://{+rest}', { name: 'rest' }, () => 'the rest')
    server.resource('page://one/7', { name: 'seven' }, () => 'exactly')
    const text = async (uri: string): Promise<unknown> => {
      const { contents } = (await result(server, '2025-11-25', 'resources/read', { uri })) as { contents: [Frame] }
      return contents[0]['text']
    }
    expect([await text('page://one/7'), await text('page://one/8'), await text('page://one/8/9')]).toEqual([
      'exactly',
      'one 8',
      'the rest',
    ])
  })

  it.each<[RevisionId, number]>([
    ['2024-11-05', -32002],
    ['2025-03-26', -32002],
    ['2025-06-18', -32002],
    ['2025-11-25', -32002],
    ['draft-2026-v1', -32002],
    ['2026-07-28', -32602],
  ])('tells %s of a resource that is not there by %i and its URI, never by empty contents (trap 26)', async (revision, code) => {
    const server = library()
    server.resource('maybe://{id}', { name: 'maybe' }, () => undefined)
    server.resource('none://{id}', { name: 'none' }, () => [])
    for (const uri of ['nowhere://x', 'maybe://x', 'none://x']) {
      expect(await ask(server, revision, 'resources/read', { uri })).toMatchObject({ error: { code, data: { uri } } })
    }
  })

  it('lets an author say in words that it is not there', async () => {
    const server = library()
    server.resource('gone://{id}', { name: 'gone' }, (_, ctx) => {
      throw ctx.problem('RESOURCE_NOT_FOUND', 'Sold last week')
    })
    const answer = await ask(server, '2025-11-25', 'resources/read', { uri: 'gone://x' })
    expect(answer).toMatchObject({ error: { code: -32002, message: 'Sold last week', data: { uri: 'gone://x' } } })
  })

  it('tells a problem in its own words, with the way out', async () => {
    const server = library()
    server.resource('picky://{id}', { name: 'picky' }, (_, ctx) => {
      throw ctx.problem('INVALID_INPUT', 'Ids are numbers', { suggestion: 'Try picky://1' })
    })
    const answer = await ask(server, '2025-11-25', 'resources/read', { uri: 'picky://x' })
    expect(answer).toMatchObject({ error: { code: -32602, message: 'Ids are numbers. Try picky://1' } })
  })

  it('repeats no more than 80 characters of a URI', async () => {
    const answer = await ask(library(), '2025-11-25', 'resources/read', { uri: `nowhere://${'x'.repeat(500)}` })
    const { message, data } = answer['error'] as { message: string; data: { uri: string } }
    expect(data.uri).toHaveLength(80)
    expect(message.length).toBeLessThan(200)
  })

  it('keeps what a handler threw to itself', async () => {
    const server = library()
    server.resource('broken://x', { name: 'broken' }, () => {
      throw new Error('password is hunter2')
    })
    const answer = await ask(server, '2025-11-25', 'resources/read', { uri: 'broken://x' })
    expect(answer).toMatchObject({ error: { code: -32603 } })
    expect(JSON.stringify(answer)).not.toContain('hunter2')
  })

  it('drops _meta of contents for wires that have none (rev A, B §1.5)', async () => {
    const server = library()
    server.resource('meta://x', { name: 'meta' }, () => ({ text: 'x', _meta: { a: 1 } }))
    const read = (revision: RevisionId): Promise<Frame> => result(server, revision, 'resources/read', { uri: 'meta://x' })
    expect(await read('2025-03-26')).toEqual({ contents: [{ uri: 'meta://x', text: 'x' }] })
    expect(await read('2025-06-18')).toEqual({ contents: [{ uri: 'meta://x', text: 'x', _meta: { a: 1 } }] })
  })

  it('serves the dialect too, in the shape of 2025-06-18 (S3 §3.1)', async () => {
    expect(await result(library(), 's3', 'resources/read', { uri: 'page://one/2' })).toEqual({
      contents: [{ uri: 'page://one/2', mimeType: 'text/plain', text: 'one 2' }],
    })
  })
})

describe('how long what was read may be kept', () => {
  const server = createServer({ name: 'cached', version: '1', cache: { ttl: '1m' } })
  server.resource('a://standard', { name: 'standard' }, () => 'a')
  server.resource('a://own', { name: 'own', cache: { ttl: '5s', scope: 'public' } }, () => 'b')
  server.resource('a://asks', { name: 'asks', cache: { ttl: '5s', scope: 'public' } }, async (_, ctx) =>
    (await ctx.confirm('Really?')) ? 'yes' : 'no',
  )

  it('is what the resource says, else what the server says (rev E §2.1)', async () => {
    expect(await result(server, '2026-07-28', 'resources/read', { uri: 'a://standard' })).toMatchObject({
      ttlMs: 60_000,
      cacheScope: 'private',
    })
    expect(await result(server, '2026-07-28', 'resources/read', { uri: 'a://own' })).toMatchObject({
      ttlMs: 5_000,
      cacheScope: 'public',
    })
  })

  it('is nothing for a question, and nothing for what came of one (trap 10)', async () => {
    const wire = await rawWire(server.acceptor, '2026-07-28')
    const _meta = { ...envelope('2026-07-28'), 'io.modelcontextprotocol/clientCapabilities': { elicitation: {} } }
    const asked = (await wire.ask('resources/read', { uri: 'a://asks', _meta }))['result'] as Frame
    expect(asked).toMatchObject({ resultType: 'input_required' })
    expect(asked).not.toHaveProperty('ttlMs')
    const [key] = Object.keys(asked['inputRequests'] as Frame)
    const inputResponses = { [key as string]: { action: 'accept', content: { confirm: true } } }
    const answered = await wire.ask('resources/read', {
      uri: 'a://asks',
      inputResponses,
      requestState: asked['requestState'],
      _meta,
    })
    expect(answered['result']).toMatchObject({ contents: [{ text: 'yes' }], ttlMs: 0, cacheScope: 'private' })
  })
})

describe('registering a resource', () => {
  it('refuses what is no URI, and says what would be one', () => {
    expect(() => createServer({ name: 'x', version: '1' }).resource('notes', { name: 'notes' }, () => '')).toThrow(/scheme/)
  })

  it('refuses to complete a variable that the template does not have', () => {
    const template: string = 'a://{id}'
    const complete = { name: () => [] }
    expect(() => createServer({ name: 'x', version: '1' }).resource(template, { name: 'a', complete }, () => '')).toThrow(
      /no variable "name"/,
    )
  })

  it('refuses a list for a resource that stands for itself alone', () => {
    expect(() => createServer({ name: 'x', version: '1' }).resource('a://b', { name: 'a', list: () => [] }, () => '')).toThrow(
      /templates/,
    )
  })

  it('gives a handle that changes and removes what was registered', async () => {
    const server = library()
    const handle = server.resource('note://x', { name: 'old', mimeType: 'text/plain' }, () => 'x')
    handle.update({ name: 'new' })
    const { resources } = (await result(server, '2025-11-25', 'resources/list')) as { resources: Frame[] }
    expect(resources.at(-1)).toEqual({ uri: 'note://x', name: 'new', mimeType: 'text/plain' })
    handle.remove()
    expect(await ask(server, '2025-11-25', 'resources/read', { uri: 'note://x' })).toMatchObject({ error: { code: -32002 } })
  })
})
