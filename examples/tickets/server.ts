/**
 * A small tracker whose tools say what they need and how they are undone: `node server.ts FOLDER [TOOL]`. Tickets, and all that has to
 * survive a crash, are kept in the folder. For the sake of the example it can get stuck in one of its tools.
 */
import { join } from 'node:path'
import { createServer } from 'vivarium/server'
import { z } from 'zod'
import { change, read } from './tracker.ts'

const [folder = '.', stuckIn] = process.argv.slice(2)
const file = join(folder, 'tickets.json')

const server = createServer({
  name: 'tickets',
  version: '1.0.0',
  store: `sqlite:${join(folder, 'store.db')}`,
  // What clients carry sealed, their state and their grants, is good for the next process too.
  secret: process.env['VIVARIUM_SECRET'],
  permissions: {
    grant: ({ scopes }) => ({
      scopes: scopes.filter(scope => scope !== 'tickets:admin'),
      reasons: { 'tickets:admin': 'only a team lead has that' },
    }),
  },
})

/** Says that it is stuck, and stays so until somebody kills it. */
function perhapsStuck(tool: string): Promise<void> {
  if (tool !== stuckIn) return Promise.resolve()
  console.log('stuck')
  return new Promise(() => {})
}

const reads = { scopes: ['tickets:read'] }
const writes = { scopes: ['tickets:read', 'tickets:write'] }
const id = z.string().regex(/^T-\d+$/)
const pair = z.object({ from: id, to: id })

/** The board that this conversation works on, whichever process answers it. */
interface Place {
  readonly board: string
}

server.tool(
  'open_board',
  { ...reads, description: 'Selects the board for new tickets', input: z.object({ board: z.string() }) },
  async ({ board }, ctx) => {
    await ctx.state.set({ board } satisfies Place)
    return `Now on ${board}`
  },
)

server.tool(
  'show_board',
  { ...reads, description: 'Lists the tickets of the chosen board', annotations: { readOnlyHint: true } },
  async (_, ctx) => {
    const { board } = (await ctx.state.get<Place>()) ?? { board: 'inbox' }
    const lines = Object.entries(read(file).tickets).flatMap(([id, it]) => (it.board === board ? [`${id} ${it.title}`] : []))
    return `${board}: ${lines.join(', ') || 'nothing'}`
  },
)

server.tool(
  'create_ticket',
  {
    ...writes,
    description: 'Creates a ticket on the chosen board',
    input: z.object({ title: z.string() }),
    output: z.object({ id }),
    undo: { tool: 'delete_ticket', arguments: ({ result }) => result && { id: result.id } },
  },
  async ({ title }, ctx) => {
    const { board } = (await ctx.state.get<Place>()) ?? { board: 'inbox' }
    return change(file, tracker => {
      const made = `T-${tracker.next++}`
      tracker.tickets[made] = { board, title }
      return { id: made }
    })
  },
)

server.tool(
  'update_ticket',
  {
    ...writes,
    description: 'Changes the title of a ticket',
    input: z.object({ id, title: z.string() }),
    output: z.object({ before: z.string() }),
    idempotent: true,
    undo: { tool: 'update_ticket', arguments: ({ args, result }) => result && { id: args.id, title: result.before } },
  },
  ({ id, title }, ctx) =>
    change(file, ({ tickets }) => {
      const ticket = tickets[id]
      if (ticket === undefined) throw ctx.problem('RESOURCE_NOT_FOUND', `The ticket ${id} does not exist`)
      const before = ticket.title
      ticket.title = title
      return { before }
    }),
)

server.tool(
  'delete_ticket',
  {
    ...writes,
    description: 'Deletes a ticket if it exists',
    input: z.object({ id }),
    idempotent: true,
    // Asked for when somebody calls it. Whoever has a transaction taken back has agreed to that already.
    confirm: { message: 'Delete {id} permanently?', risk: 'destructive' },
  },
  async ({ id }) => {
    await perhapsStuck('delete_ticket')
    change(file, ({ tickets }) => delete tickets[id])
    return 'Gone'
  },
)

server.tool(
  'link_tickets',
  { ...writes, description: 'Links two tickets', input: pair, idempotent: true, undo: { tool: 'unlink_tickets' } },
  ({ from, to }) => {
    change(file, tracker => tracker.links.push(`${from} ${to}`))
    return 'Linked'
  },
)

server.tool(
  'unlink_tickets',
  { ...writes, description: 'Removes a link if it exists', input: pair, idempotent: true },
  async ({ from, to }) => {
    await perhapsStuck('unlink_tickets')
    change(file, tracker => {
      tracker.links = tracker.links.filter(link => link !== `${from} ${to}`)
    })
    return 'Unlinked'
  },
)

server.tool('notify', { ...writes, description: 'Notifies the team', input: z.object({ text: z.string() }) }, (_, ctx) => {
  throw ctx.problem('MAIL_REFUSED', 'The mail server does not know this team', { category: 'permanent' })
})

server.tool('empty_tracker', { scopes: ['tickets:admin'], description: 'Deletes everything' }, () => {
  change(file, tracker => {
    for (const id of Object.keys(tracker.tickets)) delete tracker.tickets[id]
    tracker.links = []
  })
  return 'Empty'
})

const { url } = await server.listen()
console.log(url)
