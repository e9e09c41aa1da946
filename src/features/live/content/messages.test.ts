import fc from 'fast-check'
import { expect, it } from 'vitest'
import { blocksOf, type LiveBlock, wireContent, writeBlocks } from './messages.ts'

const block = fc.oneof(
  fc.record({ type: fc.constant('text' as const), text: fc.string() }),
  fc.record({ type: fc.constantFrom('image' as const, 'audio' as const), data: fc.base64String(), mimeType: fc.string() }),
  fc.record({ type: fc.constant('resource_link' as const), uri: fc.webUrl() }),
)

/** What a reader of 0.2 makes of them. */
function read(wire: Readonly<Record<string, unknown>>): unknown {
  const { source, ...rest } = wire as { source?: { type: string; media_type: string; data: string } }
  if (source === undefined) return wire['type'] === 'resource' ? { ...rest, type: 'resource_link' } : rest
  expect(source.type).toBe('base64')
  return { ...rest, data: source.data, mimeType: source.media_type }
}

it('whichever form is written, nothing of a block is lost, and it is content on the wire', () => {
  fc.assert(
    fc.property(fc.array(block), fc.boolean(), (blocks, source) => {
      const wire = writeBlocks(blocks, source)
      expect(wireContent.check(wire)).toBeUndefined()
      expect(wire.map(read)).toEqual(blocks)
      expect(wire.some(one => 'source' in one)).toBe(source && blocks.some(({ type }) => type === 'image' || type === 'audio'))
    }),
  )
})

it('L10.3-1: a plain string is one block of text', () => {
  expect(blocksOf('hi', 'x')).toEqual([{ type: 'text', text: 'hi' }])
  expect(wireContent.check('hi')).toBeUndefined()
})

it('what is no content is refused with what it must be', () => {
  for (const [given, why] of [
    [{ type: 'text' }, /a text block needs text/],
    [[{ type: 'audio', data: 'x' }], /an audio needs data/],
    [{ type: 'resource_link' }, /needs a uri/],
    [{ type: 'video' }, /blocks of type text/],
    [null, /blocks of type text/],
  ] as const)
    expect(() => blocksOf(given as LiveBlock, 'push')).toThrow(why)
  for (const wire of [undefined, 1, {}, [1], [{}]]) expect(wireContent.check(wire)).toBeDefined()
})
