/** A content that is given by reference, and the tool that takes those of other servers. */
import type { Server } from 'vivarium/server'
import { z } from 'zod'

export function addReferences(server: Server): void {
  const input = z.object({ rows: z.number().int().min(1).max(1_000_000).default(1_000) })
  server.tool('test_reference', { description: 'Gives rows of CSV by reference', input }, ({ rows }, ctx) =>
    ctx.reference(csv(rows), { mime: 'text/csv', name: 'rows.csv', ttl: '5m' }),
  )
  server.importer({ description: 'Imports a content by reference, and tells its size' }, ({ size, digest }) => ({
    resourceId: digest,
    rows: size,
  }))
}

/** Piece by piece, so that it is never there as a whole. */
async function* csv(rows: number): AsyncGenerator<Uint8Array> {
  const encoder = new TextEncoder()
  for (let row = 0; row < rows; row += 1_000) {
    const lines = Array.from({ length: Math.min(1_000, rows - row) }, (_, at) => `${row + at},${(row + at) ** 2}\n`)
    yield encoder.encode(lines.join(''))
  }
}
