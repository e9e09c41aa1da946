/** A gateway before some servers, and clients of any revision before it, for tests. */
import { onTestFinished } from 'vitest'
import type { Client, ConnectOptions } from '../../src/client/index.ts'
import { createGateway, type Gateway, type GatewayOptions } from '../../src/gateway/index.ts'
import type { RevisionId, Server } from '../../src/server/index.ts'
import { connectInMemory, memoryPair } from '../../src/testing/index.ts'

export interface Opened {
  readonly gateway: Gateway
  client(revision: RevisionId, options?: ConnectOptions): Promise<Client>
}

export async function openGateway(servers: GatewayOptions['servers'], more: GatewayOptions = {}): Promise<Opened> {
  const gateway = await createGateway({ log: 'silent', limits: { rates: false }, ...more, ...(servers && { servers }) })
  onTestFinished(() => gateway.close())
  await gateway.ready()
  return {
    gateway,
    client: async (revision, options = {}) => {
      const made = await connectInMemory(gateway.server, { revision, ...options })
      onTestFinished(() => made.close())
      return made
    },
  }
}

export const inMemory = (server: Server) => () => {
  const [here, there] = memoryPair()
  server.acceptor.accept(there)
  return here
}
