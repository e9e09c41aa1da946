import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { expandTemplate, parseTemplate } from './template.ts'
import { createMatcher, readParts } from './template-match.ts'

const values = {
  id: '42',
  word: 'Grüße, Welt!',
  path: '/a/b c',
  half: '50%',
  encoded: 'a%20b',
  empty: '',
  list: ['one', 'two,three'],
  none: [],
  pairs: { x: '1', y: 'a b' },
  count: 7,
}

describe('expansion (RFC 6570 §3.2)', () => {
  it.each([
    ['t://{id}', 't://42'],
    ['{word}', 'Gr%C3%BC%C3%9Fe%2C%20Welt%21'],
    ['{+word}', 'Gr%C3%BC%C3%9Fe,%20Welt!'],
    ['{+path}/x', '/a/b%20c/x'],
    ['{half}{+half}', '50%2550%25'],
    ['{encoded}{+encoded}', 'a%2520ba%20b'],
    ['{#path,id}', '#/a/b%20c,42'],
    ['{id,count}', '42,7'],
    ['x{.id,count}', 'x.42.7'],
    ['{/id,path:2}', '/42/%2Fa'],
    ['{word:3}', 'Gr%C3%BC'],
    ['{;id,empty}', ';id=42;empty'],
    ['{?id,empty}', '?id=42&empty='],
    ['x?y=1{&id}', 'x?y=1&id=42'],
    ['{list}', 'one,two%2Cthree'],
    ['{list*}', 'one,two%2Cthree'],
    ['{/list*}', '/one/two%2Cthree'],
    ['{?list*}', '?list=one&list=two%2Cthree'],
    ['{?list}', '?list=one,two%2Cthree'],
    ['{pairs}', 'x,1,y,a%20b'],
    ['{pairs*}', 'x=1,y=a%20b'],
    ['{?pairs*}', '?x=1&y=a%20b'],
    ['x{?none,absent}', 'x'],
    ['x{?absent,id}', 'x?id=42'],
    ['é {id}', '%C3%A9%2042'],
    ['{constructor}', ''],
  ])('%s becomes %s', (template, uri) => {
    expect(expandTemplate(template, values)).toBe(uri)
  })

  it('half a surrogate pair becomes the replacement character', () => {
    expect(expandTemplate('{a}', { a: 'x\ud800' })).toBe('x%EF%BF%BD')
  })

  it('the first characters of a list are refused', () => {
    expect(() => expandTemplate('{list:2}', values)).toThrow(/list is a list, so list:2/)
  })
})

describe('what is no template (RFC 6570 §2)', () => {
  it.each([
    ['{', /has a \{ without a \}/],
    ['a}', /has a \} without a \{/],
    ['{}', /nothing in place of a variable/],
    ['{a b}', /a b in place of a variable/],
    ['{a,}', /in place of a variable/],
    ['{{a}}', /in place of a variable/],
    ['{a:0}', /in place of a variable/],
    ['{a:10000}', /:1 to :9999/],
    ['{a*:3}', /in place of a variable/],
    ['{a-b}', /in place of a variable/],
    ['{.}', /in place of a variable/],
    ['{=a}', /that RFC 6570 reserves/],
    ['{|a}', /that RFC 6570 reserves/],
    ['{?}', /in place of a variable/],
  ])('%s is refused with what would be right', (template, message) => {
    expect(() => parseTemplate(template)).toThrow(message)
  })
})

describe('matching', () => {
  it.each<[string, string, object | undefined]>([
    ['ticket://{id}', 'ticket://42', { id: '42' }],
    ['ticket://{id}', 'ticket://', undefined],
    ['ticket://{id}', 'ticket://a/b', undefined],
    ['ticket://{id}', 'ticket://a?b', undefined],
    ['ticket://{id}', 'ticket://a%2Fb%20%C3%A9', { id: 'a/b é' }],
    ['ticket://{id}', 'ticket://Grüße 😀', { id: 'Grüße 😀' }],
    ['ticket://{id}', 'ticket://a:b@c', { id: 'a:b@c' }],
    ['ticket://{id}', 'ticket://%', undefined],
    ['ticket://{id}', 'ticket://%ff', undefined],
    ['ticket://{id}', 'other://42', undefined],
    ['fixed://one', 'fixed://one', {}],
    ['fixed://one', 'fixed://one2', undefined],
    ['t://{a}/{b}', 't://x/y', { a: 'x', b: 'y' }],
    ['t://{a}:{b}', 't://x:y', { a: 'x', b: 'y' }],
    ['t://{a}:{b}', 't://x:y:z', { a: 'x', b: 'y:z' }],
    ['t://{name}.{ext}', 't://a.tar.gz', { name: 'a.tar', ext: 'gz' }],
    ['t://{name}.json', 't://a.json.json', { name: 'a.json' }],
    ['t://{a}-{b}-{c}', 't://x-y-z', { a: 'x', b: 'y', c: 'z' }],
    ['t://{a,b}', 't://x,y', { a: 'x', b: 'y' }],
    ['t://{a,b}', 't://x', { a: 'x' }],
    ['t://{a,b}', 't://x,y,z', undefined],
    ['t://{a*}', 't://x,y%2C', { a: ['x', 'y,'] }],
    ['t://{a}', 't://x,y', { a: 'x,y' }],
    ['t://{a,b*}', 't://x,y,z', { a: 'x', b: ['y', 'z'] }],
    ['file://{+path}', 'file:///a/b%20c', { path: '/a/b c' }],
    ['file://{+path}/{name}', 'file:///a/b/c', { path: '/a/b', name: 'c' }],
    ['file://{name}/{+path}', 'file://a/b/c', { name: 'a', path: 'b/c' }],
    ['file://{+path}{?v}', 'file:///a?v=1', { path: '/a', v: '1' }],
    ['file://{+path}{?v}', 'file:///a', { path: '/a' }],
    ['t://x{#part}', 't://x#a/b', { part: 'a/b' }],
    ['t://x{.ext}', 't://x.tar.gz', { ext: 'tar.gz' }],
    ['t://x{.a,b}', 't://x.1.2', { a: '1', b: '2' }],
    ['t://x{/a}', 't://x/1', { a: '1' }],
    ['t://x{/a}', 't://x/1/2', undefined],
    ['t://x{/a*}', 't://x/1/2', { a: ['1', '2'] }],
    ['t://x{/a}{/b}', 't://x/1/2', { a: '1', b: '2' }],
    ['t://x{/a}{/b}', 't://x/1', { a: '1' }],
    ['t://x{/a}', 't://x', {}],
    ['t://x{/a}', 't://x/', { a: '' }],
    ['t://x{;a,b}', 't://x;b;a=1', { a: '1', b: '' }],
    ['t://x{?a,b}', 't://x?a=1&b=2', { a: '1', b: '2' }],
    ['t://x{?a,b}', 't://x?b=2', { b: '2' }],
    ['t://x{?a,b}', 't://x?b=2&a=1', { a: '1', b: '2' }],
    ['t://x{?a,b}', 't://x', {}],
    ['t://x{?a}', 't://x?c=1', undefined],
    ['t://x{?a}', 't://x?a=1&a=2', undefined],
    ['t://x{?a}', 't://x?', undefined],
    ['t://x{?a*}', 't://x?a=1&a=2', { a: ['1', '2'] }],
    ['t://x{?a*}', 't://x?a=1', { a: ['1'] }],
    ['t://x{?a}', 't://x?a=b=c/d?e', { a: 'b=c/d?e' }],
    ['t://x?y=1{&a}', 't://x?y=1&a=2', { a: '2' }],
    ['t://x{?a}{&b}', 't://x?a=1&b=2', { a: '1', b: '2' }],
    ['t://{a,b},c', 't://x,y,c', { a: 'x', b: 'y' }],
    ['t://{a:3}/x', 't://abc/x', { a: 'abc' }],
    ['t://{a:3}/x', 't://abcd/x', undefined],
    ['é/{a}', '%C3%A9/x', { a: 'x' }],
    ['{a}', 'x', { a: 'x' }],
  ])('%s and %s', (template, uri, expected) => {
    const found = parseTemplate(template).match(uri)
    expect(found === undefined ? undefined : { ...found }).toEqual(expected)
  })

  it('variables are listed in their order', () => {
    expect(parseTemplate('t://{b}/{a}{?c,d*}').variables).toEqual(['b', 'a', 'c', 'd'])
  })

  it('a variable called __proto__ is a name like any other', () => {
    const found = parseTemplate('t://{__proto__}').match('t://x')
    expect(Object.entries(found ?? {})).toEqual([['__proto__', 'x']])
    expect(({} as { x?: unknown }).x).toBeUndefined()
  })

  it.each([
    ['{a}{b}', /boundary between \{a\} and \{b\} is ambiguous/],
    ['t://{a}{b}{c}', /boundary between \{a\} and/],
    ['{a}{+b}', /boundary between \{a\} and/],
    ['{+a}{b}', /boundary between \{\+a\} and/],
    ['{+a}{/b}', /boundary between \{\+a\} and/],
    ['{a}{.b}', /boundary between \{a\} and/],
    ['{?a,c}{&b}', /boundary between \{\?a,c\} and.*one expression/],
    ['x{/a*}{/b}', /boundary between \{\/a\*\} and/],
    ['x{.a}{/b}{.c}', /boundary between \{\.a\} and \{\.c\} is ambiguous/],
    ['x{?a}={b}', /the end of \{\?a\} is ambiguous because it contains a =/],
    ['x{;a}=', /the end of \{;a\} is ambiguous/],
    ['{a}/{a}', /uses a twice/],
    ['{a*,b}', /Put it last/],
    ['{a}/'.repeat(32), /more than 31 expressions/],
  ])('%s is refused for matching, since URIs could not be told apart', (template, message) => {
    expect(() => parseTemplate(template)).toThrow(message)
  })
})

const text = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 20 }).filter(value => value.isWellFormed())

it('what simple expressions have written is read back (RFC 6570 §3.2.2)', () => {
  const template = parseTemplate('t://{a}/x/{b}:{c}?{d}')
  fc.assert(
    fc.property(fc.record({ a: text, b: text, c: text, d: text }), record => {
      expect({ ...template.match(template.expand(record)) }).toEqual(record)
    }),
  )
})

it('what queries, paths and lists have written is read back', () => {
  const template = parseTemplate('t://x{/a,b*}{?c,d*}{#e}')
  const optional = fc.option(text, { nil: undefined })
  const record = fc.record({
    a: text,
    b: fc.array(text, { minLength: 1 }),
    c: optional,
    d: fc.array(text, { minLength: 1 }),
    e: optional,
  })
  fc.assert(
    fc.property(record, ({ c, e, ...rest }) => {
      // A fragment keeps percent-triplets as they are, so a text that has one does not come back.
      fc.pre(e === undefined || !/%[0-9a-f]{2}/i.test(e))
      const given = { ...rest, ...(c !== undefined && { c }), ...(e !== undefined && { e }) }
      expect({ ...template.match(template.expand(given)) }).toEqual(given)
    }),
  )
})

it('any URI at all is matched or not, without an exception', () => {
  const templates = ['t://{a}-{b}.{c}', '{+a}/{b}{?c}', 't://x{/a*}{;b}{#c}'].map(parseTemplate)
  const uri = fc
    .array(fc.constantFrom('t://', 'x', '/', '-', '.', '%', '%41', '?', '#', ';', '=', '&', 'c', ',', 'é', '\ud800'))
    .map(parts => parts.join(''))
  fc.assert(
    fc.property(uri, fc.constantFrom(...templates), (given, template) => {
      const found = template.match(given)
      expect(found === undefined || typeof found === 'object').toBe(true)
    }),
  )
})

describe('a hostile URI of a megabyte costs one pass (C33)', () => {
  it.each([
    ['{a}-{b}-{c}-{d}-{e}!', '-'],
    ['{+a}/{+b}/{+c}/{+d}!', '/'],
    ['{a}.{b}.{c}.{d}', '.'],
    ['t{/a*}{?b*}', '/'],
    ['{a}--------b{c}', '-'],
  ])('%s', (template, char) => {
    const parts = readParts(template)
    const match = createMatcher(template, parts)
    const expressions = parts.filter(part => typeof part !== 'string').length
    const uri = `t${char.repeat(1_000_000)}!`
    const steps = { count: 0 }
    match(uri, steps)
    expect(steps.count).toBeLessThanOrEqual((uri.length + 1) * expressions)
  })
})
