import { afterAll, beforeAll, expect, test } from 'vitest'
import { oracle } from '../oracle/index.ts'
import { carriersOf, startFixture } from '../transcripts/carriers.ts'
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

for (const revision of everyRevision) {
  for (const carrier of carriersOf[revision]) {
    test(`client ${revision} ⇄ server over ${carrier}`, async () => {
      const { target, close } = await startFixture(carrier)
      try {
        const cell = await openCell(target, revision, { revisions: [revision] })
        await checkAll(cell)
        await cell.client.close()
        await expect(cell.client.callTool('media')).rejects.toThrow()
      } finally {
        await close()
      }
    })
  }
}
