/**
 * The one server of the transcripts, the matrix and the interop tests: something of every feature, on every wire, and
 * nothing that depends on the hour or on chance. Small pages, so that lists have several.
 */
import { createServer, type RevisionId, type Server, type ServerOptions } from '../../src/server/index.ts'
import { addAsking } from './fixture-asking.ts'
import { addContent } from './fixture-content.ts'
import { addTasks } from './fixture-tasks.ts'
import { addWork } from './fixture-work.ts'

export const everyRevision: readonly RevisionId[] = [
  '2024-11-05',
  '2025-03-26',
  '2025-06-18',
  '2025-11-25',
  '2026-07-28',
  'draft-2026-v1',
  's3',
]

export function createFixture(options: Partial<ServerOptions> = {}): Server {
  const server = createServer({
    name: 'fixture',
    version: '1.0.0',
    title: 'The fixture',
    description: 'Something of everything',
    websiteUrl: 'https://example.com/fixture',
    icons: [{ src: 'https://example.com/fixture.png', mimeType: 'image/png', sizes: ['48x48'], theme: 'light' }],
    instructions: 'Greet before you count.',
    revisions: everyRevision,
    secret: 'a secret of the tests, not of anybody else',
    pageSize: 4,
    cache: { ttl: '1m', scope: 'public' },
    limits: { rates: false },
    ...options,
  })
  addContent(server)
  addAsking(server)
  addWork(server)
  addTasks(server)
  return server
}
