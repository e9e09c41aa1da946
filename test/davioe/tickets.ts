/** A tracker of ours with the tools that the script of the other implementation calls. */
import { z } from 'zod'
import type { Server, ServerOptions } from '../../src/server/index.ts'

export interface TicketServer {
  readonly server: Server
  readonly tickets: Map<string, { readonly title: string; readonly status: string }>
  /** What was taken back, in order. */
  readonly deleted: string[]
}

export function ticketServer(serve: (options: Partial<ServerOptions>) => Server): TicketServer {
  const server = serve({ facade: true, profile: 'davioe', limits: { rates: false } })
  const tickets: TicketServer['tickets'] = new Map([
    ['PROJ-1', { title: 'Fix the login', status: 'open' }],
    ['PROJ-2', { title: 'Darken the page', status: 'in_progress' }],
    ['PROJ-3', { title: 'Renew what it needs', status: 'closed' }],
  ])
  const deleted: string[] = []
  let next = 4
  const id = z.object({ ticket_id: z.string() })
  server.tool(
    'search_tickets',
    {
      input: z.object({ status: z.string().optional(), query: z.string().optional() }),
      scopes: ['read:tickets'],
      annotations: { readOnlyHint: true },
      state: 'branch',
    },
    ({ status }) => ({ total_count: [...tickets.values()].filter(one => status === undefined || one.status === status).length }),
  )
  server.tool(
    'create_ticket',
    {
      input: z.object({ title: z.string() }),
      output: z.object({ ticket: z.object({ id: z.string(), title: z.string() }), created: z.boolean() }),
      scopes: ['write:tickets'],
      // Whoever may make one may take it back, which is less than deleting any.
      undo: { tool: 'withdraw_ticket', arguments: ({ result }) => result && { ticket_id: result.ticket.id } },
    },
    ({ title }) => {
      const ticket = { id: `PROJ-${next++}`, title }
      tickets.set(ticket.id, { title, status: 'open' })
      return { ticket, created: true }
    },
  )
  server.tool('withdraw_ticket', { input: id, scopes: ['write:tickets'], idempotent: true }, ({ ticket_id }) => {
    tickets.delete(ticket_id)
    deleted.push(ticket_id)
    return 'withdrawn'
  })
  const confirm = { message: 'The ticket {ticket_id} will be gone for good. Proceed?', risk: 'destructive' } as const
  server.tool('delete_ticket', { input: id, scopes: ['delete:tickets'], confirm }, ({ ticket_id }, ctx) => {
    if (!tickets.delete(ticket_id)) throw ctx.problem('RESOURCE_NOT_FOUND', `There is no ticket ${ticket_id}`)
    return { deleted: true, ticket_id }
  })
  return { server, tickets, deleted }
}
