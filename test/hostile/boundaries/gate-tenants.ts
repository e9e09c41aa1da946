/** Clients that share a gateway with others: what reaches them unasked, whose addresses they read, how much room they take, what they make others write and approve. */
import { type Client, connect } from 'vivarium/client'
import { createGateway, type GatewayOptions } from 'vivarium/gateway'
import { createServer, jsonSchema, type Server } from 'vivarium/server'
import { connectInMemory, memoryPair } from 'vivarium/testing'
import type { HostileCase, Verdict } from '../case.ts'

const anything = jsonSchema<Record<string, unknown>>({ type: 'object' })

function serverOf(name: string): Server {
  return createServer({ name, version: '1.0.0', log: 'silent', limits: { rates: false } })
}

/** Cut off while `away` says so. */
function targetOf(server: Server, away: { now: boolean; lines: { close(): void }[] } = { now: false, lines: [] }) {
  return () => {
    if (away.now) throw new Error('away')
    const [here, there] = memoryPair()
    server.acceptor.accept(there)
    away.lines.push(there)
    return here
  }
}

async function behind(
  servers: Readonly<Record<string, Server>>,
  options: GatewayOptions,
  play: (gateway: Awaited<ReturnType<typeof createGateway>>) => Promise<Verdict>,
): Promise<Verdict> {
  const targets = Object.fromEntries(Object.entries(servers).map(([name, server]) => [name, targetOf(server)]))
  const gateway = await createGateway({ log: 'silent', drain: 1, limits: { rates: false }, servers: targets, ...options })
  try {
    await gateway.ready()
    return await play(gateway)
  } finally {
    await gateway.close()
    for (const server of Object.values(servers)) await server.close()
  }
}

/** Looks again and again, for at most ten seconds. */
async function until(done: () => boolean): Promise<boolean> {
  const end = Date.now() + 10_000
  while (!done() && Date.now() < end) await new Promise(resolve => setTimeout(resolve, 10))
  return done()
}

const said = async (asked: Promise<unknown>): Promise<string> =>
  asked.then(
    value => JSON.stringify(value) ?? '',
    error => String(error),
  )

function payroll(): Server {
  const server = serverOf('payroll')
  for (const id of ['ada', 'menu']) server.resource(`payroll://${id}`, { name: id }, () => `about ${id}`)
  server.prompt('review', {}, () => 'Review Ada')
  return server
}

const events: HostileCase = {
  key: 'GT01',
  name: 'a client subscribes to the events of a server of which it may read one resource: it hears of that one alone',
  run: async () => {
    const people = payroll()
    const rules: GatewayOptions['rules'] = [{ name: 'no-ada', resource: 'payroll://ada', do: 'deny' }]
    const options: GatewayOptions = { rules, events: { payroll: ['payroll://ada', 'payroll://menu'] } }
    return behind({ payroll: people }, options, async gateway => {
      await using client = await connectInMemory(gateway.server)
      const heard: string[] = []
      const stream = client.events(['payroll/resource_updated'])
      await stream.ready
      void (async () => {
        for await (const { payload } of stream) heard.push(String(payload['uri']))
      })().catch(() => {})
      people.resourceUpdated('payroll://ada')
      people.resourceUpdated('payroll://menu')
      const came = await until(() => heard.includes('payroll://menu'))
      return { well: came && !heard.includes('payroll://ada'), detail: `heard of ${heard.join(', ')}` }
    })
  },
}

const hidden: HostileCase = {
  key: 'GT02',
  name: 'a client that is given one server asks for the events of another: there are none for it',
  run: async () =>
    behind(
      { payroll: payroll(), shop: serverOf('shop') },
      { events: true, clients: { local: { tools: ['shop/*'] } } },
      async gateway => {
        await using client = await connectInMemory(gateway.server)
        const detail = await said(client.events(['payroll/resource_updated']).ready)
        return { well: detail.includes('There is no event'), detail }
      },
    ),
}

const order: HostileCase = {
  key: 'GT03',
  name: 'a server with a wider template waits until the one before it was away: addresses stay with the first of the file',
  run: async () => {
    const [first, second] = [serverOf('first'), serverOf('second')]
    first.resource('pay://{id}', { name: 'first' }, () => 'from first')
    second.resource('pay://{+rest}', { name: 'second' }, () => 'from second')
    const away = { now: false, lines: [] as { close(): void }[] }
    const servers = { first: targetOf(first, away), second: targetOf(second) }
    return behind({}, { servers }, async gateway => {
      await using client = await connectInMemory(gateway.server)
      const status = (): string | undefined => gateway.upstreams()[0]?.status
      away.now = true
      for (const line of away.lines.splice(0)) line.close()
      await until(() => status() !== 'up')
      await gateway.ready()
      const meanwhile = await said(client.readResource('pay://ada'))
      away.now = false
      gateway.retry('first')
      await until(() => status() === 'up')
      await gateway.ready()
      const after = await said(client.readResource('pay://ada'))
      await Promise.all([first.close(), second.close()])
      return { well: !meanwhile.includes('from second') && after.includes('from first'), detail: `${meanwhile} | ${after}` }
    })
  },
}

const flood: HostileCase = {
  key: 'GT04',
  name: 'a client has as many calls under way as a server takes: it is refused beyond its share, and another one is served',
  run: async () => {
    const bank = serverOf('bank')
    bank.tool('wait', {}, () => new Promise<string>(() => {}))
    bank.tool('quick', {}, () => 'quick')
    const tokens = { one: 'a-token-of-one-0123456789', other: 'a-token-of-other-0123456789' }
    return behind({ bank }, { auth: { tokens }, clients: { one: {}, other: {} } }, async gateway => {
      const { url } = await gateway.listen()
      const by = (token: string): Promise<Client> => connect(url, { headers: { authorization: `Bearer ${token}` } })
      await using one = await by(tokens.one)
      await using other = await by(tokens.other)
      const refused: string[] = []
      for (let i = 0; i < 64; i++)
        void one.callTool('wait').then(
          ({ problem }) => refused.push(problem?.message ?? ''),
          () => {},
        )
      await until(() => refused.length === 32)
      const served = await said(other.callTool('quick').then(({ text }) => text))
      const well = refused.length === 32 && refused[0]?.includes('shares.calls') === true && served === '"quick"'
      return { well, detail: `${refused.length} refused: ${refused[0]}; the other one: ${served}` }
    })
  },
}

const denied: HostileCase = {
  key: 'GT05',
  name: 'a client reads a prompt that a rule refuses 1,000 times: refusals, no trouble in the log, few lines of audit',
  run: async () => {
    const lines: string[] = []
    const rules: GatewayOptions['rules'] = [{ name: 'no-review', prompt: 'review', do: 'deny' }]
    const trouble = (event: string): void => void lines.push(event)
    return behind({ payroll: payroll() }, { rules, listed: 'all', onTrace: trouble }, async gateway => {
      await using client = await connectInMemory(gateway.server)
      lines.length = 0
      let last = ''
      for (let i = 0; i < 1_000; i++) last = await said(client.getPrompt('review'))
      const audit = (await gateway.audit.read({ limit: 1_000 })).length
      const well = lines.length === 0 && audit <= 11 && last.includes('Rule no-review denies')
      return { well, detail: `${lines.length} traces, ${audit} lines of audit, ${last}` }
    })
  },
}

const unseen: HostileCase = {
  key: 'GT06',
  name: 'a call whose arguments are too long to be shown whole is refused at once: nobody can approve what he did not see',
  run: async () => {
    const bank = serverOf('bank')
    let ran = 0
    bank.tool('pay', { input: anything }, () => `paid ${++ran}`)
    const rules: GatewayOptions['rules'] = [{ name: 'money', tool: 'pay', do: 'ask', by: 'operator' }]
    return behind({ bank }, { rules }, async gateway => {
      await using client = await connectInMemory(gateway.server)
      const told = await client.callTool('pay', { note: 'x'.repeat(1024 * 1024), last: 'to mallory' })
      const waits = (await gateway.approvals()).length
      const code = told.problem?.code
      return { well: code === 'PAYLOAD_TOO_LARGE' && waits === 0 && ran === 0, detail: `${code}, ${waits} waiting` }
    })
  },
}

export const cases: readonly HostileCase[] = [events, hidden, order, flood, denied, unseen]
