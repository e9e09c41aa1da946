/** The server of the transcripts about calls that can be trusted: few tools, each with something of that. */
import { createServer, jsonSchema, type Server, type ServerOptions } from '../../src/server/index.ts'
import { everyRevision } from './fixture.ts'

export function createTrusted(options: Partial<ServerOptions> = {}): Server {
  const server = createServer({
    name: 'tickets',
    version: '1.0.0',
    revisions: everyRevision,
    secret: 'a secret of the tests, not of anybody else',
    store: 'memory:',
    permissions: { grant: ({ scopes }) => scopes.filter(scope => scope !== 'tickets:admin') },
    limits: { rates: false },
    cost: { unitLabel: 'credits' },
    intent: { suggest: ({ tool }) => (tool === 'search' ? { tool: 'report', reason: 'It has looked already' } : undefined) },
    ...options,
  })
  const titled = object<{ title: string }>({ title: { type: 'string' } })
  const named = object<{ id: string }>({ id: { type: 'string' } })
  let made = 0
  server.tool(
    'create',
    { input: titled, output: named, undo: { tool: 'delete', arguments: ({ result }) => result && { id: result.id } } },
    () => ({ id: `T-${++made}` }),
  )
  server.tool('delete', { input: named, idempotent: true }, ({ id }) => `Deleted ${id}`)
  server.tool('wipe', { input: named, confirm: { message: 'Wipe {id} for good?' } }, ({ id }) => `Wiped ${id}`)
  server.tool('archive', { input: named, scopes: ['tickets:write'] }, ({ id }) => `Archived ${id}`)
  const words = object<{ words: string }>({ words: { type: 'string' } })
  const cost = { category: 'metered', estimatedUnits: 3 } as const
  server.tool(
    'search',
    { input: words, cost, latency: 'seconds', quota: { calls: 2, per: '1d' } },
    ({ words }) => `Found ${words}`,
  )
  server.tool('report', { cost: { category: 'metered' } }, (_, ctx) => {
    ctx.cost.add(0.5)
    return 'All is well'
  })
  server.tool('export', { input: named }, async function* ({ id }) {
    yield `${id}: one; `
    yield `${id}: two; `
  })
  server.tool('count', { state: 'branch' }, async (_, ctx) => {
    const count = (((await ctx.state.get()) as number | undefined) ?? 0) + 1
    await ctx.state.set(count)
    return `${count}`
  })
  return server
}

function object<T>(properties: Readonly<Record<string, unknown>>) {
  return jsonSchema<T>({ type: 'object', properties, required: Object.keys(properties) })
}
