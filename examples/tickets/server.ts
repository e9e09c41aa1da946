/**
 * A small tracker whose tools say how they are undone: `node server.ts FOLDER [TOOL]`. Tickets, links and what has to survive a crash
 * are kept in the folder. For the sake of the example it can get stuck in one of its tools.
 */
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createServer } from 'vivarium/server'
import { z } from 'zod'

const [folder = '.', stuckIn] = process.argv.slice(2)
const file = join(folder, 'tickets.json')

interface Tracker {
  next: number
  readonly tickets: Record<string, string>
  links: string[]
}

function load(): Tracker {
  return existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as Tracker) : { next: 1, tickets: {}, links: [] }
}

function change<T>(fn: (tracker: Tracker) => T): T {
  const tracker = load()
  const result = fn(tracker)
  writeFileSync(file, JSON.stringify(tracker))
  return result
}

/** Says that it is stuck, and stays so until somebody kills it. */
function perhapsStuck(tool: string): Promise<void> {
  if (tool !== stuckIn) return Promise.resolve()
  console.log('stuck')
  return new Promise(() => {})
}

const server = createServer({ name: 'tickets', version: '1.0.0', store: `sqlite:${join(folder, 'store.db')}` })
const id = z.string().regex(/^T-\d+$/)

server.tool(
  'create_ticket',
  {
    description: 'Creates a ticket',
    input: z.object({ title: z.string() }),
    output: z.object({ id }),
    undo: { tool: 'delete_ticket', arguments: ({ result }) => result && { id: result.id } },
  },
  ({ title }) =>
    change(tracker => {
      const made = `T-${tracker.next++}`
      tracker.tickets[made] = title
      return { id: made }
    }),
)

server.tool(
  'update_ticket',
  {
    description: 'Gives a ticket another title',
    input: z.object({ id, title: z.string() }),
    output: z.object({ before: z.string() }),
    idempotent: true,
    undo: { tool: 'update_ticket', arguments: ({ args, result }) => result && { id: args.id, title: result.before } },
  },
  ({ id, title }, ctx) =>
    change(({ tickets }) => {
      const before = tickets[id]
      if (before === undefined) throw ctx.problem('RESOURCE_NOT_FOUND', `There is no ticket ${id}`)
      tickets[id] = title
      return { before }
    }),
)

server.tool(
  'delete_ticket',
  { description: 'Deletes a ticket, if it is there', input: z.object({ id }), idempotent: true },
  async ({ id }) => {
    await perhapsStuck('delete_ticket')
    change(({ tickets }) => delete tickets[id])
    return 'Gone'
  },
)

const pair = z.object({ from: id, to: id })
server.tool(
  'link_tickets',
  { description: 'Links two tickets', input: pair, idempotent: true, undo: { tool: 'unlink_tickets' } },
  ({ from, to }) => {
    change(tracker => tracker.links.push(`${from} ${to}`))
    return 'Linked'
  },
)
server.tool(
  'unlink_tickets',
  { description: 'Takes a link away, if it is there', input: pair, idempotent: true },
  async ({ from, to }) => {
    await perhapsStuck('unlink_tickets')
    change(tracker => {
      tracker.links = tracker.links.filter(link => link !== `${from} ${to}`)
    })
    return 'Unlinked'
  },
)

server.tool('notify', { description: 'Tells the team', input: z.object({ text: z.string() }) }, (_, ctx) => {
  throw ctx.problem('MAIL_REFUSED', 'The mail server knows no such team', { category: 'permanent' })
})

const { url } = await server.listen()
console.log(url)
