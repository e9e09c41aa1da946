import { expect, test } from 'vitest'
import { memoryStore } from './memory.ts'
import { add, append, check, prefixedStore, put, remove, trim } from './store.ts'

test('two parts of one store do not see each other, and closing a part closes nothing', async () => {
  const whole = memoryStore()
  const [one, two] = [prefixedStore(whole, 'one/'), prefixedStore(whole, 'two/')]
  await one.commit([put('a', '1'), append('log', 'x')])
  expect(await two.scan('')).toEqual([])
  expect(await two.read('log')).toEqual([])
  await one.close()
  expect(await whole.get('one/a')).toMatchObject({ value: '1' })
})

test('in a part, keys and logs have the names that they were given', async () => {
  const part = prefixedStore(memoryStore(), 'part/')
  await part.commit([
    put('k/a', '1'),
    put('k/b', '2'),
    put('k/c', '3'),
    put('other', '4'),
    append('log', 'x'),
    append('log', 'y'),
  ])
  expect((await part.scan('k/', { limit: 2 })).map(({ key }) => key)).toEqual(['k/a', 'k/b'])
  expect((await part.scan('k/', { after: 'k/a', before: 'k/c' })).map(({ key }) => key)).toEqual(['k/b'])
  const found = await part.get('k/a')
  expect(found).toMatchObject({ key: 'k/a', value: '1' })
  expect(await part.commit([check('k/a', found?.version), remove('k/b'), add('n', 2), trim('log', 2)])).toMatchObject({
    ok: true,
  })
  expect(await part.commit([check('k/b', found?.version)])).toMatchObject({ ok: false, index: 0 })
  expect(await part.read('log')).toEqual([{ position: 2, value: 'y' }])
})

test('a watch on a part hears of its own keys', async () => {
  const part = prefixedStore(memoryStore(), 'part/')
  const ending = new AbortController()
  const changes = part.watch(['a'], ending.signal)[Symbol.asyncIterator]()
  const heard = changes.next()
  await part.commit([put('ab', '1')])
  expect((await heard).done).not.toBe(true)
  ending.abort()
})
