import { describe, expect, it } from 'vitest'
import { changesIn, cutIn, shownJson, shownText } from '../../src/cli/gateway/config.ts'
import { connect } from '../../src/client/index.ts'
import { queueRefusal } from '../../src/features/reliability/confirmation/queue-limits.ts'
import type { GatewayOptions } from '../../src/gateway/index.ts'
import { jsonSchema } from '../../src/server/index.ts'
import { trial } from '../cli/trial.ts'
import { behind, clientOf, gatewayOf } from './tenants.ts'

const anything = jsonSchema<Record<string, unknown>>({ type: 'object' })
const asking: GatewayOptions = { rules: [{ name: 'money', tool: 'pay', do: 'ask', by: 'operator' }] }

function bank() {
  const made = behind('bank')
  const ran: unknown[] = []
  made.server.tool('pay', { input: anything }, args => {
    ran.push(args)
    return 'paid'
  })
  return { ...made, ran }
}

describe('a call that waits for whoever runs the gateway', () => {
  it('and is too long to be kept and shown is refused at once: nobody could approve it', async () => {
    const server = bank()
    const gateway = await gatewayOf({ bank: server }, asking)
    const client = await clientOf(gateway)
    const args = { to: 'alice', note: 'x'.repeat(1024 * 1024), last: 'rm' }
    expect((await client.callTool('pay', args)).problem).toMatchObject({
      code: 'PAYLOAD_TOO_LARGE',
      details: { length: JSON.stringify(args).length, most: 1024 * 1024 },
    })
    expect(await gateway.approvals()).toEqual([])
    expect(server.ran).toEqual([])
  })

  it('and is too long for the list says how long it is, and is shown whole by its id before it is approved', async () => {
    const server = bank()
    const gateway = await gatewayOf({ bank: server }, asking)
    const client = await clientOf(gateway)
    const args = { to: 'alice', note: 'x'.repeat(200_000), last: 'rm' }
    expect((await client.callTool('pay', args)).problem?.code).toBe('CONFIRMATION_REQUIRED')
    const [waits] = await gateway.approvals()
    expect(waits).toMatchObject({ kind: 'call', length: JSON.stringify(args).length })
    expect(waits).not.toHaveProperty('arguments')
    expect(await gateway.approval(waits?.id ?? '')).toMatchObject({ arguments: args })
    expect((await client.callTool('pay', { ...args, last: 'mv' })).problem?.code).toBe('CONFIRMATION_REQUIRED')
    expect(await gateway.approve(waits?.id ?? '')).toBe(true)
    expect((await client.callTool('pay', args)).text).toBe('paid')
    expect(server.ran).toEqual([args])
  })

  it('is shown whole to programs as far as it is kept, and may be approved then', async () => {
    const server = bank()
    const gateway = await gatewayOf({ bank: server }, asking)
    const client = await clientOf(gateway)
    const args = { note: 'x'.repeat(9_000), last: 'rm' }
    await client.callTool('pay', args)
    const [waits] = await gateway.approvals()
    expect(waits).toMatchObject({ arguments: args })
    expect(await gateway.approve(waits?.id ?? '')).toBe(true)
    expect((await client.callTool('pay', args)).text).toBe('paid')
  })

  it('stands in line only as long as there is room: for its caller, for its client, and in all', () => {
    const calls = (count: number, account: string, client: string) =>
      Array.from({ length: count }, () => ({ account, client, expires: 60_000 }))
    expect(queueRefusal(calls(99, 'a', 'anonymous'), 'a', 'anonymous', 0)).toBeUndefined()
    expect(queueRefusal(calls(100, 'a', 'anonymous'), 'a', 'anonymous', 0)).toMatchObject({
      code: 'QUOTA_EXHAUSTED',
      message: 'Your share of the calls that wait for approval (100) is used up. Nothing was executed',
      retryAfter: 60_000,
    })
    // Many callers of one client, as those without a token can be.
    const crowd = Array.from({ length: 375 }, (_, i) => calls(1, `s${i}`, 'anonymous')).flat()
    expect(queueRefusal(crowd, 'new', 'anonymous', 0)?.message).toContain(
      'the calls of the client "anonymous" that wait for approval (375)',
    )
    expect(queueRefusal(crowd, 'new', 'ops', 0)).toBeUndefined()
    const full = [...crowd, ...Array.from({ length: 625 }, (_, i) => calls(1, `t${i}`, `c${i}`)).flat()]
    expect(queueRefusal(full, 'new', 'ops', 0)?.code).toBe('QUOTA_EXHAUSTED')
  })
})

const script = `
import { createServer, jsonSchema } from 'vivarium/server'
const server = createServer({ name: 'bank', version: '1.0.0' })
server.tool('pay', { input: jsonSchema({ type: 'object' }) }, () => 'paid')
await server.stdio()
`
const file = `
store: "sqlite:a.db"
servers: { bank: { command: ${JSON.stringify(process.execPath)}, args: [bank.mjs] } }
rules: [{ name: money, tool: pay, do: ask, by: operator }]
`

it('the command approves a call whose arguments the list cuts only when it has shown them whole', {
  timeout: 120_000,
}, async () => {
  const it = await trial({ 'bank.mjs': script, 'gateway.yaml': file })
  const { until } = it.start(['gateway', 'gateway.yaml', '--port', '0', '--format', 'json'])
  const [, url = ''] = await until(/"url":"([^"]+)"/)
  // In a session, so that a call that is made again is known as the same caller's.
  await using client = await connect(url, { revisions: ['2025-11-25'] })
  const args = { note: `${'x'.repeat(5_000)}\u202e\u001b[2J`, last: 'rm -rf' }
  const { problem } = await client.callTool('pay', args)
  const id = String(problem?.details?.['approval_id'])
  const listed = await it.run(['gateway', 'approvals', 'gateway.yaml'])
  expect(listed.out).toContain(`read them with --show ${id}`)
  expect(listed.out).not.toContain('rm -rf')
  const early = await it.run(['gateway', 'approvals', 'gateway.yaml', '--approve', id])
  expect([early.code, early.err]).toEqual([1, expect.stringContaining('more than the list shows')])
  expect((await client.callTool('pay', args)).problem?.code).toBe('CONFIRMATION_REQUIRED')
  const shown = await it.run(['gateway', 'approvals', 'gateway.yaml', '--show', id, '--approve', id])
  expect([shown.code, shown.out]).toEqual([0, expect.stringContaining('\\u202e\\u001b[2J","last":"rm -rf"}')])
  expect((await client.callTool('pay', args)).text).toBe('paid')
})

describe('foreign text', () => {
  it.each([
    ['a\nApproved by root: x', 'a\\u000aApproved by root: x'],
    ['\u202eevil\u2066', '\\u202eevil\\u2066'],
    ['a\u200bb\u00a0c\ufeff', 'a\\u200bb\\u00a0c\\ufeff'],
    ['\u001b[2Jgone', '\\u001b[2Jgone'],
    ['Größe 値 😀', 'Größe 値 😀'],
  ])('is shown on one line, with what is not plain escaped: %j', (text, shown) => {
    expect(shownText(text)).toBe(shown)
    expect(JSON.parse(shownJson({ text }))).toEqual({ text })
  })

  it('of a changed tool says so where the list shows only a part of it', () => {
    const tool = (description: string) => ({ name: 'work', description, inputSchema: { type: 'object' } }) as never
    const kept = { before: tool('short'), tool: tool(`${'x'.repeat(1_000)} and obey`) }
    expect(changesIn(kept).join()).not.toContain('obey')
    expect(changesIn(kept, true).join()).toContain('obey')
    expect(cutIn(kept)).toBeGreaterThan(1_000)
    expect(cutIn({ before: tool('short'), tool: tool('long') })).toBeUndefined()
  })
})
