/** The server of the transcripts about servers that explain themselves: few tools, of which much is known. */
import { createServer, jsonSchema, type Server } from '../../src/server/index.ts'
import { everyRevision } from './fixture.ts'

export function createDescribed(): Server {
  const server = createServer({
    name: 'tickets',
    version: '1.0.0',
    description: 'Tickets of a team',
    revisions: everyRevision,
    secret: 'a secret of the tests, not of anybody else',
    cache: { ttl: '1m', scope: 'public' },
    manifest: { auth: ['oauth2_code'], scopes: { 'tickets:write': 'Change tickets' } },
    recommendations: [
      { capability: 'design_mockup', server: 'com.example/sketch' },
      { capability: 'design_mockup', server: 'com.example/draw', confidence: 'high', registryUrl: 'https://example.com/draw' },
    ],
  })
  const named = jsonSchema<{ id: string }>({ type: 'object', properties: { id: { type: 'string' } }, required: ['id'] })
  server.tool('read', { description: 'Reads a ticket', input: named, annotations: { readOnlyHint: true } }, ({ id }) => id)
  server.tool(
    'delete',
    {
      description: 'Deletes a ticket',
      input: named,
      scopes: ['tickets:write'],
      idempotent: true,
      confirm: { message: 'Delete {id}?' },
    },
    ({ id }) => `Deleted ${id}`,
  )
  return server
}

/** The same team's exports, by reference. */
export function createGiving(): Server {
  const server = createServer({
    name: 'exports',
    version: '1.0.0',
    revisions: everyRevision,
    secret: 'a secret of the tests, not of anybody else',
    references: { url: 'https://exports.example/mcp', inlineBytes: 4 },
  })
  const input = jsonSchema<{ text: string }>({ type: 'object', properties: { text: { type: 'string' } }, required: ['text'] })
  server.tool('export', { description: 'Exports', input }, ({ text }, ctx) =>
    ctx.reference(text, { mime: 'text/csv', name: 'tickets.csv' }),
  )
  return server
}
