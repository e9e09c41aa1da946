import { test } from 'vitest'
import { createGateway } from '../../src/gateway/index.ts'
import type { RevisionId } from '../../src/server/index.ts'
import { memoryPair } from '../../src/testing/index.ts'
import { openCell } from '../matrix/cell.ts'
import { type CarrierName, carriersOf, startFixture } from '../transcripts/carriers.ts'
import { everyRevision } from '../transcripts/fixture.ts'
import { checkBridge } from './sentences.ts'

/** The carrier that each wire is most used over; the first one and the dialect ask over the old pair. */
const usual = (revision: RevisionId): CarrierName => (carriersOf[revision].includes('sse') ? 'sse' : 'http')

for (const server of everyRevision) {
  for (const revision of everyRevision) {
    test(`client ${revision} ⇄ gateway ⇄ server ${server}`, async () => {
      const behind = await startFixture(usual(server), [server])
      const gateway = await createGateway({
        servers: { fixture: { target: behind.target, connect: { revisions: [server] } } },
        limits: { rates: false },
        pins: 'off',
      })
      try {
        await gateway.ready()
        const { target, close } = await front(gateway, revision)
        const cell = await openCell(target, revision, { revisions: [revision] })
        await checkBridge({ ...cell, server })
        await cell.client.close()
        await close()
      } finally {
        await gateway.close()
        await behind.close()
      }
    })
  }
}

async function front(gateway: Awaited<ReturnType<typeof createGateway>>, revision: RevisionId) {
  if (usual(revision) === 'http') {
    const { url, close } = await gateway.listen({ closeMs: 1_000 })
    return { target: url, close }
  }
  const [near, far] = memoryPair()
  gateway.server.acceptor.accept(far)
  return { target: near, close: async () => {} }
}
