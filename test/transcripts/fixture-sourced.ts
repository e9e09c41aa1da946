/** The server of the transcripts about results that say where they come from, and about media. */
import { cite, createServer, image, jsonSchema, reply, type Server, text } from '../../src/server/index.ts'
import { everyRevision } from './fixture.ts'

const pixel = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='

export function createSourced(): Server {
  const server = createServer({
    name: 'books',
    version: '1.0.0',
    revisions: everyRevision,
    secret: 'a secret of the tests, not of anybody else',
    log: 'silent',
  })
  server.tool('total', { description: 'What the year brought', provenance: true }, () =>
    reply({
      content: [text('Q3: 3.2 M', cite({ source: 'q3.pdf', location: { page: 4 }, confidence: 'exact' })), text('Year: 9.9 M')],
      ...cite(
        { source: 'q3.pdf', confidence: 'exact' },
        { source: 'postgresql:ledger', confidence: 'derived', transformation: 'SUM of Q1 to Q4', derivedFrom: [0] },
      ),
    }),
  )
  const block = jsonSchema<{ photo: { mimeType: string; data: string } }>({
    type: 'object',
    properties: {
      photo: {
        type: 'object',
        properties: { mimeType: { type: 'string' }, data: { type: 'string' } },
        required: ['mimeType', 'data'],
      },
    },
    required: ['photo'],
  })
  const media = { input: ['image/*'], output: ['image/gif'], maxInputBytes: 100 }
  server.tool('shrink', { description: 'Makes a picture small', input: block, media }, () => reply({ content: [image(pixel)] }))
  return server
}
