/** The server that is fuzzed: what the transcripts call, and nothing that waits for anybody but the caller. Its clock is moved by hand. */
import { createServer, jsonSchema, type Server, type ServerOptions } from '../../src/server/index.ts'
import type { FakeClock } from '../../src/testing/index.ts'
import { everyRevision } from '../transcripts/fixture.ts'
import { addAsking } from '../transcripts/fixture-asking.ts'
import { addContent } from '../transcripts/fixture-content.ts'
import { leapClock } from './leap-clock.ts'
import { turn } from './target.ts'

export interface Subject {
  readonly server: Server
  readonly clock: FakeClock
}

export function createSubject(options: Partial<ServerOptions> = {}): Subject {
  const clock = leapClock()
  const server = createServer({
    name: 'fixture',
    version: '1.0.0',
    revisions: everyRevision,
    secret: 'a secret of the fuzzer, and of nobody else',
    pageSize: 4,
    clock,
    limits: { rates: false },
    onTrace: () => {},
    ...options,
  })
  addContent(server)
  addAsking(server)
  const input = jsonSchema({
    type: 'object',
    properties: { slowly: { type: 'boolean' }, region: { type: 'string', 'x-mcp-header': 'Region' } },
  })
  server.tool('work', { input }, async (_, ctx) => {
    ctx.log('warning', { fish: 'small' }, 'kitchen')
    ctx.progress(1, { total: 4, message: 'found' })
    await turn()
    ctx.progress(3, { total: 4 })
    return 'Done'
  })
  server.tool('wait', {}, async (_, ctx) => {
    await turn()
    return ctx.signal.aborted ? 'Stopped' : 'Waited'
  })
  server.tool('brew', { task: { support: 'optional', ttl: '1m', pollInterval: '100ms' } }, async (_, ctx) => {
    await turn()
    return (await ctx.confirm('Brown sugar?')) ? 'Coffee' : 'No coffee then'
  })
  server.tool('toast', { task: { support: 'required', ttl: '1m', pollInterval: '100ms' } }, () =>
    Promise.reject(new Error('Burnt')),
  )
  server.tool('change', {}, () => {
    server.resourceUpdated('memo://today')
    return 'Updated'
  })
  return { server, clock }
}
