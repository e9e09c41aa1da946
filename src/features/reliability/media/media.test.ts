import { afterEach, describe, expect, it, vi } from 'vitest'
import { z } from 'zod'
import { expectFits } from '../../../../test/extension-schemas.ts'
import { proves } from '../../../../test/proves.ts'
import { type Frame, resultOf, speak, textOf, type Wire } from '../../../../test/spec/wire.ts'
import type { RevisionId } from '../../../revisions/index.ts'
import { createServer, image, readMedia, reply, resource, type Server, type ToolOptions, text } from '../../../server/index.ts'
import { connectInMemory } from '../../../testing/index.ts'
import { mediaExtension } from './messages.ts'

const revisions: readonly RevisionId[] = ['2025-11-25', '2026-07-28']
const png = Buffer.concat([Buffer.from('\x89PNG\r\n\x1a\n', 'latin1'), Buffer.alloc(92, 7)])
const html = Buffer.from('<!doctype html><script>steal()</script>')
const base64 = (bytes: Uint8Array): string => Buffer.from(bytes).toString('base64')

const servers: Server[] = []
afterEach(async () => {
  for (const server of servers.splice(0)) await server.close()
})

interface World {
  readonly server: Server
  /** What the handlers got. */
  readonly seen: unknown[]
  readonly traced: string[]
  call(name: string, args: Frame): Promise<Frame>
}

async function world(
  revision: RevisionId,
  media: NonNullable<ToolOptions['media']>,
  extensions: readonly string[] = ['problem', 'media'],
): Promise<World> {
  const seen: unknown[] = []
  const traced: string[] = []
  const server = createServer({ name: 'pictures', version: '1.0.0', log: 'silent', onTrace: event => traced.push(event) })
  servers.push(server)
  const photo = z.object({ mimeType: z.string(), data: z.string() })
  server.tool('show', { input: z.object({ photo }), media }, args => {
    seen.push(args)
    return 'seen'
  })
  server.tool('many', { input: z.object({ photos: z.array(photo) }), media }, args => {
    seen.push(args)
    return 'seen'
  })
  server.tool(
    'bare',
    { input: z.object({ file: z.base64().meta({ contentMediaType: 'image/png' }).optional() }), media },
    args => {
      seen.push(args)
      return 'seen'
    },
  )
  server.tool('url', { input: z.object({ file: z.string() }), media }, args => {
    seen.push(args)
    return 'seen'
  })
  server.tool('draw', { input: z.object({ mimeType: z.string(), data: z.string() }), media }, ({ mimeType, data }) => {
    seen.push(mimeType)
    return reply({ content: [text('here'), image(data, mimeType)] })
  })
  const declared = Object.fromEntries(extensions.map(id => [`dev.vivarium/${id}`, {}]))
  const wire: Wire = await speak(server, revision, { capabilities: { extensions: declared } })
  return { server, seen, traced, call: (name, args) => wire.ask('tools/call', { name, arguments: args }) }
}

function problemOf(frame: Frame): Frame | undefined {
  const meta = resultOf(frame)['_meta'] as Frame | undefined
  return meta?.['dev.vivarium/problem'] as Frame | undefined
}

describe.each(revisions)('media at %s', revision => {
  it('E10-1: more than the tool takes is refused by its length, before it is decoded and before the handler', async () => {
    const { call, seen } = await world(revision, { maxInputBytes: 100 })
    expect(resultOf(await call('show', { photo: { mimeType: 'image/png', data: base64(png) } }))['isError']).toBeUndefined()
    // What lies beyond the limit is not even base64: nobody has looked.
    const data = base64(png).padEnd(3_000_000, '!')
    const answer = await call('show', { photo: { mimeType: 'image/png', data } })
    expect(problemOf(answer)).toMatchObject({
      code: 'PAYLOAD_TOO_LARGE',
      category: 'invalid_input',
      suggestion: 'Send at most 100 bytes in total',
      details: { block: 'arguments.photo', rule: 'size', max_size_bytes: 100 },
    })
    expect(textOf(answer)).toContain('100')
    expect(seen.length).toBe(1)
  })

  it('E10-1: several pieces count together, and the one that is too much is named', async () => {
    const { call, seen } = await world(revision, { maxInputBytes: 250 })
    const photos = Array.from({ length: 3 }, () => ({ mimeType: 'image/png', data: base64(png) }))
    expect(problemOf(await call('many', { photos }))).toMatchObject({
      details: { block: 'arguments.photos[2]', size_bytes: 300 },
    })
    expect(resultOf(await call('many', { photos: photos.slice(1) }))['isError']).toBeUndefined()
    expect(seen.length).toBe(1)
  })

  it('E10-1: bare base64 and data URLs are measured too, before a schema may decode them', async () => {
    const { call, seen } = await world(revision, { maxInputBytes: 10 })
    const decoding = vi.spyOn(globalThis, 'atob')
    const files = { bare: base64(png), url: `data:image/png;name=a.png;base64,${base64(png)}` }
    for (const [tool, file] of Object.entries(files))
      expect(problemOf(await call(tool, { file }))).toMatchObject({
        code: 'PAYLOAD_TOO_LARGE',
        details: { block: 'arguments.file', size_bytes: 100 },
      })
    expect([seen, decoding.mock.calls.length]).toEqual([[], 0])
    decoding.mockRestore()
  })

  it('E10-2: the client sends nothing that it knows will be refused', async () => {
    const { server } = await world(revision, { input: ['image/png'], maxInputBytes: 100, strict: true })
    const sent: string[] = []
    const mcp = await connectInMemory(server, { revision, onFrame: ({ way, text }) => way === 'out' && sent.push(text) })
    const calls: readonly [Frame, Frame][] = [
      [
        { mimeType: 'image/png', data: base64(Buffer.concat([png, png])) },
        { code: 'PAYLOAD_TOO_LARGE', details: { rule: 'size' } },
      ],
      [
        { mimeType: 'image/gif', data: base64(Buffer.from('GIF89a')) },
        { code: 'INVALID_INPUT', details: { rule: 'types' } },
      ],
      [
        { mimeType: 'image/png', data: base64(html) },
        { code: 'INVALID_INPUT', details: { rule: 'magic' } },
      ],
    ]
    for (const [photo, problem] of calls) await expect(mcp.callTool('show', { photo })).rejects.toMatchObject(problem)
    expect(sent.filter(frame => frame.includes('tools/call'))).toEqual([])
    expect((await mcp.callTool('show', { photo: { mimeType: 'image/png', data: base64(png) } })).text).toBe('seen')
    await mcp.close()
    proves('E10-2', 'client')
  })

  it('E10-3: a type that is not listed is taken, and refused where the tool is strict', async () => {
    const gif = { mimeType: 'image/gif', data: base64(Buffer.from('GIF89a\x01\0')) }
    const lax = await world(revision, { input: ['image/png'] })
    expect(resultOf(await lax.call('show', { photo: gif }))['isError']).toBeUndefined()
    const strict = await world(revision, { input: ['image/png', 'audio/*'], strict: true })
    expect(problemOf(await strict.call('show', { photo: gif }))).toMatchObject({
      code: 'INVALID_INPUT',
      suggestion: 'Send one of image/png, audio/*',
      details: { block: 'arguments.photo', rule: 'types' },
    })
    expect([lax.seen.length, strict.seen.length]).toEqual([1, 0])
  })

  it('E10-4: bytes that are not what they are said to be never reach the handler, nor what breaks off', async () => {
    const { call, seen } = await world(revision, { input: ['image/*'] })
    const bad: readonly [string, string, string][] = [
      ['image/png', base64(html), 'magic'],
      ['image/png', base64(png).slice(0, 7), 'magic'],
      ['image/png', '', 'magic'],
      ['text/plain', base64(png), 'magic'],
      ['image/png', base64(png).slice(0, 41), 'base64'],
      ['image/png', `${base64(png)}=`, 'base64'],
      ['image/png', `${base64(png).slice(0, 40)}\n${base64(png).slice(40, 79)}`, 'base64'],
      ['picture', base64(png), 'type'],
    ]
    for (const [mimeType, data, rule] of bad) {
      const answer = await call('show', { photo: { mimeType, data } })
      const problem = problemOf(answer)
      expect([rule, problem]).toMatchObject([
        rule,
        { code: 'INVALID_INPUT', details: { block: 'arguments.photo', rule }, suggestion: expect.stringMatching(/./) },
      ])
      expectFits(problem, 'error.schema.json')
    }
    expect(seen).toEqual([])
    expect(problemOf(await call('url', { file: `data:image/png;base64,${base64(html)}` }))).toMatchObject({
      details: { block: 'arguments.file', rule: 'magic', found: 'text/html' },
    })
    expect(problemOf(await call('bare', { file: base64(html) }))).toMatchObject({ details: { rule: 'magic' } })
  })

  it('E10-4: a result whose bytes are not what it says is a failure of the tool, told once it has run', async () => {
    const { call, seen, traced } = await world(revision, { maxOutputBytes: 100 })
    expect(problemOf(await call('draw', { mimeType: 'image/png', data: base64(png) }))).toBeUndefined()
    // Past the check of the arguments, which is the same: the tool makes other bytes than it was given.
    const { server } = await world(revision, {})
    server.tool('lie', { media: { output: ['image/*'] } }, () => reply({ content: [image(html, 'image/png')] }))
    server.tool('flood', { media: { maxOutputBytes: 150 } }, () =>
      reply({ content: [image(png), resource({ uri: 'a:b', mimeType: 'image/png', blob: base64(png) })] }),
    )
    const wire = await speak(server, revision, { capabilities: { extensions: { 'dev.vivarium/problem': {} } } })
    expect(problemOf(await wire.ask('tools/call', { name: 'lie' }))).toMatchObject({
      code: 'SERVER_ERROR',
      category: 'permanent',
      details: { block: 'content[0]', rule: 'magic', found: 'text/html' },
    })
    const flood = await wire.ask('tools/call', { name: 'flood' })
    expect(problemOf(flood)).toMatchObject({ code: 'PAYLOAD_TOO_LARGE', category: 'permanent', details: { block: 'content[1]' } })
    expect(JSON.stringify(flood)).not.toContain(base64(png))
    expect([seen, traced]).toEqual([['image/png'], []])
  })

  it('E10-4: a client does not hand out what a server gives for something else', async () => {
    const { server } = await world(revision, {})
    // A server that does not look: it says of its media by hand.
    server.tool('lie', { meta: { [mediaExtension]: { output_types: ['image/png'] } } }, () =>
      reply({ content: [image(html, 'image/png')] }),
    )
    const mcp = await connectInMemory(server, { revision })
    await expect(mcp.callTool('lie')).rejects.toMatchObject({ details: { block: 'content[0]', rule: 'magic' } })
    await mcp.close()
  })

  it('E10-5: image/* means every picture, whatever the case and the parameters', async () => {
    const { call } = await world(revision, { input: ['IMAGE/*'], strict: true })
    const photo = { mimeType: 'Image/PNG; q=1', data: base64(png) }
    expect(resultOf(await call('show', { photo }))['isError']).toBeUndefined()
    const sound = { mimeType: 'audio/mpeg', data: base64(Buffer.from('ID3\x04')) }
    expect(problemOf(await call('show', { photo: sound }))).toMatchObject({ details: { rule: 'types' } })
  })

  it('E10-6: a result of a type that is not announced is given, with a warning', async () => {
    const { call, server, traced } = await world(revision, { output: ['image/gif'] })
    const answer = await call('draw', { mimeType: 'image/png', data: base64(png) })
    const result = resultOf(answer)
    expect((result['content'] as Frame[])[1]).toMatchObject({ mimeType: 'image/png' })
    expect((result['_meta'] as Frame)[mediaExtension]).toEqual({
      warnings: [{ block: 'content[1]', rule: 'types', message: expect.stringContaining('image/png') }],
    })
    expect(traced).toEqual(['media-unlisted'])
    const mcp = await connectInMemory(server, { revision })
    const out = await mcp.callTool('draw', { mimeType: 'image/png', data: base64(png) })
    expect(out.warnings).toEqual([expect.stringContaining('content[1] has the type image/png')])
    expect((await mcp.callTool('draw', { mimeType: 'image/gif', data: base64(Buffer.from('GIF89a')) })).warnings).toEqual([])
    await mcp.close()
  })

  it('E10-6: who does not know media gets the result without a word of it', async () => {
    const { call } = await world(revision, { output: ['image/gif'] }, [])
    expect(JSON.stringify(await call('draw', { mimeType: 'image/png', data: base64(png) }))).not.toContain(mediaExtension)
  })

  it('what is declared is told to everybody, in the list and in the manifest', async () => {
    const server = createServer({ name: 'pictures', version: '1.0.0', log: 'silent', manifest: true })
    servers.push(server)
    const media = { input: ['image/*'], output: ['text/plain'], maxInputBytes: 5, strict: true, transport: 'reference' } as const
    server.tool('describe', { media }, () => 'a cat')
    const wire = await speak(server, revision)
    const [tool] = resultOf(await wire.ask('tools/list'))['tools'] as Frame[]
    expect((tool as { _meta: Frame })._meta[mediaExtension]).toEqual({
      input_types: ['image/*'],
      output_types: ['text/plain'],
      max_input_size_bytes: 5,
      strict: true,
      binary_transport: 'reference',
    })
    const mcp = await connectInMemory(server, { revision })
    const manifest = await mcp.manifest()
    expect(manifest.tools[0]).toMatchObject({ inputTypes: ['image/*'], outputTypes: ['text/plain'], maxInputSizeBytes: 5 })
    expect(manifest.supportedExtensions).toContain('multimodal_signatures')
    await mcp.close()
  })

  it('the handler reads bytes as an artifact, checked again, with its own limits', async () => {
    const { server } = await world(revision, {})
    const sizes: number[] = []
    server.tool('measure', { input: z.object({ photo: z.any() }), media: { input: ['image/*'] } }, async ({ photo }) => {
      const { mime, size, digest } = await readMedia(photo, { types: ['image/png'] })
      sizes.push(size)
      return `${mime} ${size} ${digest}`
    })
    const mcp = await connectInMemory(server, { revision })
    const out = await mcp.callTool('measure', { photo: `data:image/png;base64,${base64(png)}` })
    expect(out.text).toMatch(/^image\/png 100 sha256:[0-9a-f]{64}$/)
    const refused = await mcp.callTool('measure', { photo: { mimeType: 'image/gif', data: base64(Buffer.from('GIF89a')) } })
    expect([refused.isError, refused.problem?.details, sizes]).toMatchObject([true, { rule: 'types' }, [100]])
    await mcp.close()
  })
})

it('a tool without media is called past all of it', async () => {
  const { server } = await world('2026-07-28', {})
  server.tool('plain', { input: z.object({ photo: z.any() }) }, () => reply({ content: [image(html, 'image/png')] }))
  const wire = await speak(server, '2026-07-28')
  const answer = await wire.ask('tools/call', { name: 'plain', arguments: { photo: { mimeType: 'image/png', data: '!' } } })
  expect(resultOf(answer)['isError']).toBeUndefined()
})

it.each([
  [{ input: ['picture'] }, /not a media type/],
  [{ maxInputBytes: 1.5 }, /whole number/],
  [{ transport: 'multipart' }, /base64/],
  [{ sizes: 1 }, /no option "sizes"/],
])('media: %j is refused where it is written', (media, words) => {
  const server = createServer({ name: 'a', version: '1.0.0' })
  servers.push(server)
  expect(() => server.tool('t', { media: media as NonNullable<ToolOptions['media']> }, () => '')).toThrow(words)
})
