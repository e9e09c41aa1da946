import { describe, expect, it } from 'vitest'
import { expectFits } from '../../test/extension-schemas.ts'
import { stateless, table } from './define.ts'
import { badgeOf, conforms, exitCodeOf, faultOf, type Report, type Result, readReport, suiteOf, summaryOf } from './report.ts'
import { junitOf, tableOf } from './table.ts'

function result(status: Result['status'], more: Partial<Result> = {}): Result {
  return {
    test_id: 'base/tools/unknown',
    status,
    message: status === 'passed' ? '' : 'it must be refused',
    duration_ms: 3,
    title: 'a tool that does not exist is refused',
    revision: '2025-11-25',
    carrier: 'http',
    proves: ['MCP server/tools#error-handling'],
    frames: [],
    ...more,
  }
}

function reportOf(...results: readonly Result[]): Report {
  return {
    server_name: 'fixture <&"',
    server_version: '1.0.0',
    suite_version: '1.0.0',
    tested_at: '2026-01-01T00:00:00.000Z',
    role: 'server',
    results,
    summary: summaryOf(results),
  }
}

const failed = result('failed', {
  frames: [
    { way: 'out', at: 1, text: '{"method":"tools/call"}' },
    { way: 'in', at: 2, text: '{"result":{}}', status: 200 },
  ],
})

describe('a report', () => {
  it("E12-1: is valid against the proposal's schema, as a report and as a suite", () => {
    const report = reportOf(result('passed'), failed, result('skipped'), result('error'))
    expectFits(report, 'conformance.schema.json')
    expectFits(report, 'conformance.schema.json', 'ConformanceReport')
    const one = table('ext/', { revisions: stateless })('E5-3', 'A sentence').by(async () => {})
    expect(suiteOf([one])).toMatchObject({ tests: [{ test_id: 'ext/E5-3', proposal_ref: 'proposal-5' }] })
    expectFits(suiteOf([one]), 'conformance.schema.json')
  })

  it('E12-8: exit code and badge follow the summary', () => {
    const rows: readonly (readonly [readonly Result[], 0 | 1 | 3, string, string])[] = [
      [[result('passed'), result('skipped')], 0, '1/1', 'brightgreen'],
      [[result('passed'), failed], 1, '1/2', 'red'],
      [[...Array.from({ length: 19 }, () => result('passed')), failed], 1, '19/20', 'yellow'],
      [[result('passed'), result('error')], 1, '1/2', 'red'],
      [[result('skipped')], 1, 'nothing tested', 'red'],
      [[result('passed'), result('skipped', { fault: 'guarded' })], 3, 'credentials needed', 'lightgrey'],
      [[failed, result('skipped', { fault: 'guarded' })], 1, '0/1', 'red'],
    ]
    for (const [results, exit, message, color] of rows) {
      const report = reportOf(...results)
      expect(exitCodeOf(report)).toBe(exit)
      expect(badgeOf(report)).toEqual({ schemaVersion: 1, label: 'MCP conformance', message, color, isError: exit !== 0 })
      expect(conforms(report)).toBe(exit === 0)
    }
  })

  it('is read back as it was written, and anything else is refused', () => {
    const report = reportOf(failed)
    expect(readReport(JSON.stringify(report))).toEqual(report)
    expect(() => readReport('{"results":[]}')).toThrow('not a conformance report')
  })

  it('says why nothing at all could be judged', () => {
    const gone = result('error', { fault: 'unreachable' })
    const unspoken = result('skipped', { fault: 'unspoken' })
    expect(faultOf(reportOf(unspoken, gone))).toBe(gone)
    expect(faultOf(reportOf(gone, result('passed')))).toBeUndefined()
    expect(faultOf(reportOf(unspoken))).toBeUndefined()
    const guarded = result('skipped', { fault: 'guarded' })
    expect(faultOf(reportOf(result('passed', { test_id: 'auth/challenge' }), guarded))).toBe(guarded)
  })
})

describe('the table', () => {
  it('cites the statement of a failure and shows its frames', () => {
    const text = tableOf(reportOf(failed, result('passed')))
    expect(text).toContain('FAILED  base/tools/unknown')
    const clause = 'https://modelcontextprotocol.io/specification/2025-11-25/server/tools#error-handling'
    expect(text).toContain(`Spec:  MCP server/tools#error-handling  ${clause}`)
    expect(text).toContain("Again: --only '^base/tools/unknown$' --revision 2025-11-25 --carrier http")
    expect(text).toContain('→ {"method":"tools/call"}')
    expect(text).toContain('← [200] {"result":{}}')
    expect(text).toContain('1 passed, 1 failed, 0 skipped, 0 errors\n')
  })

  it('shows a cell in which nothing was tried only to who asks for what was skipped', () => {
    const report = reportOf(result('passed'), result('skipped', { carrier: 'stdio' }))
    expect(tableOf(report)).not.toMatch(/stdio/)
    expect(tableOf(report)).toContain('1 skipped')
    expect(tableOf(report, { skipped: true })).toMatch(/stdio +0 +0 +1 +0/)
  })

  it('tells once what is the same in several cells', () => {
    const text = tableOf(reportOf(failed, { ...failed, revision: '2025-06-18' }, { ...failed, carrier: 'stdio' }))
    expect(text.match(/FAILED/g)).toHaveLength(1)
    expect(text).toContain('http: 2025-11-25, 2025-06-18; stdio: 2025-11-25')
  })

  it('keeps control characters of a server from the terminal, and clips long frames', () => {
    const text = tableOf(
      reportOf({ ...failed, message: 'red \u001b[31m', frames: [{ way: 'in', at: 0, text: 'x'.repeat(900) }] }),
    )
    expect(text).not.toContain('\u001b')
    expect(Math.max(...text.split('\n').map(line => line.length))).toBeLessThan(330)
  })
})

describe('JUnit XML', () => {
  it('has one suite per revision and carrier, with failures, errors and what was skipped', () => {
    const xml = junitOf(reportOf(failed, result('error', { carrier: 'stdio' }), result('skipped'), result('passed')))
    expect(xml).toContain('<testsuites name="fixture &lt;&amp;&quot;" tests="4" failures="1" errors="1" skipped="1">')
    expect(xml.match(/<testsuite /g)).toHaveLength(2)
    expect(xml).toContain('<failure message="it must be refused">Statements: MCP server/tools#error-handling')
    expect(xml).toContain('<skipped message="it must be refused"/>')
  })

  it('holds no character that XML does not have', () => {
    const xml = junitOf(reportOf({ ...failed, message: 'a\u0000b\u001bc\ud800d' }))
    expect(xml).toContain('message="abcd"')
  })
})
