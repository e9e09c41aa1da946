/** Tools that do something: under keys, in transactions, with a yes, with a scope, for a price, on a state. */
import { setTimeout as wait } from 'node:timers/promises'
import type { Server } from 'vivarium/server'
import { z } from 'zod'
import { shows } from './shows.ts'

const id = z.object({ id: z.string().meta({ examples: ['T-1'] }) })
const made = z.object({ id: z.string(), runs: z.number() })

export function addTickets(server: Server): void {
  let runs = 0
  const title = z.object({ title: z.string().meta({ examples: ['Fish'] }) })
  server.tool(
    'create_ticket',
    {
      description: 'Creates a ticket',
      input: title,
      output: made,
      undo: { tool: 'delete_ticket', arguments: ({ result }) => result && { id: result.id } },
      meta: shows('counts'),
    },
    () => ({ id: `T-${++runs}`, runs }),
  )
  server.tool(
    'create_slowly',
    {
      description: 'Creates a ticket, and takes half a second for it',
      input: title,
      output: made,
      undo: { tool: 'delete_ticket', arguments: ({ result }) => result && { id: result.id } },
      meta: shows('counts', 'slow'),
    },
    async (_, ctx) => {
      await wait(500, undefined, { signal: ctx.signal })
      return { id: `T-${++runs}`, runs }
    },
  )
  const deleted: string[] = []
  server.tool('delete_ticket', { description: 'Deletes a ticket', input: id, idempotent: true }, ({ id }) => {
    deleted.push(id)
    return `Deleted ${id}`
  })
  server.tool(
    'publish_ticket',
    {
      description: 'Publishes a ticket, which cannot really be undone',
      input: id,
      undo: { tool: 'unpublish_ticket' },
      meta: shows('compensation:fails'),
    },
    ({ id }) => `Published ${id}`,
  )
  server.tool(
    'reserve_ticket',
    { description: 'Reserves a ticket; giving it back needs a yes', input: id, undo: { tool: 'wipe_ticket' } },
    ({ id }) => `Reserved ${id}`,
  )
  server.tool('unpublish_ticket', { description: 'Fails, always', input: id, idempotent: true }, (_, ctx) => {
    throw ctx.problem('ALREADY_READ', 'Somebody has read it', { category: 'permanent' })
  })
  addGuarded(server)
  addPriced(server)
  addStateful(server)
}

/** Those that need a yes or a scope. */
function addGuarded(server: Server): void {
  let wiped = 0
  server.tool(
    'wipe_ticket',
    {
      description: 'Wipes a ticket for good',
      input: id,
      output: z.object({ wiped: z.number() }),
      confirm: { message: 'Wipe {id} for good? {unknown}', risk: 'destructive', riskOf: () => 'reversible' },
      meta: shows('counts'),
    },
    () => ({ wiped: ++wiped }),
  )
  server.tool(
    'close_account',
    {
      description: 'Only a page can approve it',
      confirm: { channel: 'url', url: ({ id }) => `https://tickets.example/approve/${id}` },
      meta: shows('page'),
    },
    () => 'Closed',
  )
  server.tool(
    'archive_ticket',
    { description: 'Archives a ticket', input: id, scopes: ['tickets:write'] },
    ({ id }) => `Archived ${id}`,
  )
  server.tool(
    'read_archive',
    { description: 'Reads the archive', scopes: ['tickets:write'], annotations: { readOnlyHint: true } },
    () => 'Nothing yet',
  )
  server.tool(
    'empty_archive',
    { description: 'Needs more than anybody has', scopes: ['tickets:write', 'tickets:admin'] },
    () => 'Empty',
  )
}

function addPriced(server: Server): void {
  server.tool(
    'search_tickets',
    {
      description: 'Costs three credits',
      input: z.object({ words: z.string().meta({ examples: ['fish'] }) }),
      cost: { category: 'metered', estimatedUnits: 3 },
      latency: 'instant',
    },
    ({ words }) => `Found ${words}`,
  )
  server.tool(
    'ask_oracle',
    { description: 'Answers three times in five seconds', quota: { calls: 3, per: '5s' }, meta: shows('limit:quota') },
    () => 'Perhaps',
  )
  server.tool(
    'knock',
    { description: 'May be called once a second', rate: { perSecond: 1, burst: 1 }, meta: shows('limit:rate') },
    () => 'Who is there?',
  )
}

function addStateful(server: Server): void {
  server.tool(
    'count_up',
    {
      description: 'Counts the calls of a conversation',
      output: z.object({ count: z.number() }),
      state: 'branch',
      undo: { tool: 'count_down' },
      meta: shows('state:branch'),
    },
    async (_, ctx) => {
      const count = ((await ctx.state.get<number>()) ?? 0) + 1
      await ctx.state.set(count)
      return { count }
    },
  )
  server.tool('count_down', { description: 'Takes a count back', idempotent: true }, () => 'Counted down')
  server.tool(
    'take_turn',
    { description: 'One after the other', state: 'conflict', meta: shows('state:conflict') },
    async (_, ctx) => {
      await ctx.state.set(((await ctx.state.get<number>()) ?? 0) + 1)
      return 'Taken'
    },
  )
  server.tool(
    'remember_much',
    { description: 'Keeps more than a token can carry', state: 'branch', meta: shows('state:large') },
    async (_, ctx) => {
      await ctx.state.set('x'.repeat(100_000))
      return 'Remembered'
    },
  )
}
