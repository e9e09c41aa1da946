import { mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterAll, expect, test } from 'vitest'
import { type StoreUnderTest, storeContract } from '../../../test/stores/contract.ts'
import { storeModel } from '../../../test/stores/model.ts'
import { append, put } from '../store.ts'
import { prepare, scanText } from './database.ts'
import { sqliteStore } from './store.ts'

const folder = mkdtempSync(join(tmpdir(), 'vivarium-sqlite-'))
let files = 0
const fresh = (): string => join(folder, `${++files}.db`)
afterAll(() => rmSync(folder, { recursive: true }))

const open = async (): Promise<StoreUnderTest> => {
  let now = 1_000_000
  const store = await sqliteStore({ path: fresh(), now: () => now })
  return {
    store,
    advance: async ms => {
      now += ms
    },
    close: () => store.close(),
  }
}

storeContract('sqlite', open)
storeModel('sqlite', open, 40)

test('the file is kept in write-ahead mode and synced in full', async () => {
  const store = await sqliteStore({ path: fresh() })
  expect(await store.pragmas()).toMatchObject({ journalMode: 'wal', synchronous: 2 })
  await store.close()
})

test('commits that are under way together share a transaction', async () => {
  const store = await sqliteStore({ path: fresh() })
  await Promise.all(Array.from({ length: 200 }, (_, i) => store.commit([put(`k${i}`, 'x')])))
  expect((await store.pragmas()).transactions).toBeLessThan(50)
  await store.close()
})

test('what was committed is there when the file is opened again, versions and positions go on', async () => {
  const path = fresh()
  const first = await sqliteStore({ path })
  const before = await first.commit([put('a', '1'), append('l', 'x')])
  await first.close()
  const second = await sqliteStore({ path })
  expect(await second.get('a')).toMatchObject({ value: '1' })
  const after = await second.commit([put('a', '2'), append('l', 'y')])
  if (!before.ok || !after.ok) throw new Error('conflict')
  expect(after.results[0]?.version).toBeGreaterThan(Number(before.results[0]?.version))
  expect(after.results[1]?.position).toBe(2)
  await second.close()
})

test("a new file, and those beside it, are their owner's alone", async () => {
  const path = fresh()
  const store = await sqliteStore({ path })
  await store.commit([put('a', '1')])
  for (const end of ['', '-wal', '-shm']) expect(statSync(`${path}${end}`).mode & 0o777).toBe(0o600)
  await store.close()
})

test('a file of a later version is refused in words, and left as it is', async () => {
  const path = fresh()
  const database = new DatabaseSync(path)
  database.exec('PRAGMA user_version = 99')
  await expect(sqliteStore({ path })).rejects.toThrow(/schema version.*Update Vivarium/)
  expect(database.prepare('PRAGMA user_version').get()).toMatchObject({ user_version: 99 })
  database.close()
})

test('a path that cannot be opened is refused with its name', async () => {
  await expect(sqliteStore({ path: folder })).rejects.toThrow(folder)
})

test('what was asked before close is still done', async () => {
  const path = fresh()
  const store = await sqliteStore({ path })
  const writes = Promise.all(Array.from({ length: 100 }, (_, i) => store.commit([put(`k${i}`, 'x')])))
  await store.close()
  expect((await writes).every(outcome => outcome.ok)).toBe(true)
  const again = await sqliteStore({ path })
  expect(await again.scan('k')).toHaveLength(100)
  await again.close()
})

test('a scan walks the index from the first key that it may find to the last, and not on to its end', () => {
  const database = new DatabaseSync(':memory:')
  prepare(database)
  const plan = database.prepare(`EXPLAIN QUERY PLAN ${scanText}`).all('a', 'b', null, 0, 10)
  expect(plan.map(({ detail }) => detail)).toEqual([expect.stringContaining('(key>? AND key<?)')])
  database.close()
})

test('what another process writes into the file wakes who watches', async () => {
  const path = fresh()
  const [here, there] = [await sqliteStore({ path }), await sqliteStore({ path })]
  const ending = new AbortController()
  const woken = here.watch(['a'], ending.signal)[Symbol.asyncIterator]().next()
  await here.get('a')
  await there.commit([put('a', '1')])
  expect(await woken).toMatchObject({ done: false })
  ending.abort()
  await Promise.all([here.close(), there.close()])
})
