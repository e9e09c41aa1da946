/** The tools of the server under test. What they do is seen by the witness, somewhere amid a few milliseconds of work. */
import { setTimeout as pause } from 'node:timers/promises'
import { jsonSchema, type Server } from 'vivarium/server'
import type { Store } from 'vivarium/stores'
import type { Effect, Witness } from './witness.ts'

export const named = jsonSchema<{ id: string }>({
  type: 'object',
  properties: { id: { type: 'string' } },
  required: ['id'],
})
const noted = jsonSchema<{ entry: number; padding?: string }>({
  type: 'object',
  properties: { entry: { type: 'integer' }, padding: { type: 'string' } },
  required: ['entry'],
})
const made = jsonSchema<{ id: string }>({ type: 'object', properties: { id: { type: 'string' } }, required: ['id'] })

interface Notes {
  readonly entries: readonly number[]
}

/** Does it, in the midst of something else. */
export function worker(witness: Witness): (effect: Effect, id: string) => Promise<void> {
  return async (effect, id) => {
    await pause(Math.random() * 10)
    witness.saw(effect, id)
    await pause(Math.random() * 10)
  }
}

export function offer(server: Server, store: Store, witness: Witness): void {
  const work = worker(witness)
  server.tool('alive', { annotations: { readOnlyHint: true } }, async () => {
    await store.get('alive')
    return String(process.pid)
  })
  server.tool('act', { input: named }, async ({ id }) => {
    await work('act', id)
    return `acted ${crypto.randomUUID()}`
  })
  server.tool('set', { input: named, idempotent: true }, async ({ id }) => {
    await work('set', id)
    return `set ${crypto.randomUUID()}`
  })
  // Known by its arguments alone: it can be taken back whatever became of it.
  server.tool('make', { input: named, undo: { tool: 'unmake' } }, async ({ id }) => {
    await work('make', id)
    return 'made'
  })
  // May be made again where nobody knows how it ended.
  server.tool('forge', { input: named, idempotent: true, undo: { tool: 'unmake' } }, async ({ id }) => {
    await work('forge', id)
    return 'forged'
  })
  // Known by its result: where nobody has that, somebody has to look.
  server.tool(
    'mint',
    { input: named, output: made, undo: { tool: 'unmake', arguments: ({ result }) => result && { id: result.id } } },
    async ({ id }) => {
      await work('make', id)
      return { id }
    },
  )
  server.tool('unmake', { input: named, idempotent: true }, async ({ id }) => {
    await work('unmake', id)
    return 'unmade'
  })
  server.tool('note', { input: noted }, async ({ entry, padding = '' }, ctx) => {
    const { entries } = (await ctx.state.get<Notes>()) ?? { entries: [] }
    await pause(Math.random() * 10)
    await ctx.state.set({ entries: [...entries, entry], padding })
    return 'noted'
  })
  server.tool('notes', { annotations: { readOnlyHint: true } }, async (_, ctx) => {
    const { entries } = (await ctx.state.get<Notes>()) ?? { entries: [] }
    return JSON.stringify(entries)
  })
  server.tool('stuck', { annotations: { readOnlyHint: true } }, async () => {
    const found = await server.transactions.stuck()
    return JSON.stringify(found.map(({ transaction_id }) => transaction_id))
  })
}
