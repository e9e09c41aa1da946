/** A server that knows nothing of trust, and a gateway before it, for tests. */
import { onTestFinished } from 'vitest'
import type { Client } from '../../src/client/client.ts'
import { createGateway } from '../../src/gateway/create.ts'
import type { Gateway, GatewayOptions } from '../../src/gateway/gateway.ts'
import type { Connection } from '../../src/jsonrpc/connection.ts'
import { createServer, jsonSchema, reply, type Server, text } from '../../src/server/index.ts'
import { connectInMemory, type InMemoryOptions, memoryPair } from '../../src/testing/index.ts'

export interface Upstream {
  readonly server: Server
  /** How often each tool ran, and with what. */
  readonly ran: [tool: string, args: unknown][]
  readonly target: () => Connection
}

const anything = jsonSchema<Record<string, unknown>>({ type: 'object' })

/** Tools `pay`, `read` (read-only), `fail`, `bare` and `break`; the resource `note://1`. */
export function upstreamOf(name = 'bank'): Upstream {
  const server = createServer({ name, version: '1.0.0', log: 'silent' })
  const ran: [string, unknown][] = []
  const done = (tool: string) => (args: unknown) => {
    ran.push([tool, args])
    return `${tool} ${ran.length}`
  }
  server.tool('pay', { description: 'Pays', input: anything }, done('pay'))
  server.tool('read', { input: anything, annotations: { readOnlyHint: true } }, done('read'))
  server.tool('bare', {}, () => reply({ content: [text('The account is closed')], isError: true }))
  server.resource('note://1', { name: 'note' }, () => `note of ${name}`)
  server.prompt('greet', {}, () => `greetings from ${name}`)
  onTestFinished(() => server.close())
  return {
    server,
    ran,
    target: () => {
      const [here, there] = memoryPair()
      server.acceptor.accept(there)
      return here
    },
  }
}

export async function gatewayBefore(
  upstreams: Readonly<Record<string, Upstream>>,
  options: GatewayOptions = {},
): Promise<Gateway> {
  const servers = Object.fromEntries(Object.entries(upstreams).map(([name, { target }]) => [name, target]))
  const gateway = await createGateway({ log: 'silent', servers, ...options })
  onTestFinished(() => gateway.close())
  await gateway.ready()
  return gateway
}

export async function clientOf(gateway: Gateway, options: InMemoryOptions = {}): Promise<Client> {
  const client = await connectInMemory(gateway.server, options)
  onTestFinished(() => client.close())
  return client
}

export async function toolNames(client: Client): Promise<readonly string[]> {
  const names: string[] = []
  for await (const { name } of client.tools()) names.push(name)
  return names.sort()
}
