/**
 * What a large state costs: calls that read, write and patch one of 1 MiB, by a client that knows of states, and a tree of 1,000
 * versions of it that is gone back in.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Client } from 'vivarium/client'
import type { Store } from 'vivarium/stores'
import { StateTree } from '../../src/core/state/tree.ts'
import type { Options } from '../options.ts'
import { failure, type StateRow } from '../results.ts'
import { median, quantile } from '../stats.ts'

const VERSIONS = 1_000
const ROLLBACKS = 300
/** Each write of a round adds its megabyte to the store, so there are not too many. */
const CALLS = 40
/** 1 MiB of JSON, in parts that a patch can aim at. */
const large = { title: 'large', parts: Array.from({ length: 1024 }, (_, part) => `${part} `.padEnd(1021, 'x')) }

export async function measureState(options: Options, row: (row: StateRow) => void): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'vivarium-bench-'))
  try {
    for (const [store, url] of [
      ['memory', 'memory:'],
      ['sqlite', `sqlite:${join(folder, 'state.db')}`],
    ] as const) {
      try {
        row({ store, cells: await onStore(options, url) })
      } catch (error) {
        row({ store, cells: { get: failure(error) } })
      }
    }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

async function onStore(options: Options, url: string): Promise<StateRow['cells']> {
  const { openStore } = await import('vivarium/stores')
  const store = counting(await openStore(url, { bytes: 2 ** 30 }))
  try {
    return { ...(await calls(options, store)), ...(await tree(options, store)) }
  } finally {
    await store.close()
  }
}

/** Counts the bytes of what is written. Its values are plain ASCII. */
function counting(store: Store): Store & { bytes: number } {
  const counted: Store & { bytes: number } = {
    bytes: 0,
    get: key => store.get(key),
    scan: (prefix, options) => store.scan(prefix, options),
    read: (log, options) => store.read(log, options),
    commit: ops => {
      for (const op of ops) if ('value' in op) counted.bytes += op.value.length
      return store.commit(ops)
    },
    watch: (prefixes, signal) => store.watch(prefixes, signal),
    close: () => store.close(),
  }
  return counted
}

async function calls({ timing }: Options, store: Store & { bytes: number }): Promise<StateRow['cells']> {
  const { createServer } = await import('vivarium/server')
  const { connectInMemory } = await import('vivarium/testing')
  const server = createServer({ name: 'bench', version: '1.0.0', store, limits: { rates: false } })
  server.tool('get', {}, async (_, ctx) => String((await ctx.state.get<typeof large>())?.parts.length))
  server.tool('set', {}, async (_, ctx) => {
    await ctx.state.set(large)
    return '1024'
  })
  server.tool('patch', {}, async (_, ctx) => {
    const { parts } = await ctx.state.patch<typeof large>([{ op: 'replace', path: '/parts/7', value: `${Math.random()}` }])
    return String(parts.length)
  })
  const mcp = await connectInMemory(server)
  try {
    await expectCall(mcp, 'set')
    const cells: StateRow['cells'] = {}
    for (const tool of ['get', 'set', 'patch']) {
      const all: number[] = []
      const before = store.bytes
      for (let round = 0; round < timing.rounds; round++) all.push(...(await repeated(mcp, tool, timing.roundMs)))
      cells[tool] = {
        perSecond: 1000 / median(all),
        p99Ms: quantile(all, 0.99),
        bytesPerCall: (store.bytes - before) / all.length,
      }
    }
    return cells
  } finally {
    await mcp.close()
    await server.close()
  }
}

/** One after another, since each builds on the state that the one before it gave. */
async function repeated(mcp: Client, tool: string, ms: number): Promise<number[]> {
  const all: number[] = []
  const until = performance.now() + ms
  while (performance.now() < until && all.length < CALLS) {
    const began = performance.now()
    await expectCall(mcp, tool)
    all.push(performance.now() - began)
  }
  return all
}

async function expectCall(mcp: Client, tool: string): Promise<void> {
  const { text, isError } = await mcp.callTool(tool)
  if (isError || text !== '1024') throw new Error(`${tool} gave ${text.slice(0, 200)}`)
}

async function tree({ quick }: Options, store: Store & { bytes: number }): Promise<StateRow['cells']> {
  const clock = { now: Date.now, setTimeout: () => () => {} }
  const states = new StateTree({ store, clock, versions: VERSIONS + 1 })
  const before = store.bytes
  await states.write('bench', { kind: 'data', body: large })
  const writes: number[] = []
  for (let version = 2; version <= (quick ? VERSIONS / 10 : VERSIONS); version++) {
    const change = { kind: 'patch', body: [{ op: 'replace', path: `/parts/${version}`, value: `version ${version}` }] } as const
    writes.push(await timed(() => states.write('bench', change)))
  }
  const bytes = store.bytes - before
  const back: number[] = []
  for (let at = 0; at < (quick ? ROLLBACKS / 10 : ROLLBACKS); at++) {
    const to = 1 + Math.floor(Math.random() * writes.length)
    back.push(await timed(() => states.rollback('bench', to)))
    const { value } = (await states.read('bench', await states.head('bench'))) ?? {}
    if (!isAt(value, to)) throw new Error(`Version ${to} is not what it was`)
  }
  return {
    versions: { perSecond: 1000 / median(writes), p99Ms: quantile(writes, 0.99), bytesPerCall: bytes / (writes.length + 1) },
    rollback: { p50Ms: median(back), p99Ms: quantile(back, 0.99) },
  }
}

/** Of the parts that versions change one after another, exactly those up to it are changed. */
function isAt(value: unknown, version: number): boolean {
  const { parts } = value as typeof large
  return (version === 1 || parts[version] === `version ${version}`) && parts[version + 1] === large.parts[version + 1]
}

async function timed(work: () => Promise<unknown>): Promise<number> {
  const began = performance.now()
  await work()
  return performance.now() - began
}
