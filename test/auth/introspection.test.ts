import { afterEach, describe, expect, it } from 'vitest'
import { createServer, oauth } from '../../src/server/index.ts'
import { httpPeer, json, send } from '../spec/http.ts'
import { realIssuer } from './real-issuer.ts'

const closers: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close()
})

async function protectedBy(claims?: object) {
  const issuer = await realIssuer('opaque', claims)
  const server = createServer({ name: 'tickets', version: '1.0.0' })
  server.tool('who', {}, (_, { principal }) => `${principal?.subject} by ${principal?.client} with ${principal?.scopes}`)
  const introspection = { clientId: 'tickets', clientSecret: 'tickets-secret' }
  const { url } = await server.listen({ auth: oauth({ issuer: issuer.url, introspection, scopes: ['tickets:read'] }) })
  closers.push(issuer.close, () => server.close())
  return { url, authorization: `Bearer ${await issuer.token(url, 'tickets:read')}`, issuer }
}

describe('opaque tokens of a real authorization server', () => {
  it('are good if the server says so when it is asked', async () => {
    const { url, authorization } = await protectedBy({ sub: 'robby' })
    const peer = await httpPeer(url, '2026-07-28', {}, { authorization })
    expect((await peer.ask('tools/call', { name: 'who' })).frame).toMatchObject({
      result: { content: [{ text: 'robby by robot with tickets:read' }] },
    })
  })

  it('are refused if it never gave them, or gave them for another server', async () => {
    const { url, issuer } = await protectedBy({ sub: 'robby' })
    const other = await issuer.token('https://other.example.com/mcp', 'tickets:read')
    for (const token of ['invented', other]) {
      const answer = await send(url, { headers: { ...json, authorization: `Bearer ${token}` }, body: {} })
      expect(answer.status).toBe(401)
    }
  })

  it('are refused if they name no subject, as those of a program by itself do there', async () => {
    const { url, authorization } = await protectedBy()
    const answer = await send(url, { headers: { ...json, authorization }, body: {} })
    expect([answer.status, answer.text]).toEqual([401, expect.stringContaining('has no subject')])
  })
})
