/** A saga in a process of its own, for tests of what survives it: `node saga-process.ts STORE FILE REVISION`. Never ends by itself. */
import { appendFileSync } from 'node:fs'
import { z } from 'zod'
import { type Client, saga } from '../../src/client/index.ts'
import { createServer, type RevisionId } from '../../src/server/index.ts'
import { openStore } from '../../src/stores/index.ts'
import { connectInMemory } from '../../src/testing/index.ts'

const [url = '', file = '', revision = ''] = process.argv.slice(2)

/** A server whose effects are lines of the file. */
export function things(name: string, file: string, revision: RevisionId): Promise<Client> {
  const server = createServer({ name, version: '1.0.0' })
  const input = z.object({ id: z.string() })
  for (const tool of ['make', 'unmake'])
    server.tool(tool, { input, idempotent: true }, ({ id }) => {
      appendFileSync(file, `${name} ${tool} ${id} ${process.pid}\n`)
      return 'done'
    })
  return connectInMemory(server, { revision })
}

if (import.meta.main) {
  const store = await openStore(url)
  const [one, two] = await Promise.all([things('one', file, revision as RevisionId), things('two', file, revision as RevisionId)])
  const trip = await saga({ store, clients: { one, two } })
  await trip.step(one, 'make', { id: 'a' }, { undo: { tool: 'unmake' } })
  await trip.step(two, 'make', { id: 'b' }, { undo: { tool: 'unmake' } })
  appendFileSync(file, `ready ${process.pid}\n`)
  setInterval(() => {}, 1000)
}
