import { setTimeout as wait } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startPostgres, type TestPostgres } from '../../../test/real-postgres.ts'
import { type StoreUnderTest, storeContract } from '../../../test/stores/contract.ts'
import { storeModel } from '../../../test/stores/model.ts'
import { append, put } from '../store.ts'
import { postgresStore } from './store.ts'

let postgres: TestPostgres
let schemas = 0
beforeAll(async () => {
  postgres = await startPostgres()
})
afterAll(() => postgres?.stop())

const fresh = (): string => `test_${++schemas}`

const open = async (): Promise<StoreUnderTest> => {
  const store = await postgresStore({ url: postgres.url, schema: fresh() })
  // The clock is the database's: the only way to let time pass is to let it.
  return { store, advance: async ms => void (await wait(ms + 2)), close: () => store.close() }
}

storeContract('postgres', open)
storeModel('postgres', open, 15)

test('two stores on one database see the same, and one is woken by what the other commits', async () => {
  const schema = fresh()
  const [one, two] = await Promise.all([
    postgresStore({ url: postgres.url, schema }),
    postgresStore({ url: postgres.url, schema }),
  ])
  const ending = new AbortController()
  const woken = two.watch(['a'], ending.signal)[Symbol.asyncIterator]().next()
  await one.commit([put('a', '1')])
  expect(await woken).toMatchObject({ done: false })
  expect(await two.get('a')).toMatchObject({ value: '1' })
  ending.abort()
  await Promise.all([one.close(), two.close()])
})

test('of two stores that race for the same keys each claim has one winner, and logs have no gap', async () => {
  const schema = fresh()
  const stores = await Promise.all([postgresStore({ url: postgres.url, schema }), postgresStore({ url: postgres.url, schema })])
  const claims = Array.from({ length: 200 }, (_, i) =>
    Promise.all(
      stores.map((store, who) => store.commit([put(`k${i % 50}/${i}`, String(who), { ifAbsent: true }), append('l', `${who}`)])),
    ),
  )
  for (const outcomes of await Promise.all(claims)) expect(outcomes.filter(outcome => outcome.ok)).toHaveLength(1)
  const entries = await stores[0].read('l')
  expect(entries.map(entry => entry.position)).toEqual(Array.from({ length: 200 }, (_, i) => i + 1))
  await Promise.all(stores.map(store => store.close()))
})

test('a database that does not answer is named as the cause', async () => {
  await expect(postgresStore({ url: 'postgres://127.0.0.1:1/none' })).rejects.toThrow(
    /The store postgres:\/\/127\.0\.0\.1:1\/none cannot be opened: .*ECONNREFUSED.*\. Start the database/,
  )
})
