import fc from 'fast-check'
import { expect, it } from 'vitest'
import { type Catalog, createCatalog } from './catalog.ts'

interface Thing {
  readonly name: string
  readonly note?: string
  readonly run?: () => void
}

function things(...names: string[]): Catalog<Thing> {
  const catalog = createCatalog<Thing>({ noun: 'thing', key: thing => thing.name })
  for (const name of names) catalog.add({ name })
  return catalog
}

const names = (entries: readonly Thing[]) => entries.map(({ name }) => name)

it('entries are found by name and listed in the order in which they came', () => {
  const catalog = things('b', 'a', 'constructor')
  expect(catalog.get('a')).toEqual({ name: 'a' })
  expect(catalog.get('toString')).toBeUndefined()
  expect(names(catalog.snapshot.entries)).toEqual(['b', 'a', 'constructor'])
})

it('an update keeps the place, a removal followed by an addition goes to the end', () => {
  const catalog = things('a', 'b', 'c')
  catalog.update({ name: 'a', note: 'new' })
  catalog.remove('b')
  catalog.add({ name: 'b' })
  expect(catalog.snapshot.entries).toEqual([{ name: 'a', note: 'new' }, { name: 'c' }, { name: 'b' }])
})

it('a second entry of the same name is refused, and the first stays', () => {
  const catalog = things('a')
  expect(() => catalog.add({ name: 'a', note: 'second' })).toThrow('The thing "a" already exists')
  expect(catalog.get('a')).toEqual({ name: 'a' })
})

it('what is not there cannot be updated, and removing it changes nothing', () => {
  const catalog = things('a')
  const { snapshot } = catalog
  expect(() => catalog.update({ name: 'b' })).toThrow('The thing "b" does not exist')
  expect(catalog.remove('b')).toBe(false)
  expect(catalog.snapshot).toBe(snapshot)
})

it('a snapshot stays as it was when the catalog changes', () => {
  const catalog = things('a', 'b')
  const { snapshot } = catalog
  catalog.remove('a')
  expect(names(snapshot.entries)).toEqual(['a', 'b'])
  expect(names(snapshot.page(0, 10).entries)).toEqual(['a', 'b'])
  expect(names(catalog.snapshot.entries)).toEqual(['b'])
  expect(catalog.snapshot.version).toBeGreaterThan(snapshot.version)
})

it('what is derived from a snapshot is made once, and anew after a change', () => {
  const catalog = things('a')
  let made = 0
  const read = () => catalog.snapshot.memo('list', () => `made ${++made}`)
  expect([read(), read()]).toEqual(['made 1', 'made 1'])
  catalog.update({ name: 'a' })
  expect(read()).toBe('made 2')
})

it('what is derived is bounded: beyond that it is made each time', () => {
  const { snapshot } = things('a')
  for (let key = 0; key < 5_000; key++) snapshot.memo(`${key}`, () => key)
  expect(snapshot.memo('4999', () => 'anew')).toBe('anew')
  expect(snapshot.memo('0', () => 'anew')).toBe(0)
})

it('tells of each change at once, until told to stop', () => {
  const catalog = things('a')
  const seen: number[] = []
  const stop = catalog.onChange(() => seen.push(catalog.size))
  catalog.add({ name: 'b' })
  catalog.update({ name: 'b' })
  stop()
  catalog.remove('b')
  expect(seen).toEqual([2, 2])
})

it('the revision depends on the contents alone, not on order or on what JSON cannot hold', async () => {
  const one = things('a', 'b')
  const other = createCatalog<Thing>({ noun: 'thing', key: thing => thing.name })
  other.add({ name: 'b', run: () => {} })
  other.add({ name: 'a' })
  expect(await one.snapshot.revision()).toBe(await other.snapshot.revision())
  other.update({ name: 'a', note: 'changed' })
  expect(await one.snapshot.revision()).not.toBe(await other.snapshot.revision())
})

it('only the facts that are asked for enter the revision', async () => {
  const catalog = createCatalog<Thing>({ noun: 'thing', key: thing => thing.name, facts: () => 1 })
  catalog.add({ name: 'a', note: 'one' })
  const before = await catalog.snapshot.revision()
  catalog.update({ name: 'a', note: 'two' })
  expect(await catalog.snapshot.revision()).toBe(before)
})

it('pages are complete and disjoint, also when entries come and go between them', () => {
  const changes = fc.array(fc.tuple(fc.boolean(), fc.integer({ min: 0, max: 39 })), { maxLength: 10 })
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 7 }), fc.array(changes, { maxLength: 20 }), (limit, rounds) => {
      const catalog = things(...Array.from({ length: 20 }, (_, index) => `${index}`))
      const stayed = new Set(names(catalog.snapshot.entries))
      const listed: string[] = []
      for (let after: number | undefined = 0, round = 0; after !== undefined; round++) {
        const page: { entries: readonly Thing[]; next: number | undefined } = catalog.snapshot.page(after, limit)
        listed.push(...names(page.entries))
        after = page.next
        for (const [add, index] of rounds[round] ?? []) {
          if (!add) {
            catalog.remove(`${index}`)
            stayed.delete(`${index}`)
          } else if (catalog.get(`new ${index}`) === undefined) catalog.add({ name: `new ${index}` })
        }
      }
      expect(new Set(listed).size).toBe(listed.length)
      for (const name of stayed) expect(listed).toContain(name)
    }),
  )
})

it('X4: the digest of an entry changes exactly when its facts do, whatever happens to others', async () => {
  const catalog = things('a', 'b')
  const [a, b] = [await catalog.digestOf('a'), await catalog.digestOf('b')]
  catalog.update({ name: 'b', note: 'new' })
  expect([await catalog.digestOf('a'), await things('a').digestOf('a')]).toEqual([a, a])
  expect(await catalog.digestOf('b')).not.toBe(b)
  catalog.update({ name: 'b' })
  expect(await catalog.digestOf('b')).toBe(b)
  expect(catalog.digestOf('toString')).toBeUndefined()
})
