/** The sentences that every driver keeps. A test gives its driver here and gets them all. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { add, append, type Committed, check, put, remove, type Store, trim } from '../../src/stores/store.ts'

export interface StoreUnderTest {
  readonly store: Store
  /** Lets this many milliseconds pass, as the store sees it. */
  advance(ms: number): Promise<void>
  close(): Promise<void>
}

/** `open` gives an empty store each time. */
export function storeContract(name: string, open: () => Promise<StoreUnderTest>): void {
  describe(name, () => {
    let tested: StoreUnderTest
    let store: Store
    beforeEach(async () => {
      tested = await open()
      store = tested.store
    })
    afterEach(() => tested.close())
    const it: StoreTests = { store: () => store, advance: ms => tested.advance(ms) }
    describe('keys', () => keys(it))
    describe('commits', () => commits(it))
    describe('time to live', () => expiry(it))
    describe('counting', () => counting(it))
    describe('scans', () => scans(it))
    describe('logs', () => logs(it))
    describe('watching', () => watching(it))
    describe('refusals', () => refusals(it))
  })
}

interface StoreTests {
  store(): Store
  advance(ms: number): Promise<void>
}

async function committed(store: Store, ...ops: Parameters<Store['commit']>[0]): Promise<Committed> {
  const outcome = await store.commit(ops)
  if (!outcome.ok) throw new Error(`step ${outcome.index} conflicts: ${outcome.reason}`)
  return outcome
}

async function values(store: Store, prefix: string): Promise<string[]> {
  return (await store.scan(prefix)).map(entry => `${entry.key}=${entry.value}`)
}

function keys({ store }: StoreTests): void {
  test('a key that was never put is absent', async () => {
    expect(await store().get('a')).toBeUndefined()
  })
  test('what was put is there with the version that the commit gave', async () => {
    const { results } = await committed(store(), put('a', 'one'))
    expect(await store().get('a')).toEqual({ key: 'a', value: 'one', version: results[0]?.version })
  })
  test('every write gives a version that was never given before, also after a delete', async () => {
    const versions: (number | undefined)[] = []
    for (let i = 0; i < 5; i++) {
      versions.push((await committed(store(), put('a', 'same'))).results[0]?.version)
      await committed(store(), remove('a'))
    }
    expect(new Set(versions).size).toBe(5)
    expect(versions).toEqual(versions.toSorted((x, y) => Number(x) - Number(y)))
  })
  test('text of every kind comes back as it went in', async () => {
    for (const text of ['', ' ', '"\\', 'ü€𝄞', '\u{10ffff}\ue000', '\n\r\t\u0001', "'; --", '{"a":[1,null]}']) {
      await committed(store(), put('ключ/𝄞', text))
      expect((await store().get('ключ/𝄞'))?.value).toBe(text)
    }
  })
  test('a value of 8 MiB is kept whole', async () => {
    const value = 'x'.repeat(8 * 1024 * 1024)
    await committed(store(), put('big', value))
    expect((await store().get('big'))?.value === value).toBe(true)
  })
}

function commits({ store }: StoreTests): void {
  test('a put that wants the key absent conflicts when it is there, and names its step', async () => {
    await committed(store(), put('a', '1'))
    const outcome = await store().commit([put('b', '1'), put('a', '2', { ifAbsent: true })])
    expect(outcome).toEqual({ ok: false, index: 1, reason: 'present' })
  })
  test('nothing of a commit with a conflict is written', async () => {
    await committed(store(), put('a', '1'), append('log', 'x'))
    await store().commit([put('b', '1'), remove('a'), append('log', 'y'), add('n', 1), check('a', 12345)])
    expect(await values(store(), '')).toEqual(['a=1'])
    expect(await store().read('log')).toEqual([{ position: 1, value: 'x' }])
  })
  test('a commit with a conflict takes none of those down that are asked for at the same time', async () => {
    await committed(store(), put('a', '1'), append('log', 'x'))
    const outcomes = await Promise.all([
      store().commit([put('b', '1'), append('log', 'b')]),
      store().commit([put('c', '1'), append('log', 'c'), put('a', '2', { ifAbsent: true })]),
      store().commit([put('a', '2', { ifAbsent: true }), put('d', '1')]),
      store().commit([append('log', 'e', 7), put('e', '1')]),
      store().commit([put('f', '1'), append('log', 'f')]),
    ])
    expect(outcomes.map(({ ok }) => ok)).toEqual([true, false, false, false, true])
    expect(await values(store(), '')).toEqual(['a=1', 'b=1', 'f=1'])
    expect((await store().read('log')).map(({ position, value }) => `${position} ${value}`)).toEqual(['1 x', '2 b', '3 f'])
  })
  test('a put or delete that names a version needs that version', async () => {
    const version = (await committed(store(), put('a', '1'))).results[0]?.version ?? 0
    await committed(store(), put('a', '2', { ifVersion: version }))
    expect(await store().commit([put('a', '3', { ifVersion: version })])).toEqual({ ok: false, index: 0, reason: 'version' })
    expect(await store().commit([remove('a', version)])).toEqual({ ok: false, index: 0, reason: 'version' })
    expect(await store().commit([put('none', '3', { ifVersion: version })])).toMatchObject({ ok: false, reason: 'absent' })
    expect(await store().commit([remove('none', version)])).toMatchObject({ ok: false, reason: 'absent' })
    expect((await store().get('a'))?.value).toBe('2')
  })
  test('a check holds for the version named, or for absence', async () => {
    const version = (await committed(store(), put('a', '1'))).results[0]?.version
    await committed(store(), check('a', version), check('b', undefined))
    expect(await store().commit([check('a', undefined)])).toEqual({ ok: false, index: 0, reason: 'version' })
    expect(await store().commit([check('b', version)])).toEqual({ ok: false, index: 0, reason: 'version' })
  })
  test('each step sees the steps before it', async () => {
    const outcome = await store().commit([put('a', '1'), put('a', '2', { ifAbsent: true })])
    expect(outcome).toMatchObject({ ok: false, index: 1 })
    await committed(store(), put('a', '1'), remove('a'), put('a', '3', { ifAbsent: true }))
    expect((await store().get('a'))?.value).toBe('3')
  })
  test('deleting what is absent is no conflict', async () => {
    await committed(store(), remove('a'))
    expect(await store().get('a')).toBeUndefined()
  })
  test('a commit of no steps does nothing', async () => {
    expect(await store().commit([])).toEqual({ ok: true, results: [] })
  })
  test('of many who claim one key at once exactly one wins', async () => {
    const claims = Array.from({ length: 50 }, (_, i) => store().commit([put('lease', String(i), { ifAbsent: true })]))
    const winners = (await Promise.all(claims)).flatMap((outcome, i) => (outcome.ok ? [String(i)] : []))
    expect(winners).toEqual([(await store().get('lease'))?.value])
  })
}

function expiry({ store, advance }: StoreTests): void {
  test('an entry is absent once its time is over, for every way to look', async () => {
    await committed(store(), put('a', '1', { ttl: 400 }), put('b', '2'))
    expect((await store().get('a'))?.expires).toBeTypeOf('number')
    await advance(401)
    expect(await store().get('a')).toBeUndefined()
    expect(await values(store(), '')).toEqual(['b=2'])
    await committed(store(), check('a', undefined), put('a', 'new', { ifAbsent: true }))
    expect(await values(store(), '')).toEqual(['a=new', 'b=2'])
  })
  test('an entry whose time is not over is there', async () => {
    await committed(store(), put('a', '1', { ttl: 60_000 }))
    await advance(100)
    expect((await store().get('a'))?.value).toBe('1')
  })
  test('a put without a time to live makes the entry stay', async () => {
    await committed(store(), put('a', '1', { ttl: 200 }))
    await committed(store(), put('a', '2'))
    await advance(201)
    expect(await store().get('a')).toMatchObject({ value: '2' })
    expect((await store().get('a'))?.expires).toBeUndefined()
  })
  test('a holder whose lease ran out cannot write under it', async () => {
    const lease = (await committed(store(), put('lease', 'me', { ifAbsent: true, ttl: 200 }))).results[0]?.version
    await advance(201)
    await committed(store(), put('lease', 'other', { ifAbsent: true, ttl: 60_000 }))
    expect(await store().commit([check('lease', lease), put('work', 'late')])).toMatchObject({ ok: false, index: 0 })
    expect(await store().get('work')).toBeUndefined()
  })
}

function counting({ store, advance }: StoreTests): void {
  test('an absent key counts from 0, and sums come back', async () => {
    expect((await committed(store(), add('n', 3), add('n', -1))).results.map(result => result.sum)).toEqual([3, 2])
    expect((await store().get('n'))?.value).toBe('2')
  })
  test('a sum outside its range is a conflict and changes nothing', async () => {
    await committed(store(), add('n', 5))
    expect(await store().commit([add('n', 1, { max: 5 })])).toEqual({ ok: false, index: 0, reason: 'range' })
    expect(await store().commit([add('n', -6, { min: 0 })])).toEqual({ ok: false, index: 0, reason: 'range' })
    expect(await store().commit([add('n', Number.MAX_SAFE_INTEGER)])).toEqual({ ok: false, index: 0, reason: 'range' })
    expect((await store().get('n'))?.value).toBe('5')
  })
  test('a bound without end is none', async () => {
    const bounds = { min: Number.NEGATIVE_INFINITY, max: Number.POSITIVE_INFINITY }
    expect((await committed(store(), add('n', 3, bounds), add('n', -5, bounds))).results.map(({ sum }) => sum)).toEqual([3, -2])
  })
  test('what is no number cannot be counted', async () => {
    await committed(store(), put('n', '1.5'))
    expect(await store().commit([add('n', 1)])).toEqual({ ok: false, index: 0, reason: 'number' })
  })
  test('a counter takes its time to live when it begins, and keeps it', async () => {
    await committed(store(), add('n', 1, { ttl: 400 }))
    await committed(store(), add('n', 1, { ttl: 60_000 }))
    await advance(401)
    expect((await committed(store(), add('n', 1))).results[0]?.sum).toBe(1)
  })
  test('many who count at once lose nothing', async () => {
    await Promise.all(Array.from({ length: 40 }, () => committed(store(), add('n', 1))))
    expect((await store().get('n'))?.value).toBe('40')
  })
}

function scans({ store, advance }: StoreTests): void {
  test('keys come in the order of their UTF-8 bytes', async () => {
    const names = ['k/b', 'k/a', 'k/ä', 'k/\u{10000}', 'k/\uffee', 'k/', 'k/aa', 'k/A', 'k/~']
    await committed(store(), ...names.map(name => put(name, 'x')))
    const bytes = new TextEncoder()
    const sorted = names.toSorted((a, b) => Buffer.compare(bytes.encode(a), bytes.encode(b)))
    expect((await store().scan('k/')).map(entry => entry.key)).toEqual(sorted)
  })
  test('a prefix is taken to the letter', async () => {
    await committed(store(), ...['a%', 'a%b', 'ab', 'a_', 'a', 'b'].map(name => put(name, 'x')))
    expect((await store().scan('a%')).map(entry => entry.key)).toEqual(['a%', 'a%b'])
    expect((await store().scan('a_')).map(entry => entry.key)).toEqual(['a_'])
    expect(await store().scan('\u{10ffff}')).toEqual([])
  })
  test('after and before leave their keys out, and limit ends a page', async () => {
    await committed(store(), ...['k1', 'k2', 'k3', 'k4', 'k5'].map(name => put(name, 'x')))
    const page = async (options: object): Promise<string> => (await store().scan('k', options)).map(entry => entry.key).join(' ')
    expect(await page({ after: 'k2' })).toBe('k3 k4 k5')
    expect(await page({ before: 'k4' })).toBe('k1 k2 k3')
    expect(await page({ after: 'k1', before: 'k5', limit: 2 })).toBe('k2 k3')
    expect(await page({ after: 'a', before: 'z' })).toBe('k1 k2 k3 k4 k5')
    expect(await page({ after: 'k5' })).toBe('')
    expect(await page({ after: 'z' })).toBe('')
  })
  test('a page with fewer entries than its limit is the last: those whose time is over take no place', async () => {
    await committed(store(), ...['k1', 'k2', 'k3'].map(name => put(name, 'x', { ttl: 200 })))
    await committed(store(), ...['k4', 'k5', 'k6'].map(name => put(name, 'x')))
    await advance(300)
    expect((await store().scan('k', { limit: 3 })).map(entry => entry.key)).toEqual(['k4', 'k5', 'k6'])
  })
}

function logs({ store }: StoreTests): void {
  test('entries get 1, 2, 3 … in the order of their commits, each log for itself', async () => {
    const first = await committed(store(), append('l', 'a'), append('m', 'x'), append('l', 'b'))
    expect(first.results.map(result => result.position)).toEqual([1, 1, 2])
    expect((await committed(store(), append('l', 'c'))).results[0]?.position).toBe(3)
    expect(await store().read('l')).toEqual([
      { position: 1, value: 'a' },
      { position: 2, value: 'b' },
      { position: 3, value: 'c' },
    ])
  })
  test('a reader goes on after the last position it has seen', async () => {
    await committed(store(), ...['a', 'b', 'c', 'd'].map(value => append('l', value)))
    expect((await store().read('l', { after: 2 })).map(entry => entry.value)).toEqual(['c', 'd'])
    expect((await store().read('l', { after: 1, limit: 2 })).map(entry => entry.value)).toEqual(['b', 'c'])
    expect(await store().read('l', { after: 4 })).toEqual([])
    expect(await store().read('never')).toEqual([])
  })
  test('an append that names its position conflicts when another came first', async () => {
    await committed(store(), append('l', 'a', 1))
    expect(await store().commit([append('l', 'b', 1)])).toEqual({ ok: false, index: 0, reason: 'position' })
    await committed(store(), append('l', 'b', 2))
  })
  test('a trim forgets what is before a position, and positions go on', async () => {
    await committed(store(), ...['a', 'b', 'c'].map(value => append('l', value)))
    await committed(store(), trim('l', 3))
    expect(await store().read('l')).toEqual([{ position: 3, value: 'c' }])
    await committed(store(), trim('l', 99), append('l', 'd'))
    expect(await store().read('l')).toEqual([{ position: 4, value: 'd' }])
    await committed(store(), trim('l', 2), trim('never', 5))
    expect(await store().read('l')).toHaveLength(1)
  })
  test('many who append at once leave no gap and lose nothing', async () => {
    await Promise.all(Array.from({ length: 40 }, (_, i) => committed(store(), append('l', String(i)))))
    const entries = await store().read('l')
    expect(entries.map(entry => entry.position)).toEqual(Array.from({ length: 40 }, (_, i) => i + 1))
    expect(new Set(entries.map(entry => entry.value)).size).toBe(40)
  })
}

function watching({ store }: StoreTests): void {
  test('a watch wakes for keys and logs under its prefixes, also for what happened before it was first read', async () => {
    const ending = new AbortController()
    const watch = store().watch(['a/', 'log/'], ending.signal)
    await committed(store(), put('a/1', 'x'))
    const changes = watch[Symbol.asyncIterator]()
    expect(await changes.next()).toMatchObject({ done: false })
    const next = changes.next()
    await committed(store(), append('log/1', 'x'))
    expect(await next).toMatchObject({ done: false })
    ending.abort()
    expect(await changes.next()).toMatchObject({ done: true })
  })
  test('a watch ends with its signal, and with the store', async () => {
    const ending = new AbortController()
    const one = store().watch(['a'], ending.signal)[Symbol.asyncIterator]().next()
    const two = store().watch(['a'], new AbortController().signal)[Symbol.asyncIterator]().next()
    ending.abort()
    expect(await one).toMatchObject({ done: true })
    await store().close()
    expect(await two).toMatchObject({ done: true })
  })
}

function refusals({ store }: StoreTests): void {
  test('keys and values that no store can keep are refused by name, and nothing is written', async () => {
    const attempt = (...ops: Parameters<Store['commit']>[0]): Promise<unknown> => store().commit([put('a', '1'), ...ops])
    await expect(attempt(put('', 'x'))).rejects.toThrow(/empty/)
    await expect(attempt(put('a\0b', 'x'))).rejects.toThrow(/NUL/)
    await expect(attempt(put('\ud800', 'x'))).rejects.toThrow(/surrogate/)
    await expect(attempt(put('ü'.repeat(513), 'x'))).rejects.toThrow(/1024 bytes/)
    await expect(attempt(put('b', '\0'))).rejects.toThrow(/NUL/)
    await expect(attempt(append('l', 'x'.repeat(8 * 1024 * 1024 + 1)))).rejects.toThrow(/8388608 bytes/)
    await expect(attempt(put('b', 'x', { ttl: 0 }))).rejects.toThrow(/ttl is 0/)
    await expect(attempt(add('b', 0.5))).rejects.toThrow(/whole number/)
    await expect(attempt(put('b', 'x', { ifAbsent: true, ifVersion: 1 }))).rejects.toThrow(/exclude each other/)
    await expect(store().commit(Array.from({ length: 1001 }, () => put('a', '1')))).rejects.toThrow(/1000/)
    await expect(store().scan('', { limit: 0 })).rejects.toThrow(/above 0/)
    expect(await store().scan('')).toEqual([])
  })
  test('a closed store says so, and closing twice is no matter', async () => {
    await store().close()
    await store().close()
    await expect(store().get('a')).rejects.toThrow(/closed/)
    await expect(store().commit([put('a', '1')])).rejects.toThrow(/closed/)
  })
}
