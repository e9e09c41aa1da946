import { join } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import { type Client, connect, type ServerEvent } from '../../src/client/index.ts'
import type { RevisionId } from '../../src/revisions/index.ts'
import { sharedPostgres } from '../shared-postgres.ts'

let postgres: string
beforeAll(async () => {
  postgres = await sharedPostgres()
})

const script = join(import.meta.dirname, 'events-process.ts')
const flags = ['--disable-warning=ExperimentalWarning', script]

function start(revision: RevisionId, store: string): Promise<Client> {
  return connect({ command: process.execPath, args: [...flags, store] }, { revisions: [revision] })
}

async function hearing(mcp: Client) {
  const heard: ServerEvent[] = []
  const events = mcp.events(['counted'])
  await events.ready
  void (async () => {
    for await (const event of events) heard.push(event)
  })().catch(() => {})
  return { heard, numbers: () => heard.map(({ payload }) => payload['n']) }
}

describe.each(['2025-11-25', '2026-07-28'] as const)('events between processes, over stdio at %s', revision => {
  it('are heard in one process when another on the same Postgres emits them', { timeout: 60_000 }, async () => {
    const store = `${postgres}?schema=events_${revision.slice(0, 4)}`
    const [one, two] = await Promise.all([start(revision, store), start(revision, store)])
    const { heard, numbers } = await hearing(one)
    const { text } = await two.callTool('emit', { from: 0, count: 20 })
    await expect.poll(numbers).toEqual(Array.from({ length: 20 }, (_, n) => n))
    expect(heard.every(({ payload }) => String(payload['by']) === text)).toBe(true)
    const { cursor } = heard[9] as ServerEvent
    await one.close()
    await two.callTool('emit', { from: 20, count: 1 })
    const three = await start(revision, store)
    const again: unknown[] = []
    for await (const event of three.events(['counted'], { after: cursor })) if (again.push(event.payload['n']) === 11) break
    expect(again).toEqual(Array.from({ length: 11 }, (_, n) => 10 + n))
    await Promise.all([two.close(), three.close()])
  })
})
