import { expect, it } from 'vitest'
import { createLog } from '../../src/core/log.ts'
import { createGateway, type GatewayOptions } from '../../src/gateway/index.ts'
import { McpError } from '../../src/jsonrpc/error.ts'
import { createServer } from '../../src/server/index.ts'
import { memoryStore } from '../../src/stores/index.ts'
import { connectInMemory, fakeClock } from '../../src/testing/index.ts'
import { clientOf, gatewayOf, payroll } from './tenants.ts'

const denied: GatewayOptions = {
  rules: [
    { name: 'no-review', prompt: 'review', do: 'deny' },
    { name: 'no-ada', resource: 'payroll://ada', do: 'deny' },
    { name: 'no-salaries', tool: 'salaries', do: 'deny' },
  ],
  listed: 'all',
}

/** What was thrown, as its number and words. */
async function refusal(asked: Promise<unknown>): Promise<readonly [number | undefined, string]> {
  const error = await asked.then(
    () => undefined,
    (thrown: unknown) => thrown,
  )
  return error instanceof McpError ? [error.code, error.message] : [undefined, String(error)]
}

/** A gateway whose log is gathered, and which counts the lines of its audit log. */
async function loud(options: GatewayOptions = denied) {
  const lines: string[] = []
  const log = createLog({ level: 'debug', write: (line: string) => void lines.push(line) })
  const gateway = await gatewayOf({ payroll: payroll() }, { ...options, log })
  lines.length = 0
  const errors = (): readonly string[] => lines.filter(line => /\b(error|warn)\b/i.test(line.slice(0, 80)))
  return { gateway, errors }
}

it.each<[string, (client: Awaited<ReturnType<typeof clientOf>>) => Promise<unknown>, string]>([
  ['a prompt', client => client.getPrompt('review'), 'Rule no-review denies review of payroll'],
  ['a resource', client => client.readResource('payroll://ada'), 'Rule no-ada denies payroll://ada of payroll'],
  [
    'a completion',
    client => client.complete({ prompt: 'review' }, { name: 'x', value: '' }),
    'Rule no-review denies review of payroll',
  ],
])('a rule that refuses %s is an ordinary refusal, and no failure of the gateway', async (_, ask, message) => {
  const { gateway, errors } = await loud()
  const [code, said] = await refusal(ask(await clientOf(gateway)))
  expect(code).toBe(-32600)
  expect(said).toContain(message)
  expect(errors()).toEqual([])
})

it('1,000 reads that a rule refuses write no line of trouble and eleven lines of audit', async () => {
  const { gateway, errors } = await loud()
  const client = await clientOf(gateway)
  for (let i = 0; i < 1_000; i++) await client.getPrompt('review').catch(() => {})
  expect(errors()).toEqual([])
  await expect.poll(async () => (await gateway.audit.read({ limit: 100 })).length).toBe(10)
  const [first] = await gateway.audit.read()
  expect(first).toMatchObject({
    outcome: 'refused',
    more: { rule: 'no-review', server: 'payroll', tool: 'review', method: 'prompts/get', code: 'PERMISSION_DENIED' },
  })
})

it.each<[string, (client: Awaited<ReturnType<typeof clientOf>>, i: number) => Promise<unknown>]>([
  ['tools that nobody offers', (client, i) => client.callTool(`invented${i}`)],
  ['addresses below a template', (client, i) => client.readResource(`payroll://invented${i}`)],
])('names that a caller invents are no kinds of their own: %s', async (_, ask) => {
  const rules = [{ name: 'no-people', resource: 'payroll://*', do: 'deny' as const }]
  const gateway = await gatewayOf({ payroll: payroll() }, { rules, listed: 'all' })
  const client = await clientOf(gateway)
  for (let i = 0; i < 100; i++) await ask(client, i).catch(() => {})
  await client.callTool('ping')
  await expect
    .poll(async () => (await gateway.audit.read({ limit: 1_000 })).some(({ outcome }) => outcome === 'success'))
    .toBe(true)
  expect((await gateway.audit.read({ limit: 1_000 })).filter(({ outcome }) => outcome === 'refused')).toHaveLength(10)
})

it('refusals of one kind within a minute are counted by one line after the first ten: of reads, and of calls', async () => {
  const clock = fakeClock()
  const store = memoryStore({ now: clock.now })
  const gateway = await createGateway({ ...denied, log: 'silent', clock, store, servers: { payroll: payroll().target } })
  await expect
    .poll(() => {
      clock.advance(50)
      return gateway.names().length
    })
    .toBeGreaterThan(0)
  const client = await clientOf(gateway)
  for (let i = 0; i < 50; i++) {
    await client.readResource('payroll://ada').catch(() => {})
    await client.callTool('salaries').catch(() => {})
  }
  clock.advance(60_000)
  const lines = await gateway.audit.read({ limit: 1_000 })
  const of = (rule: string) => lines.filter(({ more }) => more?.['rule'] === rule).map(({ more }) => more?.['times'] ?? 1)
  expect([of('no-ada'), of('no-salaries')]).toEqual([
    [...Array(10).fill(1), 40],
    [...Array(10).fill(1), 40],
  ])
  let closed = false
  void gateway.close().then(() => {
    closed = true
  })
  await expect
    .poll(() => {
      clock.advance(1_000)
      return closed
    })
    .toBe(true)
})

it('a refusal that the author of a server throws is none of its mistakes either', async () => {
  const lines: string[] = []
  const log = createLog({ level: 'error', write: (line: string) => void lines.push(line) })
  const { problem } = await import('../../src/server/index.ts')
  const server = createServer({ name: 'tracker', version: '1.0.0', log })
  server.prompt('review', {}, () => {
    throw problem('PERMISSION_DENIED', 'Not for you')
  })
  await using client = await connectInMemory(server)
  expect(await refusal(client.getPrompt('review'))).toEqual([-32600, expect.stringContaining('Not for you')])
  expect(lines).toEqual([])
  await server.close()
})
