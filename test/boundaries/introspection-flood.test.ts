/** Invented tokens keep nobody out: an issuer is asked about them in small numbers, and those who have good tokens do not wait behind them. */
import { createServer as createHttpServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, expect, it, onTestFinished } from 'vitest'
import { VerifiedTokenCache } from '../../src/auth/resource/verifier.ts'
import { createServer, oauth } from '../../src/server/index.ts'
import { fakeClock } from '../../src/testing/index.ts'
import { json, send } from '../spec/http.ts'

const resource = 'https://api.example.com/mcp'

/** An issuer that knows tokens which begin with `good`, and takes its time over those that begin with `slow`. */
async function issuerOf() {
  const asked: string[] = []
  const held = new Set<ServerResponse>()
  const say = (response: ServerResponse, said: object): void => {
    response.setHeader('content-type', 'application/json')
    response.end(JSON.stringify(said))
  }
  const http = createHttpServer(async (request, response) => {
    const token = new URLSearchParams(Buffer.concat(await request.toArray()).toString()).get('token') ?? ''
    asked.push(token)
    if (token.startsWith('slow')) held.add(response)
    else say(response, token.startsWith('good') ? { active: true, sub: token, aud: resource } : { active: false })
  })
  await new Promise<void>(resolve => http.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    http.closeAllConnections()
    http.close()
  })
  const release = (): void => {
    for (const response of held) say(response, { active: false })
    held.clear()
  }
  return { url: `http://127.0.0.1:${(http.address() as AddressInfo).port}`, asked, held, release }
}

async function flooded() {
  const issuer = await issuerOf()
  const clock = fakeClock(Date.now())
  const server = createServer({ name: 'tickets', version: '1.0.0', log: 'silent', clock })
  onTestFinished(() => server.close())
  const introspection = { clientId: 'rs', clientSecret: 'secret', endpoint: `${issuer.url}/introspect` }
  const auth = oauth({ issuer: issuer.url, resource, introspection })
  const { port } = await server.listen({ auth })
  const face = server.fetchWith({ auth })
  const asking = (token: string) => ({ headers: { ...json, authorization: `Bearer ${token}` }, body: '{}' })
  /** Good tokens get past the door: what they bring is no message. */
  const status = async (token: string, remote = '192.0.2.1'): Promise<number> =>
    (await face(new Request(resource, { method: 'POST', ...asking(token) }), { remote })).status
  /** The same over a socket. */
  const sent = async (token: string): Promise<number> => (await send(`http://127.0.0.1:${port}/mcp`, asking(token))).status
  const flood = (count: number, by = status, told: (status: number) => void = () => {}): Promise<number[]> =>
    Promise.all(
      Array.from({ length: count }, async (_, i) => {
        const answer = await by(`slow-${i}`)
        told(answer)
        return answer
      }),
    )
  return { issuer, clock, status, sent, flood }
}

describe('a flood of invented tokens', () => {
  it('keeps out neither tokens that were good before nor new ones from elsewhere', async () => {
    const { issuer, clock, status, flood } = await flooded()
    expect(await status('good-old')).toBe(400)
    const answers = flood(200)
    await expect.poll(() => issuer.held.size).toBeGreaterThan(0)
    expect(await status('good-old')).toBe(400)
    // Longer than it counts as good without another question.
    clock.advance(40_000)
    expect([await status('good-old'), await status('good-new', '192.0.2.2')]).toEqual([400, 400])
    issuer.release()
    await expect
      .poll(() => {
        issuer.release()
        return issuer.asked.length
      })
      .toBeGreaterThan(60)
    const stop = setInterval(issuer.release, 5)
    onTestFinished(() => clearInterval(stop))
    expect(new Set(await answers)).toEqual(new Set([401, 503]))
  })

  it('is asked about a few at a time, and what waits is bounded', async () => {
    const { issuer, sent, flood } = await flooded()
    let answered = 0
    const counts = new Map<number, number>()
    const answers = flood(150, sent, status => {
      answered++
      counts.set(status, (counts.get(status) ?? 0) + 1)
    })
    // Sixteen are asked about and sixty-four wait: the others are told to come back.
    await expect.poll(() => answered).toBe(70)
    expect([issuer.held.size, issuer.asked.length, counts.get(503)]).toEqual([16, 16, 70])
    const stop = setInterval(issuer.release, 5)
    onTestFinished(() => clearInterval(stop))
    await answers
    expect(counts.get(401)).toBe(80)
  })

  it('does not keep out a new good token from the same address for longer than those before it take', async () => {
    const { issuer, status, flood } = await flooded()
    const answers = flood(40)
    await expect.poll(() => issuer.held.size).toBe(16)
    const good = status('good-new')
    const stop = setInterval(issuer.release, 5)
    onTestFinished(() => clearInterval(stop))
    expect(await good).toBe(400)
    await answers
  })
})

describe('a token that the issuer does not know', () => {
  it('is asked about once, however often it comes in a short while', async () => {
    const { issuer, clock, status } = await flooded()
    for (let i = 0; i < 5; i++) expect(await status('invented')).toBe(401)
    expect(issuer.asked).toEqual(['invented'])
    clock.advance(15_000)
    expect([await status('invented'), issuer.asked.length]).toEqual([401, 2])
  })

  it('is remembered among so many others at most', () => {
    const clock = fakeClock(0)
    const remembered = new VerifiedTokenCache<true>(clock, 100)
    for (let i = 0; i < 1_000; i++) remembered.add(`token ${i}`, true, 1_000)
    expect(Array.from({ length: 1_000 }, (_, i) => remembered.get(`token ${i}`)).filter(Boolean)).toHaveLength(100)
  })
})
