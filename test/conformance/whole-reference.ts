/** What the tests of the reference server share that are files of their own, so that they run side by side. */
import { expect } from 'vitest'
import { judge, type Places, tableOf } from '../../src/conformance/index.ts'
import { extensionScenarios, liveScenarios } from '../../src/conformance/registry.ts'

/** Long enough for the busiest machine. */
export const patience = { timeout: 600_000 }

/** Every scenario of the extensions and of MCP Live passes there, and none is skipped. */
export async function expectWhole(places: Places): Promise<void> {
  const scenarios = [...extensionScenarios, ...liveScenarios]
  const report = await judge(places, { scenarios, allowWrites: true })
  expect(report.summary, tableOf(report, { skipped: true })).toMatchObject({ failed: 0, error: 0 })
  const skipped = report.results.filter(one => one.status === 'skipped' && scenarios.some(({ id }) => id === one.test_id))
  expect(skipped.map(one => [one.test_id, one.revision, one.carrier])).toEqual([])
}
