import { describe, expect, it } from 'vitest'
import { Engine } from '../../../engine/engine.ts'
import { clientLimits } from '../../../engine/limits.ts'
import type { Side } from '../../../engine/plan.ts'
import { type RevisionId, revisionById, SupportedRevisions } from '../../../revisions/index.ts'
import { memoryPair } from '../../../transports/memory.ts'
import { promptsSide } from '../prompts/client.ts'
import { subscriptionOf, subscriptionsSide } from '../subscriptions/client.ts'
import { resourcesSide } from './client.ts'

/** A client with these sides that hears the given notifications from a server at a revision. */
async function hearing(revision: RevisionId, sides: readonly Side[], ...frames: readonly object[]): Promise<void> {
  const [near, far] = memoryPair()
  const info = { name: 'client', version: '1' }
  const engine = new Engine({
    role: 'client',
    info,
    spoken: new SupportedRevisions([revision]),
    limits: clientLimits,
    sides: [...sides],
  })
  const conversation = engine.accept(near)
  conversation.peer = { revision: revisionById(revision), capabilities: {}, info: undefined, logLevel: undefined }
  far.start({ frame: () => {}, fault: () => {}, closed: () => {} })
  for (const frame of frames) far.send(JSON.stringify({ jsonrpc: '2.0', ...frame }))
  await far.close()
}

describe('a client that hears of changes', () => {
  it.each<RevisionId>(['2024-11-05', '2025-11-25', '2026-07-28', 'draft-2026-v1'])(
    'is told of lists and resources at %s',
    async revision => {
      const told: string[] = []
      const sides = [
        resourcesSide({ onListChanged: () => told.push('resources'), onUpdated: uri => told.push(uri) }),
        promptsSide({ onListChanged: () => told.push('prompts') }),
      ]
      const changed = (noun: string): object => ({ method: `notifications/${noun}/list_changed` })
      await hearing(revision, sides, changed('resources'), changed('prompts'), {
        method: 'notifications/resources/updated',
        params: { uri: 'a://b' },
      })
      expect(told).toEqual(['resources', 'prompts', 'a://b'])
    },
  )

  it('knows which subscription brought it, and what of its wishes is honoured', async () => {
    const told: unknown[] = []
    const sides = [
      subscriptionsSide({ onAcknowledged: (honoured, id) => told.push(honoured, id) }),
      promptsSide({ onListChanged: exchange => told.push(subscriptionOf(exchange)) }),
    ]
    const _meta = { 'io.modelcontextprotocol/subscriptionId': 4 }
    await hearing(
      '2026-07-28',
      sides,
      { method: 'notifications/subscriptions/acknowledged', params: { notifications: { promptsListChanged: true }, _meta } },
      { method: 'notifications/prompts/list_changed', params: { _meta } },
    )
    expect(told).toEqual([{ promptsListChanged: true }, 4, 4])
  })

  it('finds what the dialect names by URI or name, and takes the unknown for a change of the list (S3 §3.1)', async () => {
    const told: string[] = []
    const known = new Map([
      ['first', 'note://first'],
      ['note://second', 'note://second'],
    ])
    const side = resourcesSide({
      onListChanged: () => told.push('list'),
      onUpdated: uri => told.push(uri),
      uriOf: id => known.get(id),
    })
    await hearing(
      's3',
      [side],
      { method: 'resources/changed', params: { updated: ['first', 'note://second'] } },
      { method: 'resources/changed', params: { updated: ['new', 'newer'] } },
    )
    expect(told).toEqual(['note://first', 'note://second', 'list'])
  })
})
