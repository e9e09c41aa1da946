/**
 * The stores on which a sentence about state has to hold: in memory, on disk, and in a database that processes share. Fresh ones for
 * each test. Where time matters the clock is moved by hand, also that of the database.
 */
import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { afterAll, beforeAll } from 'vitest'
import { openStore } from '../src/stores/open.ts'
import type { Store } from '../src/stores/store.ts'
import { type FakeClock, fakeClock } from '../src/testing/clock.ts'
import { sharedPostgres } from './shared-postgres.ts'

export const storeKinds = ['memory', 'sqlite', 'postgres'] as const
export type StoreKind = (typeof storeKinds)[number]

/** Time stands still on stores that were opened with it, until it is moved. */
export interface StoreClock extends Omit<FakeClock, 'advance'> {
  advance(ms: number): Promise<void>
}

export interface StoresUnderTest {
  /** The address of a store that nobody has used yet. */
  url(kind: StoreKind): string
  /** The same, on a clock. */
  urlOn(kind: StoreKind, clock: StoreClock): Promise<string>
  /** An open store, on a clock where one is given. Whoever opens it closes it. */
  open(kind: StoreKind, clock?: StoreClock): Promise<Store>
  clock(): StoreClock
  /** Puts the time of a store forward that goes by the time of its machine. */
  forward(url: string, ms: number): Promise<void>
}

/** To be called once, at the top of a test file. */
export function storesUnderTest(): StoresUnderTest {
  const folder = mkdtempSync(join(tmpdir(), 'vivarium-stores-'))
  const frozen = new WeakMap<StoreClock, string[]>()
  let database: pg.Pool | undefined
  let address = ''
  let stores = 0
  beforeAll(async () => {
    address = await sharedPostgres()
    database = new pg.Pool({ connectionString: address, max: 2, allowExitOnIdle: true })
    database.on('error', () => {})
  }, 60_000)
  afterAll(async () => {
    await database?.end()
    rmSync(folder, { recursive: true, force: true })
  })

  const url = (kind: StoreKind): string => {
    if (kind === 'memory') return 'memory:'
    if (kind === 'sqlite') return `sqlite:${join(folder, `${++stores}.db`)}`
    return `${address}?schema=test_${randomBytes(8).toString('hex')}`
  }
  /** Does nothing where there are no tables yet: nothing lies there that time could end. */
  const setTime = async (schema: string, milliseconds: string): Promise<void> => {
    const made = await database?.query('SELECT 1 FROM pg_proc WHERE proname = $1 AND pronamespace = to_regnamespace($2)', [
      'now_ms',
      schema,
    ])
    if (made?.rowCount !== 1) return
    await database?.query(
      `CREATE OR REPLACE FUNCTION ${schema}.now_ms() RETURNS bigint LANGUAGE sql VOLATILE AS $$ SELECT (${milliseconds})::bigint $$`,
    )
  }
  const openOn = async (made: string, clock: StoreClock): Promise<Store> => {
    const store = await openStore(made, { now: clock.now })
    if (!made.includes('?schema=')) return store
    frozen.set(clock, [...(frozen.get(clock) ?? []), schemaOf(made)])
    await setTime(schemaOf(made), String(clock.now()))
    return store
  }
  const ahead = new Map<string, number>()
  const self: StoresUnderTest = {
    url,
    urlOn: async (kind, clock) => {
      const made = url(kind)
      if (kind === 'postgres') await (await openOn(made, clock)).close()
      return made
    },
    open: (kind, clock) => (clock === undefined ? openStore(url(kind)) : openOn(url(kind), clock)),
    clock: () => {
      const { advance, ...clock } = fakeClock()
      const moved: StoreClock = {
        ...clock,
        advance: async ms => {
          for (const schema of frozen.get(moved) ?? []) await setTime(schema, String(clock.now() + ms))
          advance(ms)
          // What fell due may have to load or read something, before more time passes.
          await new Promise(resolve => setImmediate(resolve))
        },
      }
      return moved
    },
    forward: async (made, ms) => {
      if (!made.includes('?schema=')) return
      const total = (ahead.get(made) ?? 0) + ms
      ahead.set(made, total)
      await setTime(schemaOf(made), `floor(extract(epoch FROM clock_timestamp()) * 1000) + ${total}`)
    },
  }
  return self
}

function schemaOf(url: string): string {
  return String(new URL(url).searchParams.get('schema'))
}
