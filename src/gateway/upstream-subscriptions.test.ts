import { describe, expect, it, onTestFinished } from 'vitest'
import { clientOf, gatewayBefore, type Upstream } from '../../test/gateway/world.ts'
import type { Client } from '../client/client.ts'
import type { Connection } from '../jsonrpc/connection.ts'
import type { RevisionId } from '../revisions/index.ts'
import { createServer } from '../server/index.ts'
import { memoryStore } from '../stores/index.ts'
import { memoryPair } from '../testing/index.ts'
import type { Gateway } from './gateway.ts'

/** A server with three notes and no tools, of one wire; says which of them are watched. */
function notes(revision: RevisionId) {
  const server = createServer({ name: 'notes', version: '1.0.0', log: 'silent', revisions: [revision] })
  for (const i of [1, 2, 3]) server.resource(`note://${i}`, { name: `note ${i}` }, () => `note ${i}`)
  const watched = new Set<string>()
  const begun: string[] = []
  server.engine.onWatch.add((uri, is) => {
    if (is) begun.push(uri)
    if (is) watched.add(uri)
    else watched.delete(uri)
  })
  const lines: Connection[] = []
  const target = (): Connection => {
    const [here, there] = memoryPair()
    server.acceptor.accept(there)
    lines.push(there)
    return here
  }
  onTestFinished(() => server.close())
  const cut = (): void => {
    for (const line of lines.splice(0)) line.close()
  }
  const upstream: Upstream = { server, ran: [], target }
  return { server, upstream, watched, begun, cut }
}

/** What a client hears of updates, as it comes. */
async function hearing(gateway: Gateway, name = 'notes/resource_updated'): Promise<string[]> {
  const client: Client = await clientOf(gateway)
  const heard: string[] = []
  const events = client.events([name])
  await events.ready
  void (async () => {
    for await (const { payload } of events) heard.push(String(payload['uri'] ?? payload['list']))
  })().catch(() => {})
  return heard
}

const both = ['note://1', 'note://2']

describe.each<RevisionId>(['2025-11-25', '2026-07-28'])('events of resources, of a server that speaks %s', revision => {
  it('come though nobody watches, one for each update, whoever else watches it', async () => {
    const { server, upstream, watched, begun } = notes(revision)
    const gateway = await gatewayBefore({ notes: upstream }, { events: { notes: both } })
    const heard = await hearing(gateway)
    await expect.poll(() => [...watched].sort()).toEqual(both)
    server.resourceUpdated('note://1')
    await expect.poll(() => heard).toEqual(['note://1'])

    const stop = new AbortController()
    const seen: string[] = []
    const client = await clientOf(gateway)
    const watching = (async () => {
      for await (const uri of client.resourceUpdates('note://1', { signal: stop.signal })) seen.push(uri)
    })()
    server.resourceUpdated('note://2')
    await expect.poll(() => heard).toEqual(['note://1', 'note://2'])
    await expect
      .poll(() => {
        server.resourceUpdated('note://1')
        return seen.length
      })
      .toBeGreaterThan(0)
    expect(begun).toEqual(both)
    const before = heard.length
    server.resourceUpdated('note://2')
    await expect.poll(() => heard.at(-1)).toBe('note://2')
    expect(heard.slice(before).filter(uri => uri === 'note://2')).toEqual(['note://2'])
    stop.abort()
    await watching
    // What the gateway was told to watch stays watched.
    expect([...watched].sort()).toEqual(both)
  })

  it('come again after the server has been away, and are given up with the gateway', async () => {
    const { server, upstream, watched, begun, cut } = notes(revision)
    const gateway = await gatewayBefore({ notes: upstream }, { events: { notes: ['note://1'] } })
    const heard = await hearing(gateway)
    await expect.poll(() => [...watched]).toEqual(['note://1'])
    cut()
    await expect.poll(() => begun.length).toBe(2)
    server.resourceUpdated('note://1')
    await expect.poll(() => heard).toEqual(['note://1'])
    await gateway.close()
    await expect.poll(() => [...watched]).toEqual([])
  })

  it('are told once by two gateways on one store, by either when the other has gone', async () => {
    const { server, upstream, begun } = notes(revision)
    const store = memoryStore()
    const options = { events: { notes: both }, store, secret: 'a secret of both, of some length' }
    const first = await gatewayBefore({ notes: upstream }, options)
    const second = await gatewayBefore({ notes: upstream }, options)
    const heard = await hearing(second)
    await expect.poll(() => begun.length).toBeGreaterThanOrEqual(2)
    const told: string[] = []
    for (let i = 0; i < 6; i++) {
      const uri = both[i % 2] ?? ''
      server.resourceUpdated(uri)
      told.push(uri)
      await expect.poll(() => heard).toEqual(told)
    }
    await first.close()
    await expect
      .poll(() => {
        server.resourceUpdated('note://2')
        return heard.length
      })
      .toBeGreaterThan(told.length)
  })
})

describe('events', () => {
  it('of lists are told once by two gateways on one store', async () => {
    const { server, upstream } = notes('2025-11-25')
    const options = { events: true, store: memoryStore(), secret: 'a secret of both, of some length' }
    const gateways = [
      await gatewayBefore({ notes: upstream }, options),
      await gatewayBefore({ notes: upstream }, options),
    ] as const
    const heard = await hearing(gateways[0], 'notes/list_changed')
    server.resource('note://4', { name: 'four' }, () => 'four')
    await expect.poll(() => heard).toEqual(['resources'])
    server.resource('note://5', { name: 'five' }, () => 'five')
    await expect.poll(() => heard).toEqual(['resources', 'resources'])
  })

  it.each([
    [{ notes: 'note://1' }, 'events.notes: The value must be a list'],
    [{ notes: ['no address'] }, 'events.notes: The value must be a list'],
    ['all', 'events must be true, false or an object'],
  ])('that are mistaken keep the gateway from starting: %j', async (events, message) => {
    await expect(gatewayBefore({}, { events: events as never })).rejects.toThrow(message)
  })
})
