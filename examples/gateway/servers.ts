/** Three servers of different ages. None of them knows of the others, or of a gateway. */
import { createServer, type Server } from 'vivarium/server'
import { z } from 'zod'

export function bakery(): Server {
  const server = createServer({ name: 'bakery', version: '1.0.0', revisions: ['2024-11-05'] })
  server.tool('bake', { description: 'Bakes bread' }, () => 'Bread')
  server.tool('search', { description: 'Searches the shelves' }, () => 'Two loaves')
  return server
}

export function library(): Server {
  const server = createServer({ name: 'library', version: '1.0.0', revisions: ['2025-11-25'] })
  let lent = 0
  server.tool('lend', { description: 'Lends a book' }, async (_, ctx) => {
    lent++
    const answer = await ctx.elicit({ message: 'Which book?', schema: z.object({ title: z.string() }) })
    return answer.action === 'accept' ? `${answer.content.title}, lent ${lent === 1 ? 'once' : `${lent} times`}` : 'None'
  })
  server.tool('burn_book', { description: 'Burns a book', annotations: { destructiveHint: true } }, () => 'Ashes')
  server.tool('search', { description: 'Searches the catalogue' }, () => 'Emma')
  return server
}

export function museum(): Server {
  const server = createServer({ name: 'museum', version: '1.0.0', revisions: ['2026-07-28'] })
  server.tool('guide', { description: 'Guides through the rooms' }, () => 'To the left')
  server.tool('search', { description: 'Searches the collection' }, () => 'Three paintings')
  return server
}
