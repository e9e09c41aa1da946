import { type AddressInfo, createServer } from 'node:net'
import { afterEach, describe, expect, it, onTestFinished } from 'vitest'
import { consentWorld, eras } from '../../../../test/spec/consent.ts'
import type { ConnectOptions } from '../../../client/index.ts'
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

  it('E4-10: shows its user the page on which more can be granted, and never opens it itself', async () => {
    let opened = 0
    const site = createServer(() => void opened++)
    await new Promise<void>(resolve => site.listen(0, '127.0.0.1', resolve))
    onTestFinished(() => void site.close())
    const url = `https://127.0.0.1:${(site.address() as AddressInfo).port}/grant`
    const server = world.serve('memory', { permissions: { grant: () => [], elevationUrl: () => url } })
    server.tool('write', { scopes: ['tickets:write'] }, () => 'written')
    const shown: unknown[] = []
    const onElicit: ConnectOptions['onElicit'] = question => {
      shown.push('url' in question ? question.url : question)
      return { action: 'decline' }
    }
    await using mcp = await connectInMemory(server, { revision, onElicit })
    const out = await mcp.callTool('write')
    expect(shown.map(String)).toEqual([url])
    expect(out).toMatchObject({ isError: true, problem: { code: 'SCOPE_INSUFFICIENT', details: { elevation_url: url } } })
    expect(await mcp.permissions.check('write')).toMatchObject({ allowed: false })
    expect(opened).toBe(0)
  })
})
