import { globSync, readFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { describe, test } from 'vitest'
import type { RevisionId } from '../../src/server/index.ts'
import { parseTranscript, playTranscript, type Transcript, tapConnection } from '../../src/testing/index.ts'
import { createLively } from '../live/fixture.ts'
import { expectLog } from '../log-lines/lines.ts'
import { oracle } from '../oracle/index.ts'
import { type CarrierName, carriersOf, openConnection, startFixture } from './carriers.ts'
import { createFixture } from './fixture.ts'
import { createTrusted } from './fixture-trusted.ts'
import { travelWith } from './travel.ts'

expectLog('tool-failed', /The fish is gone/)
// Of a token of another server.
expectLog('state-not-opened')

/** Those about what the other fixture has. */
const trusted = new Set([
  'transactions',
  'confirmation',
  'confirmation-token',
  'permissions',
  'state',
  'cost',
  'intent',
  'streaming',
])

for (const file of globSync('*/*.txt', { cwd: import.meta.dirname }).sort()) {
  const revision = dirname(file) as RevisionId
  const transcript = parseTranscript(readFileSync(join(import.meta.dirname, file), 'utf8'))
  const carriers = carriersOf[revision].filter(carrier => transcript.carriers?.includes(carrier) ?? true)
  describe(`${revision} ${basename(file, '.txt')}`, () => {
    const name = basename(file, '.txt')
    const create = trusted.has(name) ? createTrusted : name.startsWith('live-') ? createLively : createFixture
    test.for(carriers)('over %s', carrier => play(transcript, revision, carrier, create))
  })
}

async function play(
  transcript: Transcript,
  revision: RevisionId,
  carrier: CarrierName,
  create: typeof createFixture,
): Promise<void> {
  const { target, server, close } = await startFixture(carrier, undefined, create)
  try {
    const link = oracle?.link()
    const bare = await openConnection(carrier, target)
    const connection =
      oracle === undefined || link === undefined
        ? bare
        : tapConnection(bare, ({ way, text }) => way === 'in' && oracle?.note('server', text, link))
    const travel = travelWith(revision, bare, server)
    await playTranscript(transcript, connection, {
      outgoing: (frame, { wrong }) => {
        if (link !== undefined && wrong) link.see('client', JSON.stringify(frame))
        else if (link !== undefined) oracle?.note('client', JSON.stringify(frame), link)
        return travel.outgoing(frame)
      },
      onSaid: travel.said,
      // A busy machine is slow, not wrong.
      timeoutMs: 20_000,
    })
  } finally {
    await close()
  }
}
