/** Finds a port first, since the server takes over its own contents by reference: it has to know its origin. */
import { createServer as createNetServer } from 'node:net'
import type { Server } from 'vivarium/server'
import { createReference, type ReferenceOptions } from './reference.ts'

export interface Started {
  readonly server: Server
  readonly url: string
}

/** Listens on loopback: on Streamable HTTP, the old pair and WebSocket. */
export async function startReference(options: ReferenceOptions = {}, port = 0): Promise<Started> {
  const free = port === 0 ? await freePort() : port
  const server = createReference({ origin: `http://127.0.0.1:${free}`, ...options })
  const { url } = await server.listen({ port: free, host: '127.0.0.1', ssePath: '/sse', wsPath: '/ws' })
  return { server, url }
}

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const probe = createNetServer()
    probe.once('error', reject)
    probe.listen(0, '127.0.0.1', () => {
      const address = probe.address()
      probe.close(() => (typeof address === 'object' && address !== null ? resolve(address.port) : reject(new Error('No port'))))
    })
  })
}
