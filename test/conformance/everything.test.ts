import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createEverything } from '../../examples/everything/everything.ts'
import { allRevisions, judge, type Places, type Report, scenarios, tableOf } from '../../src/conformance/index.ts'
import { compiledOnce } from '../compiled-once.ts'
import { oracle } from '../oracle/index.ts'
import type { Link } from '../oracle/link.ts'

/** `npm test` builds it. */
const program = join(import.meta.dirname, '../../dist/examples/everything-server.js')

/** Scenarios that say nothing wrong on purpose. */
const polite =
  /^base\/(tools\/(list|call)|resources\/(list|read)|prompts\/(list|get)|progress|elicitation|sampling|rounds\/(eli|sam|list|several|one))/

/** Nothing failed, nothing was our own fault, and every cell was really judged. */
function expectConforming(report: Report): void {
  expect(report.summary, tableOf(report)).toMatchObject({ failed: 0, error: 0 })
  expect(report.results.filter(({ test_id }) => test_id.startsWith('cell/'))).toEqual([])
}

describe('the everything server', () => {
  const server = createEverything({ log: 'silent' })
  let places: Places
  beforeAll(async () => {
    const { url } = await server.listen({ ssePath: '/sse', wsPath: '/ws' })
    const ws = new URL('/ws', String(url).replace('http', 'ws'))
    places = { memory: server.acceptor, http: url, sse: new URL('/sse', url), websocket: ws }
  })
  afterAll(() => server.close())

  for (const carrier of ['memory', 'http', 'sse', 'websocket'] as const) {
    it(`E12-4: conforms at every revision over ${carrier}`, { timeout: 600_000 }, async () => {
      const report = await judge(places, { carriers: [carrier], parallel: 7 })
      expectConforming(report)
      expect(report.summary.passed).toBeGreaterThan(400)
    })
  }

  it.runIf(existsSync(program))('E12-4: conforms at every revision over stdio', { timeout: 600_000 }, async () => {
    const stdio = { command: process.execPath, args: [program, '--stdio'], env: { ...compiledOnce, VIVARIUM_LOG: 'silent' } }
    const report = await judge({ stdio }, { only: /^base\//, parallel: 4 })
    expectConforming(report)
    expect(new Set(report.results.map(({ revision }) => revision))).toEqual(new Set(allRevisions))
  })

  it.skipIf(oracle === undefined)(
    'E12-7: what the kit itself sends is valid against the official schemas',
    async () => {
      if (oracle === undefined) return
      const { link, note } = oracle
      const links = new Map<object, Link>()
      const report = await judge(places, {
        carriers: ['memory', 'http'],
        scenarios: scenarios.filter(({ id }) => polite.test(id) && !/(cursor|invalid|unknown|missing|without)/.test(id)),
        onFrame(frame, { connection }) {
          const own = links.get(connection) ?? link()
          links.set(connection, own)
          // What the server says passes by the oracle as well: it hangs on every engine of this process.
          if (frame.way === 'out') note('client', frame.text, own)
          else own.see('server', frame.text)
        },
      })
      expectConforming(report)
      expect(links.size).toBeGreaterThan(100)
      expect(oracle.take()).toEqual([])
    },
    600_000,
  )
})
