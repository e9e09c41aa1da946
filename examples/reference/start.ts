/** Finds a port first, since the server takes over its own contents by reference: it has to know its origin. */
import { createServer as createNetServer } from 'node:net'
import type { Server } from 'vivarium/server'
import { createReference, type ReferenceOptions } from './reference.ts'

export interface Started {
  readonly server: Server
  readonly url: string
}

const mostTries = 5

/** Listens on loopback: on Streamable HTTP, the old pair and WebSocket. */
export async function startReference(options: ReferenceOptions = {}, port = 0): Promise<Started> {
  if (port !== 0) return startOn(port, options)
  for (let left = mostTries; ; left--) {
    try {
      return await startOn(await freePort(), options)
    } catch (error) {
      // What was free may be somebody's by now.
      if (left <= 1 || !isTaken(error)) throw error
    }
  }
}

async function startOn(port: number, options: ReferenceOptions): Promise<Started> {
  const server = createReference({ origin: `http://127.0.0.1:${port}`, ...options })
  try {
    const { url } = await server.listen({ port, host: '127.0.0.1', ssePath: '/sse', wsPath: '/ws' })
    return { server, url }
  } catch (error) {
    await server.close()
    throw error
  }
}

function isTaken(error: unknown): boolean {
  const cause = error instanceof Error ? error.cause : undefined
  return cause instanceof Error && 'code' in cause && cause.code === 'EADDRINUSE'
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
