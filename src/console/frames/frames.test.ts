/** Traffic: frames that passed are listed without secrets, filtered, shown whole, and sent again. */
import { connect as connectTo } from 'node:net'
import { describe, expect, it, onTestFinished } from 'vitest'
import { playgroundWorld, shop } from '../../../test/console/playground-console.ts'
import { realClock } from '../../core/clock.ts'
import { redacted } from '../../core/redact.ts'
import type { FrameRow, FrameSent } from '../contract/frames.ts'
import { FrameRedaction } from './redaction.ts'
import { FrameRing } from './ring.ts'

describe('frames', () => {
  it('are listed newest first with what they answer, how long that took, and no body', async () => {
    const me = await (await playgroundWorld()).page()
    await me.called({ tool: 'order', arguments: { item: 'bread' }, revisions: ['2025-06-18'] })
    const [request, answer] = await me.frames('method=tools/call')
    expect(request).toMatchObject({
      way: 'out',
      kind: 'request',
      status: 'ok',
      answer: answer?.n,
      about: 'order {"item":"bread"}',
    })
    expect(answer).toMatchObject({ way: 'in', kind: 'result', of: request?.n, about: '1 bread', server: 'shop' })
    expect(answer?.ms).toBe(request?.ms)
    expect(request).not.toHaveProperty('text')
    const newest = (await me.get('/frames?limit=1')).body as { items: FrameRow[]; next: string }
    const next = (await me.get(`/frames?limit=1&after=${newest.next}`)).body as { items: FrameRow[] }
    expect((newest.items[0]?.n ?? 0) - (next.items[0]?.n ?? 0)).toBe(1)
  })

  it('are filtered by method, way, kind, status, connection and text', async () => {
    const me = await (await playgroundWorld()).page()
    await me.called({ tool: 'order', arguments: { item: 'rye' } })
    await me.called({ tool: 'none' })
    const count = async (query: string): Promise<number> => (await me.frames(query)).length
    expect(await count('method=tools/call&way=out')).toBe(2)
    expect(await count('method=tools/*&kind=error')).toBe(1)
    expect(await count('method=tools/call&status=error')).toBe(2)
    expect(await count('text=RYE')).toBe(2)
    expect(await count('connection=nowhere')).toBe(0)
    expect((await me.get('/frames?way=up')).status).toBe(400)
    const { items } = (await me.get('/connections')).body as { items: { name: string }[] }
    expect(await count(`connection=${encodeURIComponent(items[0]?.name ?? '')}`)).toBeGreaterThan(0)
  })

  it('hold no secrets: neither in the list nor whole, and the frame stays JSON', async () => {
    const me = await (await playgroundWorld()).page()
    await me.called({ tool: 'order', arguments: { item: 'sk-abcdefghijklmnop1234', token: 'hunter2hunter2' } })
    const [request] = await me.frames('method=tools/call&way=out')
    const { body } = await me.get(`/frames/${request?.n}`)
    expect(body).toMatchObject({ redacted: 2 })
    expect(JSON.parse(String(body['text']))).toMatchObject({ params: { arguments: { item: redacted, token: redacted } } })
    const all = JSON.stringify([await me.frames(), (await me.get('/calls')).body, (await me.get('/log')).body])
    for (const secret of ['sk-abcdefghijklmnop1234', 'hunter2hunter2']) expect(all).not.toContain(secret)
  })

  it('of an HTTP server come with the heads of requests and answers, without their secrets', async () => {
    const listening = await shop().listen({ port: 0 })
    onTestFinished(() => listening.close())
    const headers = { authorization: 'Bearer abcdef-0123456789' }
    const me = await (await playgroundWorld({ target: listening.url, connect: { headers } })).page()
    await me.called({ tool: 'order', arguments: { item: 'bread' } })
    const [request, answer] = await me.frames('method=tools/call')
    const [asked, told] = [(await me.get(`/frames/${request?.n}`)).body, (await me.get(`/frames/${answer?.n}`)).body]
    expect(asked).toMatchObject({ head: { method: 'POST', path: '/mcp', headers: { authorization: redacted } } })
    expect(told).toMatchObject({ head: { status: 200, headers: { 'content-type': expect.any(String) } } })
    expect(JSON.stringify([asked, told])).not.toContain('abcdef-0123456789')
  })

  it('are published together, at most once in 50 ms', async () => {
    const { page, console: running } = await playgroundWorld()
    const me = await page()
    const socket = connectTo(running.port, '127.0.0.1')
    onTestFinished(() => void socket.destroy())
    let heard = ''
    socket.on('data', part => (heard += part))
    socket.write(
      `GET /api/1/events?topics=frames,call HTTP/1.1\r\nhost: 127.0.0.1:${running.port}\r\ncookie: ${me.cookie}\r\n\r\n`,
    )
    await expect.poll(() => heard).toContain('event: hello')
    const { id } = await me.called({ tool: 'order', arguments: { item: 'rye' } })
    await expect.poll(() => heard).toMatch(/event: frames\ndata: .*order.*tools\/call.*"skipped":0/)
    await expect.poll(() => heard).toMatch(new RegExp(`event: call\\ndata: .*${id}.*"state":"done"`))
    expect(heard).not.toContain('"result":{')
  })
})

describe('a frame is sent again', () => {
  it('exactly as it passed, with a new id, and the client does not notice', async () => {
    const me = await (await playgroundWorld()).page()
    await me.called({ tool: 'order', arguments: { item: 'bread' }, revisions: ['2025-06-18'] })
    const [first] = await me.frames('method=tools/call&way=out')
    const sent = await me.post(`/frames/${first?.n}/again`)
    expect(sent.status).toBe(202)
    const { n, id } = sent.body as unknown as FrameSent
    await expect.poll(async () => (await me.frames('method=tools/call')).at(-1)).toMatchObject({ of: n, about: '1 bread' })
    const [before, after] = await Promise.all([first?.n, n].map(async each => (await me.get(`/frames/${each}`)).body['text']))
    expect(JSON.parse(String(after))).toEqual({ ...JSON.parse(String(before)), id })
    expect((await me.frames(`id=${id}`))[0]).toMatchObject({ again: first?.n })
    expect((await me.called({ tool: 'order', arguments: { item: 'tea' }, revisions: ['2025-06-18'] })).runs[0]?.state).toBe(
      'done',
    )
  })

  it("as it was edited, even against the protocol, on a connection of one's choice", async () => {
    const me = await (await playgroundWorld()).page()
    const call = await me.called({ tool: 'order', arguments: { item: 'bread' }, revisions: ['2025-06-18', '2024-11-05'] })
    const [first] = await me.frames('method=tools/call&way=out')
    const text = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/dance', extra: true })
    const connection = call.runs[1]?.connection
    const sent = (await me.post(`/frames/${first?.n}/again`, { text, connection })).body as unknown as FrameSent
    expect(sent.connection).toBe(connection)
    await expect.poll(async () => (await me.frames('method=tools/dance')).at(-1)).toMatchObject({ kind: 'error', of: sent.n })
    const { body } = await me.get(`/frames/${sent.n}`)
    expect(JSON.parse(String(body['text']))).toEqual({ ...JSON.parse(text), id: sent.id })
  })

  it('over HTTP with the headers that its revision wants', async () => {
    const listening = await shop().listen({ port: 0 })
    onTestFinished(() => listening.close())
    const me = await (await playgroundWorld({ target: listening.url })).page()
    await me.called({ tool: 'order', arguments: { item: 'bread' }, revisions: ['2026-07-28', '2025-06-18'] })
    for (const first of await me.frames('method=tools/call&way=out')) {
      const { n } = (await me.post(`/frames/${first.n}/again`)).body as unknown as FrameSent
      await expect.poll(async () => (await me.frames('method=tools/call&kind=result')).find(({ of }) => of === n)).toBeDefined()
    }
  })

  it('only by operators, only what this side sent, and that is noted', async () => {
    const { page } = await playgroundWorld()
    const [me, eve] = [await page(), await page({ by: 'eve', roles: ['viewer'] })]
    await me.called({ tool: 'order', arguments: { item: 'bread' } })
    const [request, answer] = await me.frames('method=tools/call')
    expect((await eve.post(`/frames/${request?.n}/again`)).status).toBe(403)
    expect((await me.get(`/frames/${answer?.n}`)).body).toMatchObject({ notAgain: 'It came from the server.' })
    expect((await me.post(`/frames/${answer?.n}/again`)).status).toBe(400)
    expect((await me.post('/frames/99999/again')).status).toBe(404)
    await me.post(`/frames/${request?.n}/again`)
    expect(JSON.stringify((await me.get('/log?event=console')).body)).toContain(`ann POST /frames/:n/again ${request?.n} success`)
  })
})

describe('the ring', () => {
  it('keeps so many frames and forgets the oldest; a long frame is cut, and its follower gets all of it', () => {
    const ring = new FrameRing()
    let whole = 0
    ring.follow((_, text = '') => (whole += text.length))
    const row = { at: realClock.now(), server: 's', connection: 'c', way: 'out', kind: 'request', bytes: 1 } as const
    ring.add({ row, text: 'x'.repeat(300_000), taken: 0 })
    expect([ring.get(1)?.cut, ring.get(1)?.text?.length, whole]).toEqual([300_000, 262_144, 300_000])
    for (let n = 0; n < 12_000; n++) ring.add({ row, text: 'y', taken: 0 })
    expect([ring.get(1), ring.get(12_001)?.row.n]).toEqual([undefined, 12_001])
    expect(ring.all().length).toBeLessThanOrEqual(11_000)
  })

  it('takes known values out wherever they stand, deep inside and in what is no JSON', () => {
    const redaction = new FrameRedaction()
    redaction.learn(['opensesame-opensesame'])
    const deep = JSON.stringify({ a: [{ b: 'say opensesame-opensesame now' }], progressToken: 'p-1', max_tokens: 5 })
    expect(JSON.parse(redaction.frame(deep).text)).toEqual({
      a: [{ b: `say ${redacted} now` }],
      progressToken: 'p-1',
      max_tokens: 5,
    })
    expect(redaction.frame('opensesame-opensesame {').text).toBe(`${redacted} {`)
    const honest = '{"b":1, "a":"two"}'
    expect(redaction.frame(honest)).toMatchObject({ text: honest, taken: 0 })
    expect(new FrameRedaction(true).frame('{"token":"abcdefgh"}').text).toBe('{"token":"abcdefgh"}')
  })
})
