import { globSync, readFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { describe, test } from 'vitest'
import type { RevisionId } from '../../src/server/index.ts'
import { memoryPair, parseTranscript, playTranscript, tapConnection } from '../../src/testing/index.ts'
import { oracle } from '../oracle/index.ts'
import { openConnection } from './carriers.ts'
import { createDescribed, createGiving } from './fixture-described.ts'
import { createSourced } from './fixture-sourced.ts'
import { travelWith } from './travel.ts'

const sourced = new Set(['media', 'provenance'])

for (const file of globSync('*/described/*.txt', { cwd: import.meta.dirname }).sort()) {
  const revision = dirname(dirname(file)) as RevisionId
  const transcript = parseTranscript(readFileSync(join(import.meta.dirname, file), 'utf8'))
  describe(`${revision} ${basename(file, '.txt')}`, () => {
    test.for(['memory', 'http', 'websocket'] as const)('over %s', async carrier => {
      const server = serverOf(basename(file, '.txt'))
      try {
        const bare = await openConnection(carrier, await reach(server, carrier))
        const link = oracle?.link()
        const connection =
          link === undefined ? bare : tapConnection(bare, ({ way, text }) => way === 'in' && oracle?.note('server', text, link))
        const travel = travelWith(revision, bare, server)
        await playTranscript(transcript, connection, {
          outgoing: frame => {
            if (link !== undefined) oracle?.note('client', JSON.stringify(frame), link)
            return travel.outgoing(frame)
          },
          onSaid: travel.said,
        })
      } finally {
        await server.close()
      }
    })
  })
}

function serverOf(name: string) {
  if (name === 'references') return createGiving()
  return sourced.has(name) ? createSourced() : createDescribed()
}

async function reach(server: ReturnType<typeof createDescribed>, carrier: 'memory' | 'http' | 'websocket') {
  if (carrier === 'memory') {
    const [near, far] = memoryPair()
    server.acceptor.accept(far)
    return near
  }
  const { url, port } = await server.listen({ wsPath: '/ws', closeMs: 1_000 })
  return carrier === 'http' ? url : `ws://127.0.0.1:${port}/ws`
}
