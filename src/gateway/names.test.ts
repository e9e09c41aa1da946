import fc from 'fast-check'
import { expect, test } from 'vitest'
import { exposedUris } from './addresses.ts'
import { exposedNames } from './names.ts'

const shown = (offered: Record<string, readonly string[]>, strict = true) => {
  const names = exposedNames(new Map(Object.entries(offered)), strict)
  return Object.fromEntries([...names].map(([server, own]) => [server, [...own.values()]]))
}

test('a name that one server uses stays as it is, and one that several use is given to none of them', () => {
  expect(shown({ github: ['search', 'issues.list'], gitlab: ['search'] })).toEqual({
    github: ['github_search', 'issues.list'],
    gitlab: ['gitlab_search'],
  })
})

test('what is too long keeps its tail, and its front is a hash', () => {
  const long = `${'a'.repeat(80)}_delete_file`
  const [[first = ''] = [], [second = ''] = []] = Object.values(shown({ one: [long], two: [long] }))
  for (const name of [first, second]) {
    expect(name).toMatch(/^[0-9a-f]{8}_[A-Za-z0-9_-]+_delete_file$/)
    expect(name).toHaveLength(64)
  }
  expect(first).not.toBe(second)
})

test('names that meet only when they are prefixed are told apart as well', () => {
  const { a = [], a_b = [], c = [] } = shown({ a: ['b_c'], a_b: ['c'], c: ['b_c', 'c'] })
  expect(new Set([...a, ...a_b, ...c]).size).toBe(4)
})

test('a name that no client would take is made one', () => {
  const [name = ''] = shown({ files: ['lösche alles!'] })['files'] ?? []
  expect(name).toMatch(/^[A-Za-z0-9_-]{1,64}$/)
})

const word = fc.oneof(fc.constantFrom('a', 'b', 'a_b', 'search', 'x'.repeat(70)), fc.string({ minLength: 1, maxLength: 90 }))

test('no two things ever have one name, and every name is one that clients take', () => {
  fc.assert(
    fc.property(fc.dictionary(word, fc.uniqueArray(word, { maxLength: 6 }), { maxKeys: 5 }), offered => {
      const all = Object.values(shown(offered)).flat()
      expect(new Set(all).size).toBe(all.length)
      for (const name of all) expect(name).toMatch(/^[A-Za-z0-9_.\-/]{1,128}$/)
    }),
  )
})

test('no server takes the name that another one has, or would get', () => {
  expect(shown({ evil: ['bank_pay', 'mail_pay'], bank: ['pay'], mail: ['pay'] })).toEqual({
    evil: ['evil_bank_pay', 'evil_mail_pay'],
    bank: ['bank_pay'],
    mail: ['mail_pay'],
  })
  // Also while the other one needs no front yet: its name must not be another's tomorrow.
  expect(shown({ evil: ['bank_pay'], bank: ['pay'] })).toEqual({ evil: ['evil_bank_pay'], bank: ['pay'] })
  const long = `${'a'.repeat(80)}_pay`
  const [made = ''] = shown({ bank: [long], mail: [long] })['bank'] ?? []
  const both = shown({ evil: [made], bank: [long], mail: [long] })
  expect(both['bank']).toEqual([made])
  expect(both['evil']).not.toContain(made)
})

test('no server takes the addresses of another one, by a front or by a template for everything', () => {
  const uris = (offered: Record<string, readonly string[]>) =>
    Object.fromEntries([...exposedUris(new Map(Object.entries(offered)))].map(([server, own]) => [server, [...own.values()]]))
  expect(uris({ evil: ['bank+note://1', '{+uri}', 'a{b}:c'], bank: ['note://1'], x: ['git+ssh://a'] })).toEqual({
    evil: ['evil+bank+note://1', 'evil+{+uri}', 'evil+a{b}:c'],
    bank: ['note://1'],
    x: ['git+ssh://a'],
  })
  const alike = Object.values(uris({ bank: ['note://1'], Bank: ['note://1'] })).flat()
  expect(new Set(alike).size).toBe(2)
  for (const uri of alike) expect(uri).toMatch(/^bank-[0-9a-f]{8}\+note:\/\/1$/)
})

test('an address that two servers have begins with the name of the server', () => {
  const names = exposedUris(
    new Map([
      ['My Files', ['file:///a', 'file:///b']],
      ['2nd', ['file:///a']],
    ]),
  )
  expect(Object.fromEntries([...names].map(([server, own]) => [server, [...own.values()]]))).toEqual({
    'My Files': ['my-files+file:///a', 'file:///b'],
    '2nd': ['x-2nd+file:///a'],
  })
})

test('addresses that meet only when they are prefixed are told apart as well, so that nobody takes the place of another', () => {
  const names = exposedUris(
    new Map([
      ['evil', ['shop+x://1']],
      ['shop', ['x://1', 'y://{id}']],
      ['Shop', ['x://1', 'y://{id}']],
    ]),
  )
  const all = [...names.values()].flatMap(own => [...own.values()])
  expect(new Set(all).size).toBe(5)
  expect(all.filter(uri => uri.endsWith('x://1'))).toEqual([
    'shop+x://1',
    expect.stringMatching(/^shop-[0-9a-f]{8}\+x/),
    expect.stringMatching(/^shop-[0-9a-f]{8}\+x/),
  ])
})
