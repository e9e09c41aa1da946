import { describe, expect, it } from 'vitest'
import { isExact, readJson } from './read.ts'

const faultOf = (text: string) => {
  const reading = readJson(text)
  return 'fault' in reading ? reading.fault : undefined
}

describe('a JSON text as it is typed', () => {
  it.each(['{}', ' [1, 2.50, -0, 1e3] ', '"\\u202e\\n"', '{"a":{"b":[null,true,false]}}', '12', '{"__proto__":1}'])(
    'is read as JSON.parse reads it: %s',
    text => expect(readJson(text)).toEqual({ value: JSON.parse(text) }),
  )

  it.each([
    ['', 1, 1, /missing/],
    ['{\n  "a": bread\n}', 2, 8, /"bread"/],
    ['{\n  "a": 1\n  "b": 2\n}', 3, 3, /comma/],
    ['{\n  "a": 1,\n}', 2, 9, /comma/],
    ["{'a': 1}", 1, 2, /double quotes/],
    ['["a', 1, 2, /no end/],
    ['[1, 2', 1, 1, /no end/],
    ['"C:\\temp\\x"', 1, 9, /backslash/],
    ['"two\nlines"', 1, 5, /\\n/],
    ['{"a" 1}', 1, 6, /colon/],
    ['1 2', 1, 3, /ends before/],
    ['[1,,2]', 1, 4, /missing/],
    ['01', 1, 1, /no value/],
  ])('says line and column of the first mistake of %j', (text, line, column, message) => {
    expect(faultOf(text)).toMatchObject({ line, column, message: expect.stringMatching(message) })
    expect(() => JSON.parse(text)).toThrow()
  })

  it('refuses what would be sent otherwise than it was typed', () => {
    expect(faultOf('{"id": 12345678901234567890}')?.message).toContain('becomes 12345678901234567000')
    expect(faultOf('{"a": 1, "a": 2}')?.message).toContain('twice')
    expect(faultOf('1e999')?.message).toContain('Infinity')
  })

  it('takes each way to write the same number', () => {
    expect(
      ['1.50', '0.1', '-0', '0.000', '100', '1E+2', '15e-1', '9007199254740991', '1e21', '1.0e-7'].filter(word => !isExact(word)),
    ).toEqual([])
    expect(['0.10000000000000000001', '9007199254740993', '1e400'].filter(isExact)).toEqual([])
  })

  it('is not brought down by depth', () => {
    expect(faultOf('['.repeat(100_000))?.message).toContain('500 deep')
  })
})
