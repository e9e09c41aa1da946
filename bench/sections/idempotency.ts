/**
 * What a key costs: calls in this process, 64 in flight, without a key, with one on each store, and repeated. On Postgres beside
 * what the same database makes of bare inserts, one row each, in the same run.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { startPostgres } from '../../test/real-postgres.ts'
import type { Options } from '../options.ts'
import { failure, type KeyRow } from '../results.ts'
import { median } from '../stats.ts'

const IN_FLIGHT = 64
const POOL = 16

interface Round {
  callsPerSecond: number
  /** Transactions, each with its sync, that the store made meanwhile. */
  transactions: number | undefined
  calls: number
  cpuMicros: number
}

export async function measureIdempotency(options: Options, row: (row: KeyRow) => void): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'vivarium-bench-'))
  try {
    await measured('no key', row, async () => one(options, undefined, false))
    await measured('memory', row, async () => both(options, 'memory:'))
    await measured('sqlite', row, async () => both(options, `sqlite:${join(folder, 'keys.db')}`))
    await measured('postgres', row, async () => onPostgres(options))
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

async function measured(store: string, row: (row: KeyRow) => void, measure: () => Promise<Omit<KeyRow, 'store'>>) {
  row(
    await measure().then(
      cells => ({ store, ...cells }),
      error => ({ store, cells: { failed: failure(error) } }),
    ),
  )
}

async function one(options: Options, url: string | undefined, keyed: boolean): Promise<Omit<KeyRow, 'store'>> {
  const bench = await openKeyedCalls(url)
  try {
    return { cells: { fresh: summary(await rounds(options, () => bench.round(options.timing.roundMs, keyed, false))) } }
  } finally {
    await bench.close()
  }
}

async function both(options: Options, url: string): Promise<Omit<KeyRow, 'store'>> {
  const bench = await openKeyedCalls(url)
  try {
    const fresh = await rounds(options, () => freshRound(bench, url, options.timing.roundMs))
    const replay = await rounds(options, () => bench.round(options.timing.roundMs, true, true))
    return { cells: { fresh: summary(fresh), replay: summary(replay) } }
  } finally {
    await bench.close()
  }
}

/** New keys that one caller's share of a store in memory has room for, and some to spare. */
const MOST_FRESH = 60_000

/** Calls under new keys. In memory each round begins with an empty store, and ends early where a caller's share would be full. */
export async function freshRound(bench: KeyedCalls, url: string, ms: number): Promise<Round> {
  if (url !== 'memory:') return await bench.round(ms, true, false)
  const anew = await openKeyedCalls(url)
  try {
    return await anew.round(ms, true, false, MOST_FRESH)
  } finally {
    await anew.close()
  }
}

async function onPostgres(options: Options): Promise<Omit<KeyRow, 'store'>> {
  const database = await startPostgres({ synced: true })
  try {
    const raw = await bareInserts(options, database.url)
    const { cells } = await both(options, `${database.url}?schema=bench`)
    const again = await bareInserts(options, database.url)
    return { cells: { ...cells, raw: { callsPerSecond: (raw + again) / 2 } } }
  } finally {
    await database.stop()
  }
}

async function rounds({ timing }: Options, round: () => Promise<Round>): Promise<Round[]> {
  await round()
  const all: Round[] = []
  for (let at = 0; at < timing.rounds; at++) all.push(await round())
  return all
}

function summary(all: readonly Round[]) {
  const transactions = all.map(({ transactions, calls }) => (transactions ?? Number.NaN) / calls)
  const perCall = median(transactions)
  return {
    callsPerSecond: median(all.map(({ callsPerSecond }) => callsPerSecond)),
    cpuMicros: median(all.map(({ cpuMicros }) => cpuMicros)),
    ...(Number.isNaN(perCall) ? {} : { transactionsPerCall: perCall }),
  }
}

type KeyedCalls = Awaited<ReturnType<typeof openKeyedCalls>>

/** A server, and somebody who speaks to it in frames, without a client between. */
export async function openKeyedCalls(url: string | undefined) {
  const { createServer } = await import('vivarium/server')
  const { openStore } = await import('vivarium/stores')
  const store = url === undefined ? undefined : await openStore(url)
  const limits = { rates: false, callsPerConversation: IN_FLIGHT } as const
  const server = createServer({ name: 'bench', version: '1.0.0', limits, ...(store === undefined ? {} : { store }) })
  server.tool('create', { input: { type: 'object' } }, () => 'created')
  const waiting = new Map<number, () => void>()
  let hear: (text: string) => void = () => {}
  // By its older name, which the other build of `--against` has too.
  server.door.accept({
    carrier: 'memory',
    start: sink => {
      hear = text => sink.frame(text)
    },
    send: text => {
      if (!text.includes('created')) throw new Error(`Not an answer: ${text}`)
      const id = Number(/"id":(\d+)/.exec(text)?.[1])
      waiting.get(id)?.()
      waiting.delete(id)
    },
    close: async () => {},
  })
  const meta = {
    'io.modelcontextprotocol/protocolVersion': '2026-07-28',
    'io.modelcontextprotocol/clientInfo': { name: 'bench', version: '1' },
    'io.modelcontextprotocol/clientCapabilities': { extensions: { 'dev.vivarium/idempotency': {} } },
  }
  let id = 0
  const call = (key: string | undefined): Promise<void> =>
    new Promise(resolve => {
      waiting.set(++id, resolve)
      const _meta = key === undefined ? meta : { ...meta, 'dev.vivarium/idempotency': { idempotency_key: key } }
      const params = { name: 'create', arguments: { title: 'A ticket' }, _meta }
      hear(JSON.stringify({ jsonrpc: '2.0', id, method: 'tools/call', params }))
    })
  const transactions = async (): Promise<number | undefined> =>
    store !== undefined && 'pragmas' in store && typeof store.pragmas === 'function'
      ? (await store.pragmas()).transactions
      : undefined
  return {
    round: async (ms: number, keyed: boolean, repeat: boolean, most = Number.POSITIVE_INFINITY): Promise<Round> => {
      const before = await transactions()
      const cpu = process.cpuUsage()
      const began = performance.now()
      const until = began + ms
      let calls = 0
      const worker = async (lane: number): Promise<void> => {
        while (performance.now() < until && calls < most) {
          await call(keyed ? (repeat ? `lane-${lane}` : `key-${id}`) : undefined)
          calls++
        }
      }
      await Promise.all(Array.from({ length: IN_FLIGHT }, (_, lane) => worker(lane)))
      const after = await transactions()
      const callsPerSecond = (calls / (performance.now() - began)) * 1000
      const { user, system } = process.cpuUsage(cpu)
      const cpuMicros = (user + system) / calls
      return { callsPerSecond, calls, cpuMicros, transactions: after === undefined ? undefined : after - (before ?? 0) }
    },
    close: async () => {
      await server.close()
      await store?.close()
    },
  }
}

async function bareInserts({ timing }: Options, url: string): Promise<number> {
  const pool = new pg.Pool({ connectionString: url, max: POOL })
  // A connection that breaks while idle shows in the next query, if there is one.
  pool.on('error', () => {})
  await pool.query('CREATE TABLE IF NOT EXISTS bare (id bigserial PRIMARY KEY, value text)')
  const all: number[] = []
  for (let round = 0; round <= timing.rounds; round++) {
    const began = performance.now()
    const until = began + timing.roundMs
    let count = 0
    const worker = async (): Promise<void> => {
      while (performance.now() < until) {
        await pool.query({ name: 'bare', text: 'INSERT INTO bare (value) VALUES ($1)', values: ['A ticket'] })
        count++
      }
    }
    await Promise.all(Array.from({ length: IN_FLIGHT }, worker))
    if (round > 0) all.push((count / (performance.now() - began)) * 1000)
  }
  await pool.end()
  return median(all)
}
