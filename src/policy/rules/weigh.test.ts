import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { readRules } from './read.ts'
import { type Effect, effects, type Rule, type When } from './rule.ts'
import { shadowed, strongest } from './weigh.ts'

const winner = (...rules: Rule[]) => strongest(readRules(rules))?.name
const rule = (name: string, effect: Effect, when: When = {}): Rule => ({
  name,
  do: effect,
  when,
  ...(effect === 'coalesce' && { within: '1s' }),
  ...(effect === 'hold' && { for: '1s' }),
})

describe('of several rules', () => {
  it('one that denies counts, however narrow another is', () => {
    expect(winner(rule('wide', 'deny'), rule('narrow', 'allow', { server: 'a', featureSet: 'a.b', kind: 'push' }))).toBe('wide')
  })

  it('the narrower counts, whatever both say', () => {
    const wide = rule('wide', 'ask', { server: 'a' })
    expect(winner(wide, rule('narrow', 'allow', { server: 'a', tool: 'read' }))).toBe('narrow')
    expect(winner(rule('all', 'allow'), wide)).toBe('wide')
    expect(winner(rule('sets', 'ask', { featureSet: 'm.*' }), rule('some', 'allow', { featureSet: 'm.a*' }))).toBe('some')
    expect(winner(rule('sets', 'ask', { featureSet: ['m.a', 'm.b'] }), rule('one', 'allow', { featureSet: 'm.a' }))).toBe('one')
  })

  it('the more careful counts where neither is narrower', () => {
    const server = (effect: Effect) => rule(effect, effect, { server: 'a' })
    const tool = (effect: Effect) => rule(effect, effect, { tool: 'x' })
    expect(winner(server('allow'), tool('hold'))).toBe('hold')
    expect(winner(server('coalesce'), tool('hold'), rule('ask', 'ask', { tags: 'x' }))).toBe('ask')
    expect(winner(server('allow'), tool('coalesce'))).toBe('coalesce')
  })

  it('the same counts in whatever order they are written', () => {
    const text = fc.constantFrom('a', 'a*', '*', 'b')
    const when = fc.record(
      {
        server: text,
        featureSet: fc.array(text, { minLength: 1, maxLength: 2 }),
        tool: text,
        kind: fc.constantFrom('push', 'tool'),
      },
      { requiredKeys: [] },
    )
    const rules = fc.uniqueArray(fc.tuple(fc.string({ minLength: 1, maxLength: 3 }), fc.constantFrom(...effects), when), {
      selector: ([name]) => name,
      minLength: 1,
      maxLength: 6,
    })
    const shuffled = rules.chain(all => fc.tuple(fc.constant(all), fc.shuffledSubarray(all, { minLength: all.length })))
    fc.assert(
      fc.property(shuffled, ([one, other]) => {
        const [a, b] = [one, other].map(all => winner(...all.map(([name, effect, about]) => rule(name, effect, about as When))))
        expect(a).toBe(b)
      }),
    )
  })
})

describe('a rule that never counts is found', () => {
  const found = (...rules: Rule[]) => shadowed(readRules(rules)).map(shadow => [shadow.rule, shadow.by])

  it('where a wider one denies', () => {
    expect(found(rule('allow it', 'allow', { server: 'a' }), rule('nothing', 'deny', { server: '*' }))).toEqual([
      ['allow it', 'nothing'],
    ])
    expect(found(rule('allow it', 'allow', { server: 'a' }), rule('sometimes', 'deny', { running: 2 }))).toEqual([])
  })

  it('where a more careful one is about the same', () => {
    expect(found(rule('a', 'allow', { server: 'x' }), rule('b', 'ask', { server: 'x' }))).toEqual([['a', 'b']])
    expect(found(rule('a', 'ask', { server: 'x', tool: 'y' }), rule('b', 'allow', { server: 'x' }))).toEqual([])
  })
})

it.each([
  [{ name: 'x', do: 'alow' }, 'do must be allow, deny, ask, hold or coalesce, not alow'],
  [{ name: 'x', do: 'deny', when: { sever: 'a' } }, 'sever is not known'],
  [{ name: 'x', do: 'coalesce' }, 'needs within'],
  [{ name: 'x', do: 'hold' }, 'hold needs'],
  [{ name: 'x', do: 'deny', when: { kind: 'pushes' } }, 'kind must be one of push, '],
  [{ name: 'x', do: 'deny', when: { hours: { from: '25:00', to: '07:00', zone: 'UTC' } } }, 'is not a time of day'],
  [{ name: 'x', do: 'deny', when: { hours: { from: '22:00', to: '07:00', zone: 'Mars' } } }, 'is not a time zone'],
  [{ name: 'x', do: 'deny', when: { above: { count: 0, per: '1m' } } }, 'at least 1'],
  [{ name: 'x', do: 'deny', until: 'soon' }, 'ISO 8601'],
  [{ name: '', do: 'deny' }, 'The rule name "" is missing'],
])('a mistake in a rule is told with its name: %j', (written, message) => {
  expect(() => readRules([written as Rule])).toThrow(message)
})
