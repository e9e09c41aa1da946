import { readFile } from 'node:fs/promises'
import { expect, it, onTestFinished } from 'vitest'
import { startBank } from '../../../test/gateway/fleet.ts'
import { connect } from '../../client/index.ts'
import { readGatewayConfig } from '../config/read.ts'
import { createGateway } from '../create.ts'

const env = {
  GATEWAY_SECRET: 's'.repeat(40),
  CI_TOKEN: 'a-token-of-the-ci-0123456789',
  OPS_TOKEN: 'a-token-of-operations-0123456',
}

it('the file in the guide is without fault, and does what the guide says', async () => {
  const guide = await readFile(new URL('../../../docs/guide/policy.md', import.meta.url), 'utf8')
  const text = /```yaml\n([\s\S]*?)```/.exec(guide)?.[1] ?? ''
  const { trust, faults } = await readGatewayConfig(text, 'gateway.yaml', { env })
  expect(faults).toEqual([])
  const bank = await startBank()
  const gateway = await createGateway({ ...trust, servers: { bank: bank.url }, log: 'silent' })
  onTestFinished(async () => {
    await gateway.close()
    await bank.close()
  })
  await gateway.ready()
  const { url } = await gateway.listen()
  await using ci = await connect(url, { headers: { authorization: `Bearer ${env.CI_TOKEN}` } })
  expect((await ci.callTool('pay', { id: 'a', to: 'unknown-1' })).problem).toMatchObject({ suggestion: 'Pay somebody known' })
  expect((await ci.callTool('pay', { id: 'a' })).text).toBe('paid a 1')
  await expect(ci.callTool('close', { id: 'a' })).rejects.toThrow('There is no tool')
  await using ops = await connect(url, { headers: { authorization: `Bearer ${env.OPS_TOKEN}` } })
  const closing = ops.callTool('close', { id: 'a' })
  await expect
    .poll(async () => (await gateway.approvals()).map(({ message }) => message))
    .toEqual(['vivarium-gateway: close. Close a?'])
  for (const { id } of await gateway.approvals()) await gateway.approve(id)
  expect((await closing).text).toBe('closed a 2')
})
