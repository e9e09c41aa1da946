/**
 * The reference server: the everything server with every extension and MCP Live on, and for each behaviour a tool that shows it. The
 * conformance kit is tried on it. What a tool brings about, beyond what extensions say of it, stands in its `_meta`, so that the kit
 * finds its way by what is listed.
 */
import type { Server, ServerOptions } from 'vivarium/server'
import { createEverything } from '../everything/everything.ts'
import { addArtifacts } from './artifacts.ts'
import { addFailures } from './failures.ts'
import { addLive } from './live.ts'
import { addNews } from './news.ts'
import { addTickets } from './tickets.ts'

export interface ReferenceOptions extends Partial<ServerOptions> {
  /** The origin at which it listens: from there it takes over contents by reference, its own. */
  readonly origin?: string
}

const secret = 'a secret of the reference server: it guards nothing'

export function createReference({ origin, ...options }: ReferenceOptions = {}): Server {
  const server = createEverything({
    name: 'reference',
    title: 'Reference',
    description: 'Every extension, and MCP Live, in one server',
    secret: process.env['VIVARIUM_SECRET'] ?? secret,
    store: 'memory:',
    permissions: {
      grant: ({ scopes }) => ({
        scopes: scopes.filter(scope => scope !== 'tickets:admin'),
        reasons: { 'tickets:admin': 'Only a team lead has that' },
      }),
      elevationUrl: missing => `https://tickets.example/grant?scopes=${missing.join('+')}`,
    },
    manifest: { http: true, counters: true, scopes: { 'tickets:write': 'Change tickets', 'tickets:admin': 'Change everything' } },
    recommendations: [
      { capability: 'notes', server: 'com.example/notes', confidence: 'low' },
      { capability: 'notes', server: 'com.example/notebook', confidence: 'high' },
      { capability: 'notes', server: 'com.example/notes', confidence: 'medium' },
    ],
    references: { maxBytes: 1_000_000, inlineBytes: 100, ...(origin === undefined ? {} : { from: [origin] }) },
    events: { perCaller: 20, pollEvery: '1s' },
    limits: { rates: { calls: { perSecond: 5_000, burst: 10_000 }, progress: false, log: false } },
    log: 'silent',
    ...options,
  })
  addTickets(server)
  addArtifacts(server)
  addNews(server)
  addFailures(server)
  addLive(server)
  return server
}
