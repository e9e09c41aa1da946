/** A server that offers something of everything: each feature of MCP once, in its simplest form. */
import { createServer, type Server, type ServerOptions } from 'vivarium/server'
import { addAsking } from './asking.ts'
import { addChanges } from './changes.ts'
import { addCosts, costOptions } from './costs.ts'
import { addEvents } from './events.ts'
import { addExtras } from './extras.ts'
import { addPrompts } from './prompts.ts'
import { addReferences } from './references.ts'
import { addResources } from './resources.ts'
import { addRounds } from './rounds.ts'
import { addSchemaTools } from './schemas.ts'
import { addTasks } from './tasks.ts'
import { addTools } from './tools.ts'

export function createEverything(options: Partial<ServerOptions> = {}): Server {
  const server = createServer({
    name: 'everything',
    title: 'Everything',
    version: '1.0.0',
    description: 'Offers each feature of MCP once',
    instructions: 'Tools whose names begin with test_ show one feature each; their descriptions say which.',
    revisions: ['2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25', '2026-07-28', 'draft-2026-v1', 's3'],
    secret: process.env['VIVARIUM_SECRET'],
    manifest: { http: true },
    references: true,
    recommendations: [{ capability: 'notes', server: 'com.example/notes', confidence: 'low' }],
    ...costOptions,
    ...options,
  })
  addTools(server)
  addExtras(server)
  addSchemaTools(server)
  addAsking(server)
  addRounds(server)
  addTasks(server)
  addCosts(server)
  addChanges(server)
  addEvents(server)
  addReferences(server)
  addResources(server)
  addPrompts(server)
  return server
}
