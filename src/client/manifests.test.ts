import { afterEach, describe, expect, it } from 'vitest'
import { discovery, modernServer } from '../../test/client/scripted-server.ts'
import type { RevisionId } from '../revisions/index.ts'
import { createServer, type Server, type ServerOptions } from '../server/index.ts'
import { connectInMemory, type FakeClock, fakeClock } from '../testing/index.ts'
import type { Client } from './client.ts'
import { connect } from './connect.ts'

const open: { close(): Promise<void> }[] = []
afterEach(async () => {
  for (const each of open.splice(0).reverse()) await each.close()
})

interface World {
  readonly clock: FakeClock
  readonly server: Server
  readonly mcp: Client
  /** What was asked for the manifest, and what came. */
  readonly asked: string[]
  readonly answers: string[]
}

async function world(revision: RevisionId, options: Partial<ServerOptions> = {}): Promise<World> {
  const clock = fakeClock()
  const server = createServer({ name: 'tracker', version: '1.0.0', log: 'silent', manifest: true, clock, ...options })
  server.tool('close_ticket', { description: 'Closes', scopes: ['write'], idempotent: true, confirm: true }, () => 'closed')
  const asked: string[] = []
  const answers: string[] = []
  const mcp = await connectInMemory(server, {
    revision,
    clock,
    onFrame: ({ way, text }) => {
      if (text.includes('manifest/get')) asked.push(text)
      if (way === 'in' && text.includes('"revision":"sha256:') && !text.includes('"manifest_version":"0.1.0","revision"'))
        answers.push(text)
    },
  })
  open.push(server, mcp)
  return { clock, server, mcp, asked, answers }
}

const cache = { ttl: '1m', scope: 'public' } as const

describe.each(['2025-11-25', '2026-07-28'] as const)('mcp.manifest() on %s', revision => {
  it('tells what the server tells, in the words of programs', async () => {
    const { mcp } = await world(revision)
    const manifest = await mcp.manifest()
    expect(manifest).toMatchObject({
      partial: false,
      server: { name: 'tracker', mcpSpecVersion: revision },
      auth: { scopes: [{ name: 'write', grants: ['close_ticket'] }] },
      tools: [{ name: 'close_ticket', requiredScopes: ['write'], idempotent: true, requiresConfirmation: true }],
      supportedExtensions: ['human_in_the_loop', 'structured_errors'],
    })
    expect(manifest.revision).toMatch(/^sha256:[\w-]{43}$/)
    expect(manifest.document).toMatchObject({ tools: [{ required_scopes: ['write'] }] })
  })

  it('E1-6: is asked for once until its time is over, then by its revision, and comes again only if it changed', async () => {
    const { mcp, clock, asked, answers } = await world(revision, { cache })
    const first = await mcp.manifest()
    clock.advance(59_000)
    expect(await mcp.manifest()).toEqual(first)
    expect(asked).toHaveLength(1)
    clock.advance(2_000)
    expect(await mcp.manifest()).toEqual(first)
    expect(asked).toHaveLength(2)
    expect(asked[1]).toContain(`"if_revision":"${first.revision}"`)
    expect(answers[1]).toContain('"not_modified":true')
    expect(answers[1]).not.toContain('close_ticket')
    // What was found unchanged is good for as long again.
    clock.advance(59_000)
    await mcp.manifest()
    expect(asked).toHaveLength(2)
  })

  it('E1-6: is asked for anew after a change of the tools was announced', async () => {
    const { mcp, server, asked, clock } = await world(revision, { cache })
    const changes = mcp.changes('tools')
    const changed = changes.next()
    // Asked after the listening, so that the answer comes when the server listens.
    const first = await mcp.manifest()
    server.tool('reopen_ticket', {}, () => 'open')
    clock.advance(1)
    await changed
    const second = await mcp.manifest()
    expect(second.tools.map(({ name }) => name)).toEqual(['close_ticket', 'reopen_ticket'])
    expect(second.revision).not.toBe(first.revision)
    expect(asked).toHaveLength(2)
    await changes.return()
  })

  it('E1-6: is asked for anew after an update of its resource was announced', async () => {
    const { mcp, server, asked, clock } = await world(revision, { cache })
    const updates = mcp.resourceUpdates('manifest:///service')
    const updated = updates.next()
    await mcp.manifest()
    server.tool('reopen_ticket', {}, () => 'open')
    clock.advance(1)
    await updated
    expect((await mcp.manifest()).tools).toHaveLength(2)
    expect(asked).toHaveLength(2)
    await updates.return()
  })

  it('is asked for each time, by its revision, where the server lets nobody keep it', async () => {
    const { mcp, asked, answers } = await world(revision)
    expect(await mcp.manifest()).toEqual(await mcp.manifest())
    expect(asked).toHaveLength(2)
    expect(answers[1]).toContain('"not_modified":true')
  })

  it('of a plain server is put together from what it tells everybody, and says that it may be incomplete', async () => {
    const { mcp, asked } = await world(revision, { manifest: false, description: 'Tickets', websiteUrl: 'https://example.com/' })
    expect(await mcp.manifest()).toMatchObject({
      partial: true,
      revision: undefined,
      server: {
        name: 'tracker',
        version: '1.0.0',
        mcpSpecVersion: revision,
        description: 'Tickets',
        homepage: 'https://example.com/',
      },
      tools: [
        { name: 'close_ticket', description: 'Closes', idempotent: true, riskLevel: 'destructive', requiredScopes: ['write'] },
      ],
      supportedExtensions: [],
    })
    expect(asked).toEqual([])
  })

  it('has counters of its own caller anew each time, though the rest stays', async () => {
    const { mcp, server, answers } = await world(revision, {
      manifest: { counters: true },
      limits: { rates: { calls: { perSecond: 1, burst: 3 } } },
    })
    server.tool('look', {}, () => 'seen')
    expect((await mcp.manifest()).rateLimits?.remaining).toBe(3)
    await mcp.callTool('look')
    expect((await mcp.manifest()).rateLimits?.remaining).toBe(2)
    expect(answers[1]).toContain('"not_modified":true')
  })
})

describe('a server that tells nonsense', () => {
  const declares = { tools: {}, extensions: { 'dev.vivarium/manifest': { manifest_version: '0.1.0' } } }
  const told = async (answer: object): Promise<unknown> => {
    const server = modernServer({ 'server/discover': () => discovery(declares), 'manifest/get': () => answer })
    const mcp = await connect(server.connection)
    open.push(mcp)
    return mcp.manifest().catch(error => String(error))
  }

  it('is refused with what is wrong', async () => {
    expect(await told({})).toContain('has no revision')
    expect(await told({ revision: 'x', not_modified: true })).toContain('a revision that this client does not have')
    expect(await told({ revision: 'x', manifest: { tools: 7 } })).toContain("The manifest's manifest_version must be")
  })
})
