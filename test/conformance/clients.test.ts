/** The kit against clients: our own in this process and as a program, and those of the official SDK as third parties. */
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { playSteps } from '../../examples/everything/steps.ts'
import {
  type ClientFunction,
  type ClientScenario,
  clientScenarios,
  exitCodeOf,
  type JudgeClientOptions,
  judgeClient,
  type Report,
  tableOf,
} from '../../src/conformance/index.ts'
import { expectFits } from '../extension-schemas.ts'
import { playV1, playV2 } from './sdk-drivers.ts'

const ours: ClientFunction = (target, { version, context, signal }) => playSteps(target, version, context, signal)
const everything = { command: [process.execPath, join(import.meta.dirname, '../../dist/examples/everything-client.js')] }

/** What is skipped on purpose: our client tries the newest wire first, but for carriers on which it cannot. */
const SKIPPED = ['client/versions/falls-back']

function ids({ results }: Report, status: string): string[] {
  return [...new Set(results.filter(one => one.status === status).map(one => one.test_id))].sort()
}

async function conforms(report: Promise<Report>): Promise<Report> {
  const judged = await report
  expect(judged.summary, tableOf(judged)).toMatchObject({ failed: 0, error: 0 })
  expect(ids(judged, 'skipped').filter(id => !SKIPPED.includes(id))).toEqual([])
  return judged
}

describe('our client conforms at every revision', () => {
  test.each(['http', 'stdio', 'websocket', 'memory'] as const)('over %s', { timeout: 600_000 }, async carrier => {
    const { results } = await conforms(judgeClient(ours, { carriers: [carrier] }))
    expect(new Set(results.map(({ revision }) => revision)).size).toBe(carrier === 'http' ? 6 : 7)
  })

  test('over the old pair of endpoints', { timeout: 600_000 }, async () => {
    await conforms(judgeClient(ours, { carriers: ['sse'], revisions: ['2024-11-05'] }))
  })
})

describe('the everything client as a program', () => {
  test('conforms over HTTP at both eras', { timeout: 600_000 }, async () => {
    const only = /^client\/(run|lists|asked|versions|rounds|http|auth)|E15-9|E11-3$/
    await conforms(judgeClient(everything, { carriers: ['http'], revisions: ['2025-11-25', '2026-07-28'], only }))
  })

  test('conforms as the parent of a stdio server', { timeout: 600_000 }, async () => {
    await conforms(
      judgeClient(everything, { carriers: ['stdio'], revisions: ['2025-06-18'], only: /^client\/(run|answers|cancel)/ }),
    )
  })
})

/** Each is explained in docs/guide/conformance-clients.md. */
const explained = {
  v1: ['client/answers/batch', 'client/auth/issuer-mismatch', 'client/auth/no-pkce', 'client/http/session-lost'],
  v2: ['client/answers/batch', 'client/auth/no-pkce', 'client/http/session-lost'],
}

// They wait for long where they do not keep it.
describe.concurrent('the clients of the official SDK fail where they do not keep the protocol, and nowhere else', () => {
  const only = /^client\//
  test('1.x', { timeout: 600_000 }, async () => {
    const options: JudgeClientOptions = { carriers: ['http', 'stdio'], revisions: ['2025-03-26', '2025-11-25'], only }
    const report = await judgeClient(playV1, options)
    expect(ids(report, 'failed'), tableOf(report)).toEqual(explained.v1)
    expect(report.summary.error).toBe(0)
    expect(report.summary.passed).toBeGreaterThan(150)
  })

  test('2.x', { timeout: 600_000 }, async () => {
    const options: JudgeClientOptions = { carriers: ['http', 'stdio'], revisions: ['2025-03-26', '2026-07-28'], only }
    const report = await judgeClient(playV2, options)
    expect(ids(report, 'failed'), tableOf(report)).toEqual(explained.v2)
    expect(report.summary.error).toBe(0)
    expect(report.summary.passed).toBeGreaterThan(150)
  })

  test('1.x does not speak 2026-07-28, which is no failure unless somebody asks for it', { timeout: 60_000 }, async () => {
    const [scenario] = clientScenarios
    const scenarios = scenario === undefined ? [] : [scenario]
    const all = await judgeClient(playV1, { carriers: ['http'], scenarios })
    expect(all.results.find(({ revision }) => revision === '2026-07-28')).toMatchObject({ status: 'skipped' })
    const one = await judgeClient(playV1, { carriers: ['http'], scenarios, revisions: ['2026-07-28'] })
    expect(one.results).toMatchObject([{ status: 'failed', test_id: 'cell/2026-07-28/http' }])
  })
})

describe('the report of a client', () => {
  const quick: JudgeClientOptions = { carriers: ['memory'], revisions: ['2025-11-25'], only: /^client\/run/ }

  test('E12-1: has the shape of the proposal, and says who was judged', async () => {
    const report = await judgeClient(ours, { ...quick, now: () => new Date('2026-01-01T00:00:00Z') })
    expectFits(report, 'conformance.schema.json', 'ConformanceReport')
    expect(report).toMatchObject({ server_name: 'vivarium', role: 'client', tested_at: '2026-01-01T00:00:00.000Z' })
    expect(exitCodeOf(report)).toBe(0)
  })

  test('E12-2: what a client does not claim is skipped with the reason', async () => {
    const plain: ClientFunction = (target, { version, context: { steps }, signal }) =>
      playSteps(target, version, { steps }, signal)
    const report = await judgeClient(plain, {
      carriers: ['memory'],
      revisions: ['2025-11-25'],
      only: /^client\/asked\/(form|sample|roots)$/,
    })
    expect(report.results.map(({ status, message }) => [status, message])).toEqual([
      ['skipped', 'the client does not declare elicitation'],
      ['skipped', 'the client does not declare sampling'],
      ['skipped', 'the client does not declare roots'],
    ])
  })

  test('E12-2: what it claims and does not keep has failed, with the frames that show it', async () => {
    const forgetful: ClientFunction = (target, { version, context, signal }) =>
      playSteps(target, version, { ...context, answers: { elicit: { action: 'accept', content: { age: 'old' } } } }, signal)
    const report = await judgeClient(forgetful, {
      carriers: ['memory'],
      revisions: ['2025-11-25'],
      only: /^client\/asked\/form$/,
    })
    expect(report.results).toMatchObject([{ status: 'failed' }])
    expect(report.results[0]?.frames.length).toBeGreaterThan(0)
    expect(exitCodeOf(report)).toBe(1)
  })

  test('E12-2: a fault of the kit is an error and no failure of the client', async () => {
    const [scenario] = clientScenarios
    const broken = { ...scenario, check: () => (undefined as unknown as { no: () => void }).no() } as ClientScenario
    const report = await judgeClient(ours, { ...quick, scenarios: [broken] })
    expect(report.results).toMatchObject([{ status: 'error' }])
  })

  test('E12-4: both eras and both kinds of carrier are judged', async () => {
    const report = await judgeClient(ours, {
      carriers: ['http', 'stdio'],
      revisions: ['2025-11-25', '2026-07-28'],
      only: /E14-1|run\/ids/,
    })
    const cells = new Set(report.results.map(({ revision, carrier }) => `${revision} ${carrier}`))
    expect([...cells].sort()).toEqual(['2025-11-25 http', '2025-11-25 stdio', '2026-07-28 http', '2026-07-28 stdio'])
    expect(report.summary).toMatchObject({ passed: 8, failed: 0 })
  })

  test('a client that hangs is ended and has failed', { timeout: 60_000 }, async () => {
    const hanging: ClientFunction = async (target, told) => {
      await ours(target, told).catch(() => {})
      if (told.scenario === 'unknown-version') await new Promise(resolve => told.signal.addEventListener('abort', resolve))
    }
    const report = await judgeClient(hanging, {
      carriers: ['memory'],
      revisions: ['2025-11-25'],
      only: /^client\/versions\/leaves$/,
    })
    expect(report.results).toMatchObject([{ status: 'failed' }])
  })

  test('a client is judged over HTTP, and over the old pair where a revision has no other', async () => {
    const [scenario] = clientScenarios
    const report = await judgeClient(ours, { scenarios: scenario === undefined ? [] : [scenario] })
    const cells = report.results.map(({ revision, carrier }) => `${carrier} ${revision}`)
    expect(cells.filter(cell => cell.startsWith('sse'))).toEqual(['sse 2024-11-05'])
    expect(cells.filter(cell => cell.startsWith('http')).length).toBe(6)
    expect(cells.filter(cell => cell.startsWith('stdio')).length).toBe(7)
    expect(report.summary).toMatchObject({ failed: 0, skipped: 0 })
  })

  test('a command that cannot be started is said, not thrown', async () => {
    const report = await judgeClient({ command: 'no-such-program-anywhere' }, { carriers: ['http'], revisions: ['2025-11-25'] })
    expect(report.results).toMatchObject([
      { status: 'failed', message: expect.stringContaining('Cannot start "no-such-program-anywhere"') },
    ])
  })
})
