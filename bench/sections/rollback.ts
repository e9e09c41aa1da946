/** How long it takes to take back a transaction of ten steps, from the client's question to the final report. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Client } from 'vivarium/client'
import { startPostgres } from '../../test/real-postgres.ts'
import type { Options } from '../options.ts'
import { failure, type RollbackRow } from '../results.ts'
import { median, quantile } from '../stats.ts'

const STEPS = 10

export async function measureRollback(options: Options, row: (row: RollbackRow) => void): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'vivarium-bench-'))
  const measured = async (store: string, work: () => Promise<RollbackRow['cells']>): Promise<void> => {
    row({ store, cells: await work().catch(error => ({ rollback: failure(error) })) })
  }
  try {
    await measured('memory', () => onStore(options, 'memory:'))
    await measured('sqlite', () => onStore(options, `sqlite:${join(folder, 'rollback.db')}`))
    await measured('postgres', async () => {
      const database = await startPostgres({ synced: true })
      return onStore(options, database.url).finally(() => database.stop())
    })
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

async function onStore({ quick }: Options, store: string): Promise<RollbackRow['cells']> {
  const { createServer } = await import('vivarium/server')
  const { connectInMemory } = await import('vivarium/testing')
  const tickets = new Set<string>()
  const server = createServer({ name: 'bench', version: '1.0.0', store, limits: { rates: false } })
  const input = { type: 'object', properties: { id: { type: 'string' } }, required: ['id'] } as const
  server.tool('create', { input, undo: { tool: 'delete' } }, ({ id }) => {
    tickets.add(String(id))
    return 'created'
  })
  server.tool('delete', { input, idempotent: true }, ({ id }) => {
    tickets.delete(String(id))
    return 'gone'
  })
  const mcp = await connectInMemory(server)
  try {
    const all: { readonly steps: number; readonly back: number }[] = []
    for (let at = 0; at < (quick ? 20 : 200); at++) {
      all.push(await one(mcp, at))
      if (tickets.size > 0) throw new Error(`${tickets.size} steps were not taken back`)
    }
    const back = all.slice(all.length / 10).map(each => each.back)
    return {
      steps: {
        p50Ms: median(all.map(each => each.steps)),
        p99Ms: quantile(
          all.map(each => each.steps),
          0.99,
        ),
      },
      rollback: { p50Ms: median(back), p99Ms: quantile(back, 0.99) },
    }
  } finally {
    await mcp.close()
    await server.close()
  }
}

async function one(mcp: Client, at: number): Promise<{ readonly steps: number; readonly back: number }> {
  const began = performance.now()
  const tx = await mcp.transaction()
  for (let step = 0; step < STEPS; step++) await tx.callTool('create', { id: `${at}-${step}` })
  const done = performance.now()
  const { status, steps } = await tx.rollback('Only measured')
  if (status !== 'rolled_back' || steps.length !== STEPS) throw new Error(`The transaction is ${status}`)
  return { steps: done - began, back: performance.now() - done }
}
