/** Hostile callers of a gateway: tokens that were taken back, callers whom nobody named, clients that answer themselves, floods of invented tokens. */
import { createServer as createHttpServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type Client, type ConnectOptions, connect } from 'vivarium/client'
import { createGateway, type Gateway, type GatewayOptions } from 'vivarium/gateway'
import { createServer, oauth } from 'vivarium/server'
import { memoryPair } from 'vivarium/testing'
import type { HostileCase, Verdict } from '../case.ts'

const tokens = { ann: 'the-token-of-ann-0123456789', bob: 'the-token-of-bob-0123456789' }
const everyone: GatewayOptions = { auth: { tokens }, clients: { ann: {}, bob: {} } }
const onlyBob: GatewayOptions = { auth: { tokens: { bob: tokens.bob } }, clients: { bob: {} } }

interface Attacked {
  readonly gateway: Gateway
  /** How often money was paid. */
  readonly paid: () => number
  readonly origin: string
  reload(options: GatewayOptions): Promise<unknown>
  as(name: keyof typeof tokens, path?: string, options?: ConnectOptions): Promise<Client>
}

/** Runs an attack against a gateway before a bank, and ends all of it. */
async function attack(options: GatewayOptions, work: (attacked: Attacked) => Promise<Verdict>): Promise<Verdict> {
  let paid = 0
  const bank = createServer({ name: 'bank', version: '1.0.0', log: 'silent' })
  bank.tool('pay', {}, () => `paid ${++paid}`)
  bank.tool('wait', {}, (_, { signal }) => new Promise<string>(done => signal.addEventListener('abort', () => done('stopped'))))
  const target = () => {
    const [here, there] = memoryPair()
    bank.acceptor.accept(there)
    return here
  }
  const fixed = { servers: { bank: target }, log: 'silent' as const, drain: 1, listen: { wsPath: '/ws' } }
  const gateway = await createGateway({ ...fixed, ...options })
  const clients: Client[] = []
  try {
    await gateway.ready()
    const { port } = await gateway.listen()
    return await work({
      gateway,
      paid: () => paid,
      origin: `http://127.0.0.1:${port}`,
      reload: next => gateway.reload({ ...fixed, ...next }),
      as: async (name, path = '/mcp', more = {}) => {
        const scheme = path === '/ws' ? 'ws' : 'http'
        const headers = { authorization: `Bearer ${tokens[name]}` }
        const client = await connect(`${scheme}://127.0.0.1:${port}${path}`, { headers, retry: false, ...more })
        clients.push(client)
        return client
      },
    })
  } finally {
    for (const client of clients) await client.close()
    await gateway.close()
    await bank.close()
  }
}

const said = (outcome: Promise<{ readonly text: string }>): Promise<string> => outcome.then(({ text }) => text, String)

async function revokedSocket(): Promise<Verdict> {
  return attack(everyone, async ({ as, reload, paid }) => {
    const ann = await as('ann', '/ws')
    await reload(onlyBob)
    await ann.ended
    const answer = await said(ann.callTool('pay', {}))
    return { well: paid() === 0, detail: `the socket ended; a call on it: ${answer}` }
  })
}

async function revokedCall(): Promise<Verdict> {
  return attack(everyone, async ({ as, reload }) => {
    const ann = await as('ann')
    const waiting = said(ann.callTool('wait', {}))
    // Answered after the one before it was taken in.
    await said(ann.callTool('pay', {}))
    await reload(onlyBob)
    const answer = await waiting
    return { well: answer.includes('was revoked during the call'), detail: answer }
  })
}

async function stranger(): Promise<Verdict> {
  return attack({ clients: { ann: {} } }, async ({ origin, paid }) => {
    await using nobody = await connect(`${origin}/mcp`, { retry: false })
    const names: string[] = []
    for await (const { name } of nobody.tools()) names.push(name)
    const answer = await said(nobody.callTool('pay', {}))
    return { well: names.length === 0 && paid() === 0 && answer.includes('refused'), detail: `${names.length} tools; ${answer}` }
  })
}

async function curious(): Promise<Verdict> {
  return attack({}, async ({ origin }) => {
    const text = await (await fetch(`${origin}/ready`)).text()
    return { well: text.trim() === '{"ready":true}', detail: text.trim() }
  })
}

async function selfApproving(): Promise<Verdict> {
  return attack({ ...everyone, rules: [{ name: 'money', tool: 'pay', do: 'ask' }] }, async ({ as, gateway, paid }) => {
    const yes: ConnectOptions = {
      onConfirm: () => true,
      onElicit: () => ({ action: 'accept', content: { confirm: true } }),
    }
    const ann = await as('ann', '/mcp', yes)
    await said(ann.callTool('pay', {}))
    const waits = (await gateway.approvals()).length
    return { well: paid() === 0 && waits === 1, detail: `${paid()} payments; ${waits} calls wait for the operator` }
  })
}

async function unprotectedBesideTokens(): Promise<Verdict> {
  return attack(everyone, async ({ gateway }) => {
    const outcome = await gateway.listen({ auth: 'none' }).then(
      () => 'it listens, and no token is checked',
      error => String(error),
    )
    return { well: outcome.includes('cannot be combined with auth'), detail: outcome }
  })
}

async function placeholders(): Promise<Verdict> {
  return attack(everyone, async ({ origin }) => {
    const refused = await fetch(`${origin}/mcp`, { method: 'POST', body: '{}' })
    const metadata = await fetch(`${origin}/.well-known/oauth-protected-resource`)
    const challenge = refused.headers.get('www-authenticate') ?? ''
    const shown = `${challenge} ${await refused.text()} ${metadata.status} ${await metadata.text()}`
    return { well: refused.status === 401 && !/invalid\/|\.invalid|resource_metadata/.test(shown), detail: challenge }
  })
}

/** An issuer that never answers about invented tokens. */
async function flood(): Promise<Verdict> {
  const resource = 'https://api.example.com/mcp'
  const held = new Set<ServerResponse>()
  const issuer = createHttpServer(async (request, response) => {
    const token = new URLSearchParams(Buffer.concat(await request.toArray()).toString()).get('token')
    if (token !== 'good') return void held.add(response)
    response.setHeader('content-type', 'application/json')
    response.end(JSON.stringify({ active: true, sub: 'ann', aud: resource }))
  })
  await new Promise<void>(resolve => issuer.listen(0, '127.0.0.1', resolve))
  const url = `http://127.0.0.1:${(issuer.address() as AddressInfo).port}`
  const server = createServer({ name: 'tickets', version: '1.0.0', log: 'silent' })
  const introspection = { clientId: 'rs', clientSecret: 'secret', endpoint: `${url}/introspect` }
  const face = server.fetchWith({ auth: oauth({ issuer: url, resource, introspection }) })
  const status = async (token: string, remote: string): Promise<number> => {
    const headers = {
      authorization: `Bearer ${token}`,
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
    }
    return (await face(new Request(resource, { method: 'POST', headers, body: '{}' }), { remote })).status
  }
  try {
    const invented = Array.from({ length: 200 }, (_, i) => status(`invented-${i}`, '192.0.2.1'))
    const good = await status('good', '192.0.2.2')
    const asked = held.size
    issuer.closeAllConnections()
    await Promise.all(invented)
    return { well: good === 400 && asked <= 16, detail: `a good token: ${good}; ${asked} invented ones were asked about at once` }
  } finally {
    await server.close()
    issuer.close()
  }
}

export const cases: readonly HostileCase[] = [
  { key: 'GA01', name: 'A WebSocket whose token a reload takes away ends, and nothing is done on it', run: revokedSocket },
  { key: 'GA02', name: 'A call under way whose token a reload takes away is stopped, and told so', run: revokedCall },
  { key: 'GA03', name: 'A caller that is none of the clients finds nothing, and its call is refused', run: stranger },
  { key: 'GA04', name: 'Whoever merely reaches /ready learns only whether the gateway is ready', run: curious },
  { key: 'GA05', name: 'A client that says yes to everything does not approve its own call', run: selfApproving },
  { key: 'GA06', name: 'A gateway with tokens does not listen without checking them', run: unprotectedBesideTokens },
  {
    key: 'GA07',
    name: 'A challenge for fixed tokens names no authorization server, and there is no metadata',
    run: placeholders,
  },
  { key: 'GA08', name: 'A flood of invented tokens keeps no good one out', run: flood },
]
