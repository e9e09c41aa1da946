import { describe, expect, it } from 'vitest'
import type { Offer } from '../../../../src/console/contract/calls.ts'
import { offerLines, prefixOf } from './offer-groups.ts'
import { fillTemplate } from './uri-template.ts'

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

describe('a template of an address', () => {
  // Examples of RFC 6570.
  it.each([
    ['notes://{name}', { name: 'Hello World!' }, 'notes://Hello%20World%21'],
    ['{+path}/here', { path: '/foo/bar' }, '/foo/bar/here'],
    ['X{#path:6}here', { path: '/foo/bar' }, 'X#/foo/bhere'],
    ['{/var,x}/here', { var: 'value', x: '1024' }, '/value/1024/here'],
    ['{?x,y,empty}', { x: '1024', y: '768', empty: '' }, '?x=1024&y=768&empty='],
    ['{;x,empty}', { x: '1', empty: '' }, ';x=1;empty'],
    ['{?undef}{var}', { var: 'a/b' }, 'a%2Fb'],
    ['www{.var}', { var: 'é' }, 'www.%C3%A9'],
  ])('%s is filled in', (template, values, address) => expect(fillTemplate(template, values)).toBe(address))
})
