/** What clients are told, and get, of a gateway that has only just started. */
import { expect, onTestFinished, test } from 'vitest'
import { createGateway } from '../../src/gateway/create.ts'
import type { GatewayOptions } from '../../src/gateway/gateway.ts'
import { clientOf, toolNames, upstreamOf } from './world.ts'

/** Its server can be connected to from `open()` on. */
async function starting(options: GatewayOptions = {}) {
  const { target } = upstreamOf()
  const { promise, resolve: open } = Promise.withResolvers<void>()
  const slow = async () => {
    await promise
    return target()
  }
  const gateway = await createGateway({ log: 'silent', servers: { bank: slow, fast: upstreamOf('fast').target }, ...options })
  onTestFinished(async () => {
    open()
    await gateway.close()
  })
  return { gateway, open }
}

test('a gateway declares tools, prompts, resources, completions and logging before any server is up', async () => {
  const { gateway } = await starting()
  const client = await clientOf(gateway, { revision: '2025-06-18' })
  expect(client.capabilities).toMatchObject({
    tools: { listChanged: true },
    prompts: { listChanged: true },
    resources: { listChanged: true, subscribe: true },
    completions: {},
    logging: {},
  })
})

test.each(['2025-06-18', '2026-07-28'] as const)(
  '%s: the first list and a call of an unknown name wait for the first look',
  async revision => {
    const { gateway, open } = await starting()
    const connecting = clientOf(gateway, { revision })
    if (revision === '2026-07-28') open()
    const client = await connecting
    const listed = toolNames(client)
    const called = client.callTool('bank_pay', { to: 'ann' })
    open()
    expect(await listed).toContain('bank_pay')
    expect((await called).text).toBe('pay 1')
  },
)

test('a call of a name that is known waits for nobody, and nothing waits longer than startWait', async () => {
  const { gateway } = await starting({ startWait: 400 })
  const client = await clientOf(gateway, { revision: '2025-06-18' })
  await expect.poll(() => gateway.names().length).toBeGreaterThan(0)
  const began = client.callTool('nothing').catch((error: unknown) => String(error))
  expect((await client.callTool('pay')).text).toBe('pay 1')
  expect(await began).toContain('There is no tool')
  expect(await toolNames(client)).toEqual(['bare', 'pay', 'read'])
})
