import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { missingArguments, readArguments } from './arguments.ts'

const schema = {
  type: 'object',
  required: ['n'],
  additionalProperties: false,
  properties: {
    n: { type: 'number' },
    i: { type: 'integer' },
    b: { type: 'boolean' },
    s: { type: 'string' },
    list: { type: 'array', items: { type: 'integer' } },
    o: { type: 'object', properties: { x: { type: 'number' } } },
    e: { enum: ['1', 2] },
    maybe: { anyOf: [{ type: 'number' }, { type: 'null' }] },
    'a.b': { type: 'string' },
  },
}

describe('words become what the schema wants', () => {
  test.each([
    ['n=2.5', { n: 2.5 }],
    ['i=-3', { i: -3 }],
    ['b=yes', { b: true }],
    ['b=false', { b: false }],
    ['s=12', { s: '12' }],
    ['s=', { s: '' }],
    ['s=a=b', { s: 'a=b' }],
    ['list=1,2,3', { list: [1, 2, 3] }],
    ['list=[4]', { list: [4] }],
    ['o={"x":1}', { o: { x: 1 } }],
    ['o.x=7', { o: { x: 7 } }],
    ['e=1', { e: '1' }],
    ['e=2', { e: 2 }],
    ['maybe=null', { maybe: null }],
    ['maybe=4', { maybe: 4 }],
    ['a.b=dotted', { 'a.b': 'dotted' }],
    ['s:="JSON"', { s: 'JSON' }],
  ])('%s', (word, value) => {
    expect(readArguments([word], schema)).toEqual(value)
  })

  test('a key that is repeated adds to its list', () => {
    expect(readArguments(['list=1', 'list=2'], schema)).toEqual({ list: [1, 2] })
  })

  test('where anything goes a number is a number and words are a text', () => {
    expect(readArguments(['a=1', 'b=true', 'c=some words', 'd={"e":[1]}'], {})).toEqual({
      a: 1,
      b: true,
      c: 'some words',
      d: { e: [1] },
    })
  })
})

test.each([
  ['n=many', /n: "many" is not of type number/],
  ['i=1.5', /is not of type integer/],
  ['b=perhaps', /is not of type boolean/],
  ['list=1,x', /is not of type integer\[\]/],
  ['unknown=1', /It has no argument unknown/],
  ['word', /"word" is not an argument/],
  ['s:=nope', /s is not valid JSON/],
])('%s is refused by name', (word, message) => {
  expect(() => readArguments([word], schema)).toThrow(message)
})

test.each([
  ['i=1.5', 'Write i=3'],
  ['b=perhaps', 'Write b=true or b=false'],
  ['list=1,x', `Write list=one,two, or list='["one"]'`],
  ['colour=blu', 'Did you mean blue?'],
  ['colour=infrared-beyond', 'Write one of red, blue'],
])('%s is answered with what could be written', (word, fix) => {
  const properties = { ...schema.properties, colour: { enum: ['red', 'blue'] } }
  expect(() => readArguments([word], { ...schema, properties })).toThrow(expect.objectContaining({ fix }))
})

test('a member that the schema does not list is refused with the nearest, unless it leaves room for others', () => {
  const listed = { type: 'object', properties: { text: { type: 'string' }, tags: { type: 'array' } } }
  const refusal = { message: 'add_note has no argument tag', fix: 'Did you mean tags?' }
  expect(() => readArguments(['tag=x'], listed, {}, 'add_note')).toThrow(expect.objectContaining(refusal))
  expect(() => readArguments(['nope=3'], listed)).toThrow(expect.objectContaining({ fix: 'Its arguments are text, tags' }))
  for (const more of [{ additionalProperties: true }, { anyOf: [{}] }, { patternProperties: { '^t': {} } }])
    expect(readArguments(['tag=x'], { ...listed, ...more })).toEqual({ tag: 'x' })
})

test('what is needed and not given is named', () => {
  expect(missingArguments(schema, { s: 'x' })).toEqual(['n'])
  expect(missingArguments(schema, { n: 0 })).toEqual([])
})

test('every number, truth and text comes back as itself, under any name', () => {
  const name = fc.string({ minLength: 1 }).filter(text => !/[=:.]/.test(text))
  const value = fc.oneof(fc.double({ noNaN: true, noDefaultInfinity: true }), fc.boolean(), fc.string())
  fc.assert(
    fc.property(name, value, (key, given) => {
      const read = readArguments([`${key}=${String(given)}`], { type: 'object', properties: { [key]: { type: typeof given } } })
      expect(Object.getOwnPropertyDescriptor(read, key)?.value).toEqual(given === 0 ? 0 : given)
    }),
  )
})
