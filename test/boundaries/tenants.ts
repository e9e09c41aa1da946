/** Two servers that share one gateway, and its clients, for tests of what reaches whom. */
import { onTestFinished } from 'vitest'
import { z } from 'zod'
import { type Client, type ConnectOptions, connect } from '../../src/client/index.ts'
import { createGateway, type Gateway, type GatewayOptions } from '../../src/gateway/index.ts'
import type { Connection } from '../../src/jsonrpc/connection.ts'
import { createServer, reply, type Server, type ServerOptions, text } from '../../src/server/index.ts'
import { connectInMemory, type InMemoryOptions, memoryPair } from '../../src/testing/index.ts'

export interface Behind {
  readonly server: Server
  readonly target: string | (() => Connection)
  /** Breaks all its connections, and takes no others until it is back. */
  leave(): void
  comeBack(): void
}

export function behind(name: string, options: Partial<ServerOptions> = {}): Behind {
  const server = createServer({ name, version: '1.0.0', log: 'silent', limits: { rates: false }, ...options })
  const lines: Connection[] = []
  let away = false
  onTestFinished(() => server.close())
  return {
    server,
    target: () => {
      if (away) throw new Error('away')
      const [here, there] = memoryPair()
      server.acceptor.accept(there)
      lines.push(there)
      return here
    },
    leave: () => {
      away = true
      for (const line of lines.splice(0)) line.close()
    },
    comeBack: () => {
      away = false
    },
  }
}

const none = z.object({})

/** `payroll://ada`, `payroll://menu` and all of `payroll://{id}`; tools `salaries` and `ping`; the prompt `review`. */
export function payroll(options: Partial<ServerOptions> = {}): Behind {
  const made = behind('payroll', options)
  const { server } = made
  for (const id of ['ada', 'menu']) server.resource(`payroll://${id}`, { name: id }, () => `about ${id}`)
  server.resource(
    'payroll://{id}',
    { name: 'anybody', complete: { id: () => ['ada', 'bob', 'menu'] } },
    ({ id }) => `about ${id}`,
  )
  server.tool('salaries', { input: none }, () =>
    reply({
      content: [
        { type: 'resource_link', uri: 'payroll://ada', name: 'ada' },
        { type: 'resource', resource: { uri: 'payroll://ada', text: 'Ada earns 1' } },
        { type: 'resource_link', uri: 'payroll://menu', name: 'menu' },
        text('done'),
      ],
    }),
  )
  server.tool('ping', { input: none }, () => 'pong')
  server.prompt('review', {}, () => 'Review Ada')
  return made
}

/** The tool `buy` and the resource `shop://sale`. */
export function shop(options: Partial<ServerOptions> = {}): Behind {
  const made = behind('shop', options)
  made.server.tool('buy', { input: none }, () => 'bought')
  made.server.resource('shop://sale', { name: 'sale' }, () => 'A sale')
  return made
}

export async function gatewayOf(servers: Readonly<Record<string, Behind>>, options: GatewayOptions = {}): Promise<Gateway> {
  const targets = Object.fromEntries(Object.entries(servers).map(([name, { target }]) => [name, target]))
  const gateway = await createGateway({ log: 'silent', drain: 1, limits: { rates: false }, servers: targets, ...options })
  onTestFinished(() => gateway.close())
  await gateway.ready()
  return gateway
}

export async function clientOf(gateway: Gateway, options: InMemoryOptions = {}): Promise<Client> {
  const client = await connectInMemory(gateway.server, options)
  onTestFinished(() => client.close())
  return client
}

/** For `auth`: a token for each name. */
export function tokensOf(...names: readonly string[]): Readonly<Record<string, string>> {
  return Object.fromEntries(names.map(name => [name, `a-token-of-${name}-0123456789`]))
}

/** Over HTTP, each by a token of its own. */
export async function clientNamed(url: string, name: string, options: ConnectOptions = {}): Promise<Client> {
  const token = tokensOf(name)[name]
  const client = await connect(url, { headers: { authorization: `Bearer ${token}` }, ...options })
  onTestFinished(() => client.close())
  return client
}
