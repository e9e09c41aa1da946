/** A small tracker for tests: what it did is kept outside of it, as the world keeps it, whatever becomes of the process. */
import { z } from 'zod'
import { createServer, type Server, type ServerOptions } from '../../src/server/index.ts'

export interface World {
  readonly tickets: Map<string, string>
  /** Every effect, in order. */
  readonly log: string[]
  /** Called inside of tools, by their name: may wait, or throw. */
  on: (tool: string, args: Readonly<Record<string, unknown>>, signal: AbortSignal) => unknown
}

export function newWorld(): World {
  return { tickets: new Map(), log: [], on: () => undefined }
}

export function tracker(world: World, options: Partial<ServerOptions> = {}): Server {
  const server = createServer({ name: 'tracker', version: '1.0.0', limits: { rates: false }, log: 'silent', ...options })
  server.tool(
    'create',
    {
      input: z.object({ title: z.string() }),
      output: z.object({ id: z.string() }),
      undo: { tool: 'delete', arguments: ({ result }) => result && { id: result.id }, description: 'Deletes it again' },
    },
    async ({ title }, ctx) => {
      await world.on('create', { title }, ctx.signal)
      const id = `T-${world.tickets.size + 1}`
      world.tickets.set(id, title)
      world.log.push(`create ${id}`)
      return { id }
    },
  )
  server.tool('delete', { input: z.object({ id: z.string() }), idempotent: true }, async ({ id }, ctx) => {
    await world.on('delete', { id }, ctx.signal)
    world.tickets.delete(id)
    world.log.push(`delete ${id}${ctx.principal === undefined ? '' : ` as ${ctx.principal.subject}`}`)
    return 'gone'
  })
  server.tool(
    'rename',
    {
      input: z.object({ id: z.string(), title: z.string(), before: z.string() }),
      idempotent: true,
      undo: { tool: 'rename', arguments: ({ args }) => ({ id: args.id, title: args.before, before: args.title }) },
    },
    async ({ id, title, before }, ctx) => {
      await world.on('rename', { id, title, before }, ctx.signal)
      world.tickets.set(id, title)
      world.log.push(`rename ${id} ${title}`)
      return 'renamed'
    },
  )
  server.tool('mail', { input: z.object({ to: z.string() }) }, ({ to }) => {
    world.log.push(`mail ${to}`)
    return 'sent'
  })
  server.tool('count', { annotations: { readOnlyHint: true } }, () => String(world.tickets.size))
  return server
}
