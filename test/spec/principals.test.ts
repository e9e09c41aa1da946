/** What belongs to one principal does not exist for another: two real tokens, one server, every kind of handle. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { createServer, oauth } from '../../src/server/index.ts'
import { type TestIssuer, testIssuer } from '../auth/issuer.ts'
import { events, headersFor, httpPeer, json, open, send } from './http.ts'
import { type Frame, helloParams } from './wire.ts'

const server = createServer({ name: 'tickets', version: '1.0.0', pageSize: 1 })
let issuer: TestIssuer
let url = ''

server.tool('who', {}, (_, ctx) => ctx.principal?.subject ?? 'nobody')
server.tool('ask', {}, async (_, ctx) => ((await ctx.confirm('Really?')) ? `yes, ${ctx.principal?.subject}` : 'no'))
server.tool('work', { task: 'optional', input: z.object({}) }, async (_, ctx) => `worked for ${ctx.principal?.subject}`)
server.resource('note://1', { name: 'note' }, () => 'one')
server.resource('note://2', { name: 'note' }, () => 'two')

beforeAll(async () => {
  issuer = await testIssuer()
  url = (await server.listen({ auth: oauth({ issuer: issuer.url }), ssePath: '/sse' })).url
})
afterAll(async () => {
  await server.close()
  await issuer.close()
})

const bearer = (sub: string, more: Frame = {}) => ({ authorization: `Bearer ${issuer.token(url, { sub, ...more })}` })
const noDate = ({ status, text, headers: { date: _, ...headers } }: Awaited<ReturnType<typeof send>>) => ({
  status,
  text,
  headers,
})

describe.each(['2025-03-26', '2025-06-18', '2025-11-25'] as const)('a session of %s', revision => {
  it('is to another principal, byte for byte, like one that never was, and its owner notices nothing', async () => {
    const ada = await httpPeer(url, revision, {}, bearer('ada'))
    const tries = (session: string, who: Record<string, string>) => {
      const headers = { ...headersFor(revision, 'tools/list', {}, session), ...who }
      const body = { jsonrpc: '2.0', id: 1, method: 'tools/list', params: {} }
      const event = { ...headers, 'last-event-id': 'abc-1' }
      return Promise.all([
        send(url, { headers, body }),
        send(url, { method: 'GET', headers }),
        send(url, { method: 'GET', headers: event }),
        send(url, { method: 'DELETE', headers }),
      ])
    }
    const never = (ada.session ?? '').replace(/./g, 'x')
    for (const who of [bearer('bob'), bearer('ada', { client_id: 'other' })]) {
      const foreign = await tries(ada.session ?? '', who)
      expect(foreign.map(({ status }) => status)).toEqual([404, 404, 404, 404])
      expect(foreign.map(noDate)).toEqual((await tries(never, who)).map(noDate))
    }
    expect((await ada.ask('tools/call', { name: 'who', arguments: {} })).frame).toMatchObject({
      result: { content: [{ text: 'ada' }] },
    })
  })

  it('goes on with a fresh token of the same principal', async () => {
    const ada = await httpPeer(url, revision, {}, bearer('ada', { jti: '1' }))
    const answer = await ada.ask('tools/call', { name: 'who', arguments: {} }, { headers: bearer('ada', { jti: '2' }) })
    expect(answer.frame).toMatchObject({ result: { content: [{ text: 'ada' }] } })
  })

  it('is closed to whoever brings its id and no token', async () => {
    const ada = await httpPeer(url, revision, {}, bearer('ada'))
    const headers = headersFor(revision, 'tools/list', {}, ada.session)
    for (const method of ['GET', 'DELETE', 'POST']) expect((await send(url, { method, headers })).status).toBe(401)
  })
})

describe('a stream', () => {
  it('can be taken up by its last event id by its owner alone', async () => {
    const ada = await httpPeer(url, '2025-11-25', {}, bearer('ada'))
    const headers = headersFor('2025-11-25', '', {}, ada.session)
    const { response, request } = await open(url, { method: 'GET', headers: { ...headers, ...bearer('ada') } })
    const first = await events(response).next()
    const id = (first.value as { id: string }).id
    request.destroy()
    const resume = (sub: string) => open(url, { method: 'GET', headers: { ...headers, ...bearer(sub), 'last-event-id': id } })
    expect((await resume('bob')).response.statusCode).toBe(404)
    const again = await resume('ada')
    expect(again.response.statusCode).toBe(200)
    again.request.destroy()
  })
})

describe('the old pair', () => {
  it('takes what is posted from its own principal only', async () => {
    const base = new URL('/sse', url).href
    const stream = await open(base, { method: 'GET', headers: { accept: 'text/event-stream', ...bearer('ada') } })
    const [text] = (await stream.response.setEncoding('utf8').iterator({ destroyOnReturn: false }).next()).value.split('\n\n')
    const address = new URL(text.split('data: ')[1], base).href
    const body = { jsonrpc: '2.0', id: 0, method: 'initialize', params: helloParams('2024-11-05') }
    const post = (where: string, sub: string) => send(where, { headers: { ...json, ...bearer(sub) }, body })
    const foreign = await post(address, 'bob')
    expect(noDate(foreign)).toEqual(noDate(await post(`${base}/message?session=never`, 'bob')))
    expect(foreign.status).toBe(404)
    expect((await post(address, 'ada')).status).toBe(202)
    stream.request.destroy()
  })
})

describe('a sealed handle', () => {
  it('requestState: another principal cannot answer the question of a call', async () => {
    const capabilities = { elicitation: {} }
    const ada = await httpPeer(url, '2026-07-28', capabilities, bearer('ada'))
    const bob = await httpPeer(url, '2026-07-28', capabilities, bearer('bob'))
    const call = { name: 'ask', arguments: {} }
    const asked = (await ada.ask('tools/call', call)).frame['result'] as { requestState: string; inputRequests: Frame }
    const [key = ''] = Object.keys(asked.inputRequests)
    const answer = {
      ...call,
      requestState: asked.requestState,
      inputResponses: { [key]: { action: 'accept', content: { confirm: true } } },
    }
    const [foreign, garbage] = [
      await bob.ask('tools/call', answer, { id: 7 }),
      await bob.ask('tools/call', { ...answer, requestState: 'AAAA' }, { id: 7 }),
    ]
    expect(foreign.frame['error']).toBeDefined()
    expect(foreign.text).toBe(garbage.text)
    expect((await ada.ask('tools/call', answer)).frame).toMatchObject({ result: { content: [{ text: 'yes, ada' }] } })
  })

  it.each(['tools/list', 'resources/list'])('the cursor of %s is nobody else’s', async method => {
    const ada = await httpPeer(url, '2026-07-28', {}, bearer('ada'))
    const bob = await httpPeer(url, '2026-07-28', {}, bearer('bob'))
    const { nextCursor: cursor } = (await ada.ask(method)).frame['result'] as { nextCursor: string }
    const [foreign, garbage] = [
      await bob.ask(method, { cursor }, { id: 7 }),
      await bob.ask(method, { cursor: 'AAAA' }, { id: 7 }),
    ]
    expect(foreign.frame['error']).toMatchObject({ code: -32602 })
    expect(foreign.text).toBe(garbage.text)
    expect((await ada.ask(method, { cursor })).frame['result']).toBeDefined()
  })
})

describe('a task', () => {
  const extension = { extensions: { 'io.modelcontextprotocol/tasks': {} } }

  it.each(['tasks/get', 'tasks/cancel', 'tasks/update'])(
    'of the extension: %s by another is as for one that never was',
    async method => {
      const ada = await httpPeer(url, '2026-07-28', extension, bearer('ada'))
      const bob = await httpPeer(url, '2026-07-28', extension, bearer('bob'))
      const { taskId } = (await ada.ask('tools/call', { name: 'work', arguments: {} })).frame['result'] as { taskId: string }
      const never = taskId.replace(/[0-9a-f]/g, '0')
      const params = (id: string) => ({ taskId: id, ...(method === 'tasks/update' ? { inputResponses: {} } : {}) })
      const foreign = await bob.ask(method, params(taskId), { id: 7 })
      const unknown = await bob.ask(method, params(never), { id: 7 })
      expect(foreign.frame['error']).toBeDefined()
      expect(foreign.text.replace(taskId, never)).toBe(unknown.text)
      expect((await ada.ask(method, params(taskId))).frame['result']).toBeDefined()
    },
  )

  it.each(['tasks/get', 'tasks/result', 'tasks/cancel'])(
    'of 2025-11-25: %s by another is as for one that never was',
    async method => {
      const ada = await httpPeer(url, '2025-11-25', {}, bearer('ada'))
      const bob = await httpPeer(url, '2025-11-25', {}, bearer('bob'))
      const made = (await ada.ask('tools/call', { name: 'work', arguments: {}, task: {} })).frame['result'] as {
        task: { taskId: string }
      }
      const { taskId } = made.task
      const never = taskId.replace(/[0-9a-f]/g, '0')
      const foreign = await bob.ask(method, { taskId }, { id: 7 })
      const unknown = await bob.ask(method, { taskId: never }, { id: 7 })
      expect(foreign.frame['error']).toBeDefined()
      expect(foreign.text.replace(taskId, never)).toBe(unknown.text)
      const listed = (await bob.ask('tasks/list')).frame['result'] as { tasks: unknown[] }
      expect(JSON.stringify(listed)).not.toContain(taskId)
    },
  )
})
