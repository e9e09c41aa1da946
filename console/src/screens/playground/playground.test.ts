import { describe, expect, it } from 'vitest'
import type { Offer } from '../../../../src/console/contract/calls.ts'
import { offerLines, prefixOf } from './offer-groups.ts'

const tools = (...names: readonly string[]): readonly Offer[] => names.map(name => ({ kind: 'tool', name }))
const shown = (offers: readonly Offer[], filter = '', open: readonly string[] = []) =>
  offerLines(offers, filter, new Set(open)).map(line =>
    line.kind === 'group' ? `${line.prefix} ${line.count}` : line.offer.name,
  )

describe('the list of tools', () => {
  const many = tools(...Array.from({ length: 2000 }, (_, index) => `cart_${index}`), 'order')

  it('folds names with a common beginning, and leaves short lists as they are', () => {
    expect(shown(many)).toEqual(['cart_ 2000', 'order'])
    expect(shown(many, '', ['cart_'])).toHaveLength(2002)
    expect(shown(tools('cart_a', 'cart_b'))).toEqual(['cart_a', 'cart_b'])
  })

  it('shows what a filter finds without a fold', () => {
    expect(shown(many, 'cart_199')).toEqual(['cart_199', ...Array.from({ length: 10 }, (_, index) => `cart_199${index}`)])
    expect(shown(many, 'ORD')).toEqual(['order'])
  })

  it('divides names at what divides words, and addresses by their place', () => {
    expect(['cart_add', 'cart.add', 'order', 'notes://work/a/b', '_x'].map(prefixOf)).toEqual([
      'cart_',
      'cart.',
      'order',
      'notes://work/',
      '_',
    ])
  })
})
