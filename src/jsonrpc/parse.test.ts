import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { McpError } from './error.ts'
import { frameLimits } from './limits.ts'
import { parse } from './parse.ts'

const nested = (depth: number, open = '[', close = ']') => open.repeat(depth) + close.repeat(depth)

function refusal(text: string, limits = frameLimits): McpError {
  try {
    parse(text, limits)
  } catch (error) {
    if (error instanceof McpError) return error
  }
  throw new Error('was not refused')
}

describe('parsing a frame', () => {
  it('looks at all of a text that may break a limit, and finds the same as whoever counts in the value', () => {
    const count = (value: unknown, level = 1): [depth: number, elements: number] => {
      if (typeof value !== 'object' || value === null) return [level - 1, 0]
      const inner = Object.values(value).map(member => count(member, level + 1))
      const elements = inner.reduce((sum, [, more]) => sum + more, Math.max(inner.length, 1))
      return [Math.max(level, ...inner.map(([depth]) => depth)), elements]
    }
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 5 }), fc.nat({ max: 6 }), fc.nat({ max: 12 }), (value, depth, elements) => {
        const [deepest, all] = count(value)
        const read = () => parse(JSON.stringify(value), { ...frameLimits, depth, elements })
        if (deepest <= depth && all <= elements) expect(read()).toEqual(JSON.parse(JSON.stringify(value)))
        else if (deepest > depth) expect(read).toThrow(/levels|elements/)
      }),
    )
  })

  it('gives what JSON.parse gives for any JSON value within the limits', () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 6 }), value => {
        expect(parse(JSON.stringify(value))).toEqual(JSON.parse(JSON.stringify(value)))
      }),
    )
  })

  it('takes exactly the allowed depth and refuses one level more, before any recursive code sees the value', () => {
    expect(parse(nested(128))).toBeInstanceOf(Array)
    expect(refusal(nested(129)).kind).toBe('invalid-request')
    expect(refusal(`${'{"a":'.repeat(129)}1${'}'.repeat(129)}`).message).toContain('128 levels')
  })

  it('does not count brackets that stand inside strings, escaped quotes included', () => {
    const text = JSON.stringify({ text: `${'["{'.repeat(500)}\\"[[[` })
    expect(parse(text)).toEqual(JSON.parse(text))
  })

  it('refuses a hundred thousand levels without running out of stack', () => {
    expect(refusal(nested(100_000)).message).toContain('128 levels')
  })

  it('refuses more elements than the limit and names it', () => {
    const limits = { ...frameLimits, elements: 1_000 }
    expect(parse(`[${'0,'.repeat(998)}0]`, limits)).toHaveLength(999)
    expect(refusal(`[${'0,'.repeat(1_100)}0]`, limits).message).toContain('1000 elements')
  })

  it('refuses more different names than the limit, wherever they stand, and counts each name once', () => {
    const limits = { ...frameLimits, names: 1_000 }
    const wide = (count: number, length = 1) =>
      `{${Array.from({ length: count }, (_, index) => `"${'n'.repeat(length)}${index}" :"a\\":,{b"`).join(', ')}}`
    expect(Object.keys(parse(wide(1_000), limits) as object)).toHaveLength(1_000)
    expect(refusal(wide(1_001), limits).message).toContain('1000 different member names')
    expect(refusal(wide(1_001, 300), limits).message).toContain('1000 different member names')
    expect(refusal(`[${Array.from({ length: 1_001 }, (_, index) => `{"n${index}":1}`).join(',')}]`, limits).message).toContain(
      '(names)',
    )
    expect(parse(JSON.stringify(Array.from({ length: 5_000 }, () => ({ id: 'a:b', name: 'c' }))), limits)).toHaveLength(5_000)
  })

  it('says that text is not JSON without repeating more than a clip of it', () => {
    const error = refusal(`{"a": ${'x'.repeat(5_000)}`)
    expect(error.kind).toBe('parse')
    expect(error.message.length).toBeLessThan(250)
  })

  it('keeps a member named __proto__ a plain own member', () => {
    const value = parse('{"__proto__":{"polluted":true}}') as object
    expect(Object.getPrototypeOf(value)).toBe(Object.prototype)
    expect(Object.keys(value)).toEqual(['__proto__'])
  })
})
