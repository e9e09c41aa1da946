import { afterAll, beforeAll, expect, test } from 'vitest'
import { oracle } from '../oracle/index.ts'
import { carriersOf, fetchFixture, startFixture } from '../transcripts/carriers.ts'
import { everyRevision } from '../transcripts/fixture.ts'
import { openCell } from './cell.ts'
import { checkAll } from './sentences.ts'

// Both ends are ours, also the one in another process: what it says is judged as well.
beforeAll(() => {
  if (oracle !== undefined) oracle.trustPeers = true
})
afterAll(() => {
  if (oracle !== undefined) oracle.trustPeers = false
})

const faces = everyRevision.flatMap(revision => [
  ...carriersOf[revision].map(carrier => ({ revision, face: carrier, start: () => startFixture(carrier) })),
  ...(carriersOf[revision].includes('http') ? [{ revision, face: 'fetch', start: async () => fetchFixture() }] : []),
])

for (const { revision, face, start } of faces) {
  test(`client ${revision} ⇄ server over ${face}`, async () => {
    const { target, options, close } = await start()
    try {
      const cell = await openCell(target, revision, { ...options, revisions: [revision] })
      await checkAll(cell)
      await cell.client.close()
      await expect(cell.client.callTool('media')).rejects.toThrow()
    } finally {
      await close()
    }
  })
}
