/**
 * E12-4: the reference server shows every statement that a server can show, in both eras and on every carrier. Those that take
 * long are in files beside this one.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Started, startReference } from '../../examples/reference/start.ts'
import { principals } from '../../src/conformance/extensions/permissions.ts'
import { type Carrier, judge, type Places, tableOf } from '../../src/conformance/index.ts'
import { extensionScenarios, liveScenarios } from '../../src/conformance/registry.ts'

const scenarios = [...extensionScenarios, ...liveScenarios]

/** What no server can show there. */
const unseen = [
  ['ext/E15-7', '2026-07-28', 'http'],
  ['ext/E15-8', '2026-07-28', 'http'],
  ['ext/E15-12', '2026-07-28', 'http'],
  // It lets everybody in: two principals are judged in principals.test.ts.
  ...principals.flatMap(({ id, revisions }) => revisions.map(revision => [id, revision, 'http'])),
]

describe('the reference server', () => {
  let started: Started
  beforeAll(async () => {
    started = await startReference()
  })
  afterAll(() => started.server.close())

  const placesFor = (carrier: Carrier): Places => {
    const { server, url } = started
    if (carrier === 'memory') return { memory: server.acceptor }
    return { http: url }
  }

  it.each(['memory', 'http'] as const)(
    'E12-4: passes every scenario of the extensions and of MCP Live on %s',
    { timeout: 600_000 },
    async carrier => {
      const report = await judge(placesFor(carrier), { scenarios, allowWrites: true })
      const table = tableOf(report, { skipped: true })
      expect(report.summary, table).toMatchObject({ failed: 0, error: 0 })
      const skipped = report.results.filter(one => one.status === 'skipped' && scenarios.some(({ id }) => id === one.test_id))
      expect(
        skipped
          .map(one => [one.test_id, one.revision, one.carrier])
          .filter(one => !unseen.some(known => String(known) === String(one))),
      ).toEqual([])
    },
  )
})
