import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { ContentBlock } from '../../mcp/content/messages.ts'
import { fromSourceBlock, mediaExtension, mediaOf, toSourceBlock, warningsIn } from './messages.ts'
import { piecesOfArguments } from './runtime.ts'

const more = fc.record(
  { annotations: fc.record({ priority: fc.double({ noNaN: true }) }), _meta: fc.dictionary(fc.string(), fc.integer()) },
  { requiredKeys: [] },
)
const mimeType = fc.constantFrom('image/png', 'audio/wav', 'x/y; z=1')
const block: fc.Arbitrary<ContentBlock> = fc
  .tuple(
    fc.oneof(
      fc.record({ type: fc.constant('text' as const), text: fc.string() }),
      fc.record({ type: fc.constantFrom('image' as const, 'audio' as const), data: fc.base64String(), mimeType }),
      fc.record({ type: fc.constant('resource_link' as const), uri: fc.webUrl(), name: fc.string(), size: fc.nat() }),
      fc.webUrl().map(uri => ({ type: 'resource_link' as const, uri, name: uri })),
      fc.record({
        type: fc.constant('resource' as const),
        resource: fc.record({ uri: fc.webUrl(), mimeType, blob: fc.base64String() }),
      }),
    ),
    more,
  )
  .map(([one, rest]) => ({ ...one, ...rest }))

describe('blocks in two forms', () => {
  it('E10-7: a block comes back from the form with a source as it was', () => {
    fc.assert(
      fc.property(block, given => {
        expect(fromSourceBlock(toSourceBlock(given))).toEqual(given)
      }),
    )
  })

  it('E10-7: bytes and type stand in a source there, and blocks of that form come back from ours', () => {
    const source = { type: 'base64', media_type: 'image/png', data: 'AAAA' } as const
    expect(toSourceBlock({ type: 'image', data: 'AAAA', mimeType: 'image/png' })).toEqual({ type: 'image', source })
    for (const given of [
      { type: 'image', source },
      { type: 'audio', source },
      { type: 'text', text: 'a' },
      { type: 'resource_link', uri: 'a:b' },
    ] as const) {
      const ours = fromSourceBlock(given)
      expect(ours && toSourceBlock(ours)).toEqual(given)
    }
  })

  it('E10-7: both forms are read, a plain string is text, and what is neither is no block', () => {
    expect(fromSourceBlock('a')).toEqual({ type: 'text', text: 'a' })
    expect(fromSourceBlock({ type: 'text' })).toEqual({ type: 'text', text: '' })
    expect(fromSourceBlock({ type: 'image', data: 'AAAA', mimeType: 'image/png' })).toMatchObject({ data: 'AAAA' })
    for (const none of [1, null, {}, { type: 'image', source: { url: 'a:b' } }, { type: 'resource_link' }, { type: 'resource' }])
      expect(fromSourceBlock(none)).toBeUndefined()
  })
})

describe('what a tool says of media', () => {
  it('a transport that is neither of ours is read as a reference, and what is malformed as nothing', () => {
    expect(mediaOf({ [mediaExtension]: { binary_transport: 'multipart' } })).toEqual({ binary_transport: 'reference' })
    expect(mediaOf({ [mediaExtension]: { input_types: 'image/png' } })).toBeUndefined()
    expect(mediaOf({})).toBeUndefined()
    expect(warningsIn({ [mediaExtension]: { warnings: [{ message: 'a' }, 1, { message: 2 }] } })).toEqual(['a'])
  })
})

describe('media in arguments', () => {
  it('are found wherever they are, and nothing else is', () => {
    const encoded = { type: 'string', contentEncoding: 'base64', contentMediaType: 'image/png' }
    const schema = {
      $defs: { file: encoded },
      properties: {
        one: { anyOf: [{ type: 'null' }, { $ref: '#/$defs/file' }] },
        list: { type: 'array', items: { allOf: [{ properties: { file: encoded } }] } },
        loop: { $ref: '#' },
        plain: { type: 'string' },
      },
    }
    const args = {
      one: 'AAAA',
      list: [{ file: 'BBBB' }],
      loop: { one: 'CCCC' },
      plain: 'DDDD',
      deep: { type: 'image', source: { type: 'base64', media_type: 'image/gif', data: 'EEEE' } },
      url: 'DATA:;charset=utf-8;base64,FFFF',
      resource: { uri: 'a:b', mimeType: 'x/y', blob: 'GGGG', note: 'data: none' },
    }
    expect(piecesOfArguments(args, schema).map(({ where, type, data }) => [where, type, data])).toEqual([
      ['arguments.one', 'image/png', 'AAAA'],
      ['arguments.list[0].file', 'image/png', 'BBBB'],
      ['arguments.loop.one', 'image/png', 'CCCC'],
      ['arguments.deep.source', 'image/gif', 'EEEE'],
      ['arguments.url', 'text/plain', 'FFFF'],
      ['arguments.resource', 'x/y', 'GGGG'],
    ])
  })

  it('have a place that repeats no more of foreign names than a line holds', () => {
    const name = '\u0007'.repeat(200_000)
    const [piece] = piecesOfArguments({ [name]: { [name]: { mimeType: 'a/b', data: '' } } }, {})
    expect(piece?.where.length).toBeLessThanOrEqual(80)
    expect(piece?.where).not.toContain('\u0007')
  })

  it('any arguments can be walked', () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.jsonValue()), fc.dictionary(fc.string(), fc.jsonValue()), (args, schema) => {
        piecesOfArguments(args, { ...schema, properties: schema, items: schema })
      }),
    )
  })
})
