/** The kit against our host of MCP Live. */
import { expect, test } from 'vitest'
import { judgeHost, tableOf } from '../../src/conformance/index.ts'
import { playHost } from './host-driver.ts'

/** Where only clients ask, a server cannot ask unasked. */
const SKIPPED = ['live/host/L10.7-2', 'live/host/L3.3-2']

test.each(['http', 'stdio'] as const)('our host conforms over %s, at both eras', { timeout: 180_000 }, async carrier => {
  const report = await judgeHost(playHost, { carriers: [carrier], revisions: ['2025-11-25', '2026-07-28'] })
  expect(report.summary, tableOf(report)).toMatchObject({ failed: 0, error: 0 })
  const skipped = report.results.filter(({ status }) => status === 'skipped')
  expect(skipped.map(({ test_id }) => test_id).sort()).toEqual(SKIPPED)
  expect(skipped.every(({ revision }) => revision === '2026-07-28')).toBe(true)
  expect(report.role).toBe('host')
})

test('a client that is no host is skipped, and left alone', async () => {
  const report = await judgeHost(
    async (target, { version, signal }) => {
      const { connect } = await import('../../src/client/connect.ts')
      await using mcp = await connect(target, { revisions: [version as never], signal })
      for await (const _ of mcp.tools());
    },
    { carriers: ['http'], revisions: ['2025-11-25'], only: /L3\.1-1|L9\.2-1/ },
  )
  expect(report.results.map(({ status, message }) => [status, message])).toEqual([
    ['skipped', 'the host does not announce MCP Live'],
    ['skipped', 'the host does not announce MCP Live'],
  ])
})
