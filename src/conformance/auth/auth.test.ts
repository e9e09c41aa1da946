/** The guard of a server, judged with tokens of every kind that the kit's own authorization server gives. */

import { once } from 'node:events'
import { createServer as createHttpServer } from 'node:http'
import { describe, expect, onTestFinished, test } from 'vitest'
import { createServer, oauth } from '../../server/index.ts'
import { judge } from '../judge.ts'
import type { Report } from '../report.ts'
import { authScenarios } from './index.ts'
import { type Issuer, startIssuer } from './issuer.ts'

async function issuer(): Promise<Issuer> {
  const started = await startIssuer()
  onTestFinished(() => started.close())
  return started
}

/** Our own server, guarded as an author would. */
async function ours({ url: issuerUrl }: Issuer): Promise<string> {
  const server = createServer({ name: 'guarded', version: '1.0.0', log: 'silent' })
  server.tool('hello', { annotations: { readOnlyHint: true } }, () => 'hello')
  const { url } = await server.listen({ port: 0, auth: oauth({ issuer: issuerUrl, scopes: ['mcp'] }) })
  onTestFinished(() => server.close())
  return String(url)
}

/** A guard that makes one mistake in front of nothing at all. */
async function careless(lets: (authorization: string, query: string) => boolean): Promise<string> {
  const server = createHttpServer((request, response) => {
    const [, query = ''] = (request.url ?? '').split('?')
    request.resume().on('end', () => {
      if (lets(request.headers.authorization ?? '', query))
        return response.writeHead(200, { 'content-type': 'application/json' }).end('{"jsonrpc":"2.0","id":1,"result":{}}')
      return response.writeHead(401, { 'www-authenticate': 'Bearer' }).end()
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  return `http://127.0.0.1:${(server.address() as { port: number }).port}/mcp`
}

const by = ({ results }: Report, status: string): string[] => [
  ...new Set(results.filter(one => one.status === status).map(one => one.test_id)),
]
const scenarios = authScenarios
const revisions = ['2025-11-25'] as const

function claimsOf(authorization: string): Record<string, unknown> {
  const [, body = ''] = authorization.split('.')
  return body === '' ? {} : (JSON.parse(Buffer.from(body, 'base64url').toString()) as Record<string, unknown>)
}

describe('a server guarded by oauth()', () => {
  test('passes everything, at each revision that has resource servers', async () => {
    const authority = await issuer()
    const url = await ours(authority)
    const auth = authority.trial({ resource: url, scopes: ['mcp'] })
    const report = await judge(url, { auth, scenarios, revisions: ['2025-06-18', '2025-11-25', '2026-07-28'] })
    expect(by(report, 'failed'), JSON.stringify(report.results.filter(one => one.status === 'failed'))).toEqual([])
    expect(by(report, 'error')).toEqual([])
    expect(by(report, 'passed').sort()).toEqual(authScenarios.map(({ id }) => id).sort())
    expect(report.summary.skipped).toBe(1)
  })

  test('is judged by what it shows to strangers where the kit has no tokens', async () => {
    const url = await ours(await issuer())
    const report = await judge(url, { scenarios, revisions })
    expect(by(report, 'passed')).toEqual(
      expect.arrayContaining(['auth/challenge', 'auth/metadata', 'auth/garbage', 'auth/streams']),
    )
    expect(by(report, 'skipped')).toContain('auth/expired')
    expect(by(report, 'failed')).toEqual([])
  })
})

describe('a guard that', () => {
  const faults: readonly (readonly [
    says: string,
    caught: string,
    lets: (claims: Record<string, unknown>, authorization: string, query: string) => boolean,
  ])[] = [
    ['does not look at the audience', 'auth/audience', () => true],
    ['does not look at the time', 'auth/expired', ({ aud, iss }) => aud !== undefined && iss !== undefined],
    ['takes unsigned tokens', 'auth/unsigned', () => true],
    ['takes tokens from the query', 'auth/query', () => true],
    ['wants no scope', 'auth/scope', () => true],
  ]
  test.each(faults)('%s is caught', async (_, caught, lets) => {
    const authority = await issuer()
    const url = await careless((authorization, query) => {
      const said = authorization === '' ? query : authorization
      return said.includes('.') && lets(claimsOf(said), said, query)
    })
    const auth = authority.trial({ resource: url, scopes: ['mcp'] })
    const [scenario] = authScenarios.filter(({ id }) => id === caught)
    // It answers nothing that a survey could read: only the guard is looked at.
    const report = await judge(url, {
      auth,
      headers: { authorization: 'Bearer none' },
      scenarios: scenario === undefined ? [] : [scenario],
      revisions,
    })
    expect(by(report, 'failed'), JSON.stringify(report.results)).toEqual([caught])
  })
})
