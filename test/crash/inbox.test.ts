import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { Source } from '../fuzz/source.ts'
import { killInbox } from './inbox.ts'

it('events from three senders to a host that is killed have one inference and one turn each, in order', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'vivarium-inbox-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  const source = Source.random(1, 'inbox', 0)
  const report = await killInbox({ folder, events: 600, kills: 2, random: () => source.int(1_000) / 1_000 })
  expect(report.findings).toEqual([])
  expect(report.accepted).toBe(600)
}, 120_000)
