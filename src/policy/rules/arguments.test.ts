import { posix } from 'node:path'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { fitsArguments } from './conditions.ts'

const allows = (pattern: string, value: unknown): boolean => fitsArguments([[['path'], [pattern]]], { path: value }, true)
const refuses = (pattern: string, value: unknown): boolean => fitsArguments([[['path'], [pattern]]], { path: value }, false)

describe('what allows a folder', () => {
  it.each([
    '/data/../etc/passwd',
    '/data/./../etc',
    '/data/a/../../etc',
    '/data//../etc',
    '/data/%2e%2e/etc',
    '/data/%252e%252e/etc',
    '/data/%2e%2e/%zz',
    '/data/..%2fetc',
    '/data/..\\etc',
    '/data/x\\..\\..\\etc',
    ['/data/a', '/etc'],
    { deep: ['/data/a', { er: '/data/../etc' }] },
    { '/etc/passwd': '/data/a' },
    [{ '/data/a': { '/data/../etc': '/data/b' } }],
    // Whose members have names of their own is spoken of by them: path.from.
    { from: '/data/a' },
    [],
    {},
    null,
    7,
  ])('does not allow %j', value => {
    expect(allows('/data/*', value)).toBe(false)
  })

  it.each(['/data/a', '/data/a/../b', '/data/./a', '/data/50%', '/data/a..b', ['/data/a', '/data/b'], { '/data/a': '/data/b' }])(
    'allows %j',
    value => {
      expect(allows('/data/*', value)).toBe(true)
    },
  )

  it('speaks of addresses too', () => {
    expect(allows('https://example.com/public/*', 'https://example.com/public/../private')).toBe(false)
    expect(allows('https://example.com/public/*', 'https://example.com/public/a')).toBe(true)
  })

  it('never allows what is outside once its detours are taken', () => {
    const parts = fc.array(fc.constantFrom('..', '.', '', 'a', 'data', 'etc', '%2e%2e', '..%2f'), { maxLength: 8 })
    fc.assert(
      fc.property(parts, list => {
        const path = `/data/${list.join('/')}`
        if (!allows('/data/*', path)) return
        for (const read of [path, decodeURIComponent(path)]) expect(`${posix.normalize(read)}/`).toMatch(/^\/data\//)
      }),
    )
  })
})

describe('what refuses', () => {
  it.each([
    '/etc/passwd',
    '/data/../etc/passwd',
    '//etc/passwd',
    '/%65tc/passwd',
    ['/data/a', ['/etc/x']],
    { name: 'x', at: ['/etc/x'] },
    { '/etc/passwd': 'root::0:0' },
    { '/data/a': [{ '/data/../etc/passwd': 1 }] },
  ])('finds %j', value => {
    expect(refuses('/etc/*', value)).toBe(true)
  })

  it('leads through lists into the objects in them', () => {
    const rule = [[['entities', 'name'], ['evil*']]] as const
    expect(fitsArguments(rule, { entities: [{ name: 'good' }, { name: 'evil1' }] }, false)).toBe(true)
    expect(fitsArguments(rule, { entities: [[{ name: ['good', 'evil1'] }]] }, false)).toBe(true)
    expect(fitsArguments(rule, { entities: [{ name: 'good' }] }, false)).toBe(false)
    expect(fitsArguments([[['entities'], ['*evil*']]], { entities: [{ name: 'an evil one' }] }, false)).toBe(true)
  })

  it('names of members on the way are those of the rule, and not looked at', () => {
    const rule = [[['path', 'from'], ['/data/*']]] as const
    expect(fitsArguments(rule, { path: { from: '/data/a', to: '/etc' } }, true)).toBe(true)
    expect(
      fitsArguments(
        [
          [
            ['path', 'from'],
            ['from', 'path'],
          ],
        ],
        { path: { from: '/data/a' } },
        false,
      ),
    ).toBe(false)
  })

  it('is about what is there, whatever it is, and not about what is not', () => {
    for (const value of ['', 0, false, null, [], {}, [{}]]) expect(refuses('*', value)).toBe(true)
    expect(fitsArguments([[['path'], ['*']]], {}, false)).toBe(false)
    expect(fitsArguments([[['toString'], ['*']]], {}, false)).toBe(false)
  })
})
