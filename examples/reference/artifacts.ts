/** Tools whose results are more than text: streams, sources, media, contents by reference. */
import { setTimeout as wait } from 'node:timers/promises'
import { cite, image, reply, type Server, text } from 'vivarium/server'
import { z } from 'zod'
import { pixel } from '../everything/assets.ts'
import { shows } from './shows.ts'

export function addArtifacts(server: Server): void {
  let exports = 0
  server.tool(
    'export_log',
    {
      description: 'Gives the log in five parts, one after the other',
      input: z.object({ of: z.string().meta({ examples: ['today'] }) }),
      meta: shows('counts'),
    },
    async function* ({ of }, ctx) {
      const run = ++exports
      for (let part = 1; part <= 5; part++) {
        yield `${of} ${run}.${part}; `
        await wait(60, undefined, { signal: ctx.signal })
      }
    },
  )
  addSources(server)
  server.tool(
    'develop_picture',
    {
      description: 'Gives a picture of a type that it does not announce',
      input: z.object({ picture: z.object({ mimeType: z.string(), data: z.string() }) }),
      media: { input: ['image/*'], output: ['image/gif'], maxInputBytes: 1_000 },
      meta: shows('media:unannounced'),
    },
    () => reply({ content: [image(pixel)] }),
  )
  server.tool(
    'give_rows',
    {
      description: 'Gives rows of CSV by reference',
      input: z.object({
        rows: z
          .number()
          .int()
          .min(1)
          .max(10_000)
          .meta({ examples: [500] }),
      }),
      undo: { tool: 'forget_rows', arguments: () => ({}) },
      meta: shows('reference'),
    },
    ({ rows }, ctx) => ctx.reference('id,name\n'.repeat(rows), { mime: 'text/csv', name: 'rows.csv', ttl: '5m' }),
  )
  server.tool('forget_rows', { description: 'Takes rows back', idempotent: true }, () => 'Forgotten')
}

function addSources(server: Server): void {
  server.tool('sum_up', { description: 'A sum of two sources', provenance: true, meta: shows('provenance:many') }, () =>
    reply({
      content: [text('3 fish', cite({ source: 'pond.csv', location: { line: 3 }, confidence: 'exact' })), text('7 birds')],
      ...cite(
        { source: 'pond.csv', confidence: 'exact' },
        { source: 'sky.csv', confidence: 'estimated', transformation: 'count', derivedFrom: [0] },
      ),
    }),
  )
  const shelf = Array.from({ length: 400 }, (_, at) => ({ source: `shelf ${at}: ${'book '.repeat(20)}` }))
  server.tool(
    'cite_much',
    { description: 'Names more sources than anybody reads', provenance: true, meta: shows('provenance:large') },
    () => reply({ content: [text('All of it')], ...cite(...shelf) }),
  )
}
