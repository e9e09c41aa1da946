/** C8: a server that tells its callers apart keeps what is theirs apart, and the kit sees when it does not. */
import { once } from 'node:events'
import { createServer as createHttp } from 'node:http'
import { describe, expect, it, onTestFinished } from 'vitest'
import { createReference } from '../../examples/reference/reference.ts'
import { principals } from '../../src/conformance/extensions/permissions.ts'
import { judge, type Report, startIssuer, tableOf } from '../../src/conformance/index.ts'
import { oauth } from '../../src/server/index.ts'
import { nodeHandler } from '../../src/server/node-handler.ts'

/** Judges the reference server behind a guard; `everybody`: whoever comes with a token is taken for the same. */
async function judged(everybody: boolean): Promise<Report> {
  const issuer = await startIssuer()
  const server = createReference()
  const http = createHttp((request, response) => {
    if (everybody && request.headers.authorization !== undefined) request.headers.authorization = `Bearer ${same}`
    handle(request, response)
  })
  onTestFinished(async () => {
    http.closeAllConnections()
    http.close()
    await server.close()
    await issuer.close()
  })
  http.listen(0, '127.0.0.1')
  await once(http, 'listening')
  const url = `http://127.0.0.1:${(http.address() as { port: number }).port}/mcp`
  const handle = nodeHandler(server, { auth: oauth({ issuer: issuer.url, resource: url }) })
  const auth = issuer.trial({ resource: url, scopes: ['tickets:read', 'tickets:write', 'tickets:admin'] })
  const same = await auth.token({ subject: 'everybody' })
  return judge(url, { auth, scenarios: principals, allowWrites: true, revisions: ['2025-11-25', '2026-07-28'] })
}

describe('two principals of the reference server', () => {
  it('E4-7, E5-1, E6-3, E8-7, E14-3: what one was given is nothing to the other', { timeout: 60_000 }, async () => {
    const report = await judged(false)
    expect(report.summary, tableOf(report, { skipped: true })).toEqual({
      passed: 2 * principals.length,
      failed: 0,
      skipped: 0,
      error: 0,
    })
  })

  it('E12-6: a server that takes all for the same is caught by each of these scenarios', { timeout: 60_000 }, async () => {
    const report = await judged(true)
    const seen = new Map(report.results.map(({ test_id, status }) => [test_id, status]))
    expect(
      [...seen].filter(([, status]) => status !== 'failed'),
      tableOf(report),
    ).toEqual([])
  })
})
