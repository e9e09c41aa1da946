import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { openCalendar } from '../../examples/calendar/calendar.ts'
import { openFiles } from '../../examples/files/files.ts'
import { openMemory } from '../../examples/memory/memory.ts'
import { createNotes } from '../../examples/notes/notes.ts'
import { createRedactor } from '../../examples/redactor/redactor.ts'
import { openWebhooks } from '../../examples/webhook/webhook.ts'
import { judge, tableOf } from '../../src/conformance/index.ts'
import type { Server } from '../../src/server/index.ts'
import { temporaryFolder } from '../examples/live-host.ts'

interface Opened extends AsyncDisposable {
  readonly server: Server
}

function kept(opened: Opened): Server {
  onTestFinished(async () => opened[Symbol.asyncDispose]())
  return opened.server
}

function closed(server: Server): Server {
  onTestFinished(() => server.close())
  return server
}

const servers: readonly (readonly [string, () => Promise<Server> | Server])[] = [
  ['notes', () => closed(createNotes())],
  ['redactor', () => closed(createRedactor())],
  ['calendar', () => kept(openCalendar({ file: join(temporaryFolder(), 'calendar.db') }))],
  ['memory', () => kept(openMemory({ file: join(temporaryFolder(), 'memory.db') }))],
  ['files', async () => kept(await openFiles({ journal: join(temporaryFolder(), 'files.db'), folders: [temporaryFolder()] }))],
  ['webhook', async () => kept(await openWebhooks({ file: join(temporaryFolder(), 'webhook.db'), port: 0, secrets: {} }))],
]

describe('the reference servers conform at every revision they speak', () => {
  test.each(servers)('%s', { timeout: 60_000 }, async (_, open) => {
    const report = await judge(await open(), { parallel: 4 })
    expect(report.summary, tableOf(report)).toMatchObject({ failed: 0, error: 0 })
    expect(report.summary.passed).toBeGreaterThan(200)
  })
})
