import { expect, it, onTestFinished } from 'vitest'
import { gatewayBefore, upstreamOf } from '../../../test/gateway/world.ts'
import { connect } from '../../client/index.ts'
import type { GatewayRule } from '../../policy/rules/call-policy.ts'
import { checkTrust } from './check.ts'

const tokens = { ci: 'a-token-of-the-ci-0123456789', ops: 'a-token-of-operations-0123456' }

/** What becomes of three calls of one client, and then of one of another. */
async function outcomes(above: NonNullable<GatewayRule['above']>): Promise<readonly (string | undefined)[]> {
  const rules: GatewayRule[] = [{ name: 'slow', tool: 'read', above, do: 'deny' }]
  const gateway = await gatewayBefore({ bank: upstreamOf() }, { auth: { tokens }, clients: { ci: {}, ops: {} }, rules })
  const { url } = await gateway.listen()
  const said: (string | undefined)[] = []
  for (const name of ['ci', 'ci', 'ci', 'ops'] as const) {
    const client = await connect(url, { headers: { authorization: `Bearer ${tokens[name]}` } })
    onTestFinished(() => client.close())
    said.push((await client.callTool('read', {})).problem?.code)
  }
  return said
}

it('a rate is one of each client, so that a noisy one shuts out nobody else', async () => {
  expect(await outcomes({ count: 2, per: '1h' })).toEqual([undefined, undefined, 'RATE_LIMIT_EXCEEDED', undefined])
})

it('a rate by all is one for all of them together', async () => {
  const limited = 'RATE_LIMIT_EXCEEDED'
  expect(await outcomes({ count: 2, per: '1h', by: 'all' })).toEqual([undefined, undefined, limited, limited])
  expect(() => checkTrust({ rules: [{ name: 'odd', above: { count: 1, per: '1h', by: 'moon' }, do: 'deny' }] })).toThrow(
    'above.by must be client or all, not moon',
  )
})
