import { afterEach, describe, expect, it } from 'vitest'
import { consentWorld, eras } from '../../../../test/spec/consent.ts'
import { connectInMemory } from '../../../testing/index.ts'

const world = consentWorld()
afterEach(() => world.close())

describe.each(eras)('a client at %s', revision => {
  it('E4-4: asks for scopes, and what was granted goes with every call from then on', async () => {
    const server = world.serve('memory', { permissions: { grant: () => ['tickets:write'] } })
    server.tool('write', { scopes: ['tickets:write'] }, () => 'written')
    await using mcp = await connectInMemory(server, { revision })
    expect(await mcp.permissions.check('write')).toMatchObject({ allowed: false, missing: ['tickets:write'] })
    expect((await mcp.callTool('write')).isError).toBe(true)
    const { granted, denied, expiresAt } = await mcp.permissions.negotiate(['tickets:write', 'admin'], { ttl: '5m' })
    expect([granted, denied.map(({ scope }) => scope)]).toEqual([['tickets:write'], ['admin']])
    expect(expiresAt?.getTime()).toBeGreaterThan(world.clock.now())
    expect(await mcp.permissions.checkAll([{ tool: 'write' }, { tool: 'none' }])).toMatchObject([
      { allowed: true },
      { allowed: false, missing: [] },
    ])
    expect((await mcp.callTool('write')).text).toBe('written')
    mcp.permissions.drop()
    expect((await mcp.callTool('write')).isError).toBe(true)
  })
})
