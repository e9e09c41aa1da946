import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { type TestIssuer, testIssuer } from '../../../../test/auth/issuer.ts'
import { type HttpPeer, httpPeer } from '../../../../test/spec/http.ts'
import { everyRevision, type Frame, official, speak } from '../../../../test/spec/wire.ts'
import type { RevisionId } from '../../../revisions/index.ts'
import { createServer, oauth, type Server } from '../../../server/index.ts'

let issuer: TestIssuer
let ran: string[] = []
const servers: Server[] = []

beforeAll(async () => {
  issuer = await testIssuer()
})
afterAll(() => issuer.close())
afterEach(async () => {
  ran = []
  for (const server of servers.splice(0)) await server.close()
})

function tickets(): Server {
  const server = createServer({ name: 'tickets', version: '1.0.0', revisions: everyRevision, sessions: true })
  const scopes = ['write:tickets']
  const run = (what: string) => () => {
    ran.push(what)
    return what
  }
  server.tool('read', {}, run('read'))
  server.tool('write', { scopes }, run('write'))
  server.tool('slow_write', { scopes, task: 'optional' }, run('slow_write'))
  server.prompt('draft', { scopes, arguments: { id: { complete: () => run('complete')().split('') } } }, run('draft'))
  server.resource('note://open', { name: 'open' }, run('note://open'))
  server.resource('note://1', { name: 'note', scopes }, run('note://1'))
  server.resource('secret://{id}', { name: 'secret', scopes, complete: { id: () => [run('complete')()] } }, run('secret'))
  servers.push(server)
  return server
}

async function peer(revision: RevisionId, scope: string, capabilities: Frame = {}): Promise<HttpPeer> {
  const { url } = await tickets().listen({ auth: oauth({ issuer: issuer.url, scopes: ['tickets'] }) })
  return httpPeer(url, revision, capabilities, { authorization: `Bearer ${issuer.token(url, { scope })}` })
}

const call = (name: string) => ({ name, arguments: {} })

describe('a tool with scopes over HTTP', () => {
  it.each(everyRevision)(
    '%s: a token without them gets a 403 that names all it should have, and the tool does not run',
    async revision => {
      const ada = await peer(revision, 'tickets')
      const method = revision === 's3' ? 'tools/invoke' : 'tools/call'
      const answer = await ada.ask(method, revision === 's3' ? { tool: 'write', name: 'write', arguments: {} } : call('write'))
      expect(answer.status).toBe(403)
      expect(answer.headers['www-authenticate']).toMatch(
        /^Bearer error="insufficient_scope", error_description="[^"]+", resource_metadata="[^"]+\/mcp", scope="tickets write:tickets"$/,
      )
      expect(answer.frame).toMatchObject({ error: { code: -32600, data: { scopes: ['write:tickets'] } } })
      expect(ran).toEqual([])
    },
  )

  it.each(official)('%s: a token with them calls it, and any token calls the others', async revision => {
    const ada = await peer(revision, 'tickets write:tickets')
    expect((await ada.ask('tools/call', call('write'))).frame['result']).toBeDefined()
    const bob = await peer(revision, 'tickets')
    expect((await bob.ask('tools/call', call('read'))).frame['result']).toBeDefined()
    expect(ran).toEqual(['write', 'read'])
  })

  it('is listed for everybody: how else would a client know what it could ask for', async () => {
    const ada = await peer('2026-07-28', 'tickets')
    expect((await ada.ask('tools/list')).text).toContain('"write"')
  })

  it('keeps to them as a task', async () => {
    const ada = await peer('2025-11-25', 'tickets')
    expect((await ada.ask('tools/call', { ...call('slow_write'), task: {} })).status).toBe(403)
    const extension = { extensions: { 'io.modelcontextprotocol/tasks': {} } }
    expect((await (await peer('2026-07-28', 'tickets', extension)).ask('tools/call', call('slow_write'))).status).toBe(403)
    expect(ran).toEqual([])
  })

  it('is refused by an error within a batch, which has one status for all', async () => {
    const { url } = await tickets().listen({ auth: oauth({ issuer: issuer.url }) })
    const headers = { authorization: `Bearer ${issuer.token(url)}` }
    const { session } = await httpPeer(url, '2025-03-26', {}, headers)
    const body = JSON.stringify(
      ['read', 'write'].map((name, id) => ({ jsonrpc: '2.0', id, method: 'tools/call', params: call(name) })),
    )
    const json = {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      'mcp-session-id': session ?? '',
    }
    const answer = await fetch(url, { method: 'POST', headers: { ...json, ...headers }, body })
    expect(answer.status).toBe(200)
    expect(await answer.json()).toMatchObject([
      { id: 0, result: {} },
      { id: 1, error: { data: { scopes: ['write:tickets'] } } },
    ])
  })

  it('may get its scopes, or others, while clients are connected', async () => {
    const server = tickets()
    const { url } = await server.listen({ auth: oauth({ issuer: issuer.url }) })
    const late = server.tool('late', {}, () => 'done')
    const ada = await httpPeer(url, '2026-07-28', {}, { authorization: `Bearer ${issuer.token(url)}` })
    expect((await ada.ask('tools/call', call('late'))).status).toBe(200)
    late.update({ scopes: ['late'] })
    expect((await ada.ask('tools/call', call('late'))).status).toBe(403)
  })
})

describe('what else can have scopes', () => {
  it.each<[string, Frame]>([
    ['prompts/get', { name: 'draft' }],
    ['resources/read', { uri: 'note://1' }],
    ['resources/read', { uri: 'secret://7' }],
    ['resources/subscribe', { uri: 'note://1' }],
    ['completion/complete', { ref: { type: 'ref/prompt', name: 'draft' }, argument: { name: 'id', value: '' } }],
    ['completion/complete', { ref: { type: 'ref/resource', uri: 'secret://{id}' }, argument: { name: 'id', value: '' } }],
  ])('%s %j is refused without them, and answered with them', async (method, params) => {
    const ada = await peer('2025-11-25', 'tickets')
    expect((await ada.ask(method, params)).status).toBe(403)
    expect(ran).toEqual([])
    const bob = await peer('2025-11-25', 'tickets write:tickets')
    expect((await bob.ask(method, params)).frame['result']).toBeDefined()
  })

  it('a listen request is granted only what its caller could read', async () => {
    const wanted = { notifications: { resourceSubscriptions: ['note://open', 'note://1', 'secret://7'] } }
    const ada = await peer('2026-07-28', 'tickets')
    const { response, request } = await ada.open('subscriptions/listen', wanted)
    const [chunk] = await response.take(1).toArray()
    expect(String(chunk)).toContain('"resourceSubscriptions":["note://open"]')
    request.destroy()
  })

  it('names that are no scopes are refused when they are given', () => {
    const server = tickets()
    expect(() => server.tool('x', { scopes: ['a b'] }, () => '')).toThrow('"a b" is not a scope')
    expect(() => server.tool('x', { scopes: 'a' as never }, () => '')).toThrow('is not a scope')
  })
})

describe('where nobody is authorized', () => {
  it.each(['2025-11-25', '2026-07-28'] as const)(
    '%s: in memory and over stdio whoever calls is trusted as the process itself',
    async revision => {
      const wire = await speak(tickets(), revision)
      expect(await wire.ask('tools/call', call('write'))).toMatchObject({ result: { content: [{ text: 'write' }] } })
      await wire.close()
    },
  )

  it('over a network a tool with scopes is closed, and the error says to whom it opens', async () => {
    const { url } = await tickets().listen({ auth: 'none' })
    const answer = await (await httpPeer(url, '2026-07-28')).ask('tools/call', call('write'))
    expect(answer.status).toBe(403)
    expect(answer.headers['www-authenticate']).toBeUndefined()
    expect(answer.frame).toMatchObject({ error: { message: expect.stringContaining('auth: oauth(') } })
    expect((await (await httpPeer(url, '2026-07-28')).ask('tools/call', call('read'))).status).toBe(200)
  })
})
