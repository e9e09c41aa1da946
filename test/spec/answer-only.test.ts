/** Callers whose POST accepts nothing but JSON: what precedes an answer takes the session's own stream, or is not sent (§1.2). */
import { afterEach, describe, expect, it } from 'vitest'
import { type Asked, askingServer, everything } from './asking-server.ts'
import { type Answer, events, type HttpPeer, headersFor, httpPeer, json, open, send } from './http.ts'
import { enveloped, errorOf, type Frame, resultOf, textOf } from './wire.ts'

const closers: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close()
})

const jsonOnly = { headers: { accept: 'application/json' } }

function make(): Asked {
  const asked = askingServer()
  closers.push(() => asked.server.close())
  asked.server.tool('sure', {}, async (_, ctx) => ((await ctx.confirm('Sure?')) ? 'yes' : 'no'))
  asked.server.tool('steps', {}, (_, ctx) => {
    ctx.progress(1, { total: 2 })
    ctx.log('warning', 'half way')
    return 'done'
  })
  asked.server.tool('background', { task: 'optional' }, async (_, ctx) => ((await ctx.confirm('Sure?')) ? 'yes' : 'no'))
  return asked
}

async function peerOf(revision: '2025-03-26' | '2025-06-18' | '2025-11-25'): Promise<{ url: string; peer: HttpPeer }> {
  const { url } = await make().server.listen({ closeMs: 10 })
  return { url, peer: await httpPeer(url, revision, everything) }
}

async function stream(url: string, peer: HttpPeer, revision: '2025-06-18' | '2025-11-25') {
  const headers = { ...headersFor(revision, '', {}, peer.session), accept: 'text/event-stream' }
  const { request, response } = await open(url, { method: 'GET', headers })
  closers.push(() => request.destroy())
  return frames(events(response))
}

async function* frames(from: ReturnType<typeof events>): AsyncGenerator<Frame> {
  for await (const { frame } of from) if (frame !== undefined) yield frame
}

describe.each(['2025-06-18', '2025-11-25'] as const)('at %s', revision => {
  it('a question goes out on the stream that the session has open, the answer comes as JSON', async () => {
    const { url, peer } = await peerOf(revision)
    const heard = await stream(url, peer, revision)
    const call = peer.ask('tools/call', { name: 'sure' }, jsonOnly)
    const question = (await heard.next()).value as Frame
    expect(question['method']).toBe('elicitation/create')
    const body = { jsonrpc: '2.0', id: question['id'], result: { action: 'accept', content: { confirm: true } } }
    expect((await send(url, { headers: headersFor(revision, '', {}, peer.session), body })).status).toBe(202)
    const answer = await call
    expect([answer.headers['content-type'], textOf(answer.frame)]).toEqual(['application/json', 'yes'])
  })

  it('without one the tool fails at once and says what to accept or open', async () => {
    const { peer } = await peerOf(revision)
    const { status, frame } = await peer.ask('tools/call', { name: 'sure' }, jsonOnly)
    expect([status, resultOf(frame)['isError'], textOf(frame)]).toEqual([
      200,
      true,
      expect.stringMatching(/elicitation\/create.*text\/event-stream.*GET/),
    ])
  })

  it('progress and log messages take the stream of the session, and without one are left out', async () => {
    const { url, peer } = await peerOf(revision)
    const ask = (): Promise<Answer> => peer.ask('tools/call', { name: 'steps', _meta: { progressToken: 'p' } }, jsonOnly)
    const quiet = await ask()
    expect([quiet.headers['content-type'], quiet.frames.length, textOf(quiet.frame)]).toEqual(['application/json', 1, 'done'])
    const heard = await stream(url, peer, revision)
    expect(textOf((await ask()).frame)).toBe('done')
    expect((await heard.next()).value).toMatchObject({ method: 'notifications/progress', params: { progressToken: 'p' } })
    expect((await heard.next()).value).toMatchObject({ method: 'notifications/message', params: { data: 'half way' } })
  })

  it('a prompt and a resource that would ask are JSON-RPC errors at once', async () => {
    const { peer } = await peerOf(revision)
    const prompt = await peer.ask('prompts/get', { name: 'plan', arguments: { goal: 'x' } }, jsonOnly)
    const resource = await peer.ask('resources/read', { uri: 'memo://1' }, jsonOnly)
    for (const { frame } of [prompt, resource]) expect(errorOf(frame).message).toContain('text/event-stream')
  })
})

it('the calls of a batch are bound by what its POST accepts (2025-03-26)', async () => {
  const { url, peer } = await peerOf('2025-03-26')
  const headers = { ...headersFor('2025-03-26', '', {}, peer.session), ...jsonOnly.headers }
  const params = { name: 'steps', _meta: { progressToken: 'p' } }
  const answer = await send(url, { headers, body: [{ jsonrpc: '2.0', id: 1, method: 'tools/call', params }] })
  expect([answer.headers['content-type'], answer.frames.length, textOf(answer.frame)]).toEqual(['application/json', 1, 'done'])
})

it('waiting for a task that asks is refused at once; the task still asks on a stream that takes it', async () => {
  const { url, peer } = await peerOf('2025-11-25')
  const begun = await peer.ask('tools/call', { name: 'background', task: {} }, jsonOnly)
  const { taskId } = resultOf(begun.frame)['task'] as { taskId: string }
  const refused = await peer.ask('tasks/result', { taskId }, jsonOnly)
  expect(errorOf(refused.frame).message).toMatch(/elicitation\/create.*text\/event-stream/)
  const { response } = await peer.open('tasks/result', { taskId })
  let last: Frame = {}
  for await (const frame of frames(events(response))) {
    last = frame
    if (frame['method'] !== 'elicitation/create') continue
    const body = { jsonrpc: '2.0', id: frame['id'], result: { action: 'accept', content: { confirm: true } } }
    await send(url, { headers: headersFor('2025-11-25', '', {}, peer.session), body })
  }
  expect(textOf(last)).toBe('yes')
})

it('a subscription of 2026-07-28 is a stream: without one it is 400, not silence', async () => {
  const { url } = await make().server.listen({ closeMs: 10 })
  const params = enveloped('2026-07-28', { notifications: { toolsListChanged: true } }, {})
  const headers = { ...json, ...headersFor('2026-07-28', 'subscriptions/listen', params), ...jsonOnly.headers }
  const refused = await send(url, { headers, body: { jsonrpc: '2.0', id: 1, method: 'subscriptions/listen', params } })
  expect([refused.status, errorOf(refused.frame).message]).toEqual([400, expect.stringContaining('text/event-stream')])
})
