/** Asking by requests, on the wires that have them: the same handler, its question on the stream of its call (item 5, §1.4). */
import { afterEach, describe, expect, it } from 'vitest'
import type { RevisionId } from '../../src/revisions/index.ts'
import { fakeClock } from '../../src/testing/clock.ts'
import { type Asked, askingServer, everything } from './asking-server.ts'
import { events, headersFor, httpPeer, send } from './http.ts'
import { callName, errorOf, type Frame, resultOf, speak, textOf } from './wire.ts'

const closers: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close()
})

function make(options: Parameters<typeof askingServer>[0] = {}): Asked {
  const asked = askingServer(options)
  closers.push(() => asked.server.close())
  asked.server.tool('sure', {}, async (_, ctx) => ((await ctx.confirm('Sure?')) ? 'yes' : 'no'))
  asked.server.tool('model', {}, async (_, ctx) => {
    const content = [
      { type: 'text' as const, text: 'a' },
      { type: 'audio' as const, data: 'AAAA', mimeType: 'audio/wav' },
    ]
    const { model } = await ctx.sample({ messages: [{ role: 'user', content }], maxTokens: 5, includeContext: 'thisServer' })
    return model
  })
  asked.server.tool('folders', {}, async (_, ctx) => (await ctx.roots()).map(({ uri }) => uri).join(' '))
  return asked
}

const forms: readonly RevisionId[] = ['2025-06-18', '2025-11-25']
const pushing: readonly RevisionId[] = ['2024-11-05', '2025-03-26', ...forms]
const accept = { 'elicitation/create': () => ({ action: 'accept', content: { confirm: true } }) }

describe.each(forms)('forms at %s', revision => {
  it('are requests of the wire: mode is D’s word', async () => {
    const wire = await speak(make().server, revision, { capabilities: everything, answers: accept })
    expect(textOf(await wire.ask('tools/call', { name: 'sure' }))).toBe('yes')
    const [asked] = wire.heard.filter(frame => frame['method'] === 'elicitation/create')
    expect(asked?.['params']).toEqual({
      ...(revision === '2025-11-25' ? { mode: 'form' } : {}),
      message: 'Sure?',
      requestedSchema: {
        type: 'object',
        properties: { confirm: { type: 'boolean', title: 'Proceed?' } },
        required: ['confirm'],
      },
    })
  })

  it.each([
    ['accepted without a field, as clients do by themselves with empty forms', { action: 'accept', content: {} }],
    ['accepted without content', { action: 'accept' }],
    ['accepted with a word in the box', { action: 'accept', content: { confirm: 'true' } }],
  ])('that ask yes or no and are %s are no yes', async (_name, answer) => {
    const answers = { 'elicitation/create': () => answer }
    const wire = await speak(make().server, revision, { capabilities: everything, answers })
    const said = await wire.ask('tools/call', { name: 'sure' })
    expect(resultOf(said)['isError']).toBe(true)
    expect(textOf(said)).toContain('confirm: it must be true or false')
  })

  it('that ask yes or no are a no where the box is not ticked', async () => {
    const answers = { 'elicitation/create': () => ({ action: 'accept', content: { confirm: false } }) }
    const wire = await speak(make().server, revision, { capabilities: everything, answers })
    expect(textOf(await wire.ask('tools/call', { name: 'sure' }))).toBe('no')
  })

  it.each([
    ['an error', { error: { code: -1, message: 'I will not' } }],
    ['no result', {}],
    ['a result of no shape', { result: 7 }],
    ['an unknown action', { result: { action: 'maybe' } }],
  ])('answered with %s fail the tool, not the connection', async (_name, answer) => {
    const wire = await speak(make().server, revision, { capabilities: everything })
    const id = wire.begin('tools/call', { name: 'sure' })
    const asked = await wire.next(frame => frame['method'] === 'elicitation/create')
    wire.say({ jsonrpc: '2.0', id: asked['id'], ...answer })
    if (Object.keys(answer).length === 0) wire.say({ jsonrpc: '2.0', id: asked['id'], error: { code: 1, message: 'second try' } })
    const result = await wire.next(frame => frame['id'] === id && frame['method'] === undefined)
    expect(resultOf(result)['isError']).toBe(true)
    expect(await wire.ask('ping')).toHaveProperty('result')
  })

  it('answered under an id of another JSON type are not answered: "1" is not 1', async () => {
    const { server, traces } = make()
    const wire = await speak(server, revision, { capabilities: everything })
    wire.begin('tools/call', { name: 'sure' }, 'call')
    const asked = await wire.next(frame => frame['method'] === 'elicitation/create')
    wire.say({ jsonrpc: '2.0', id: String(asked['id']), result: { action: 'accept', content: { confirm: true } } })
    await wire.quiet()
    expect(traces).toContain('answer-to-nothing')
    wire.say({ jsonrpc: '2.0', id: asked['id'], result: { action: 'decline' } })
    expect(textOf(await wire.next(frame => frame['id'] === 'call'))).toBe('no')
  })

  it('are not answered by another connection', async () => {
    const { server } = make()
    const [ada, eve] = [
      await speak(server, revision, { capabilities: everything }),
      await speak(server, revision, { capabilities: everything }),
    ]
    ada.begin('tools/call', { name: 'sure' }, 'call')
    const asked = await ada.next(frame => frame['method'] === 'elicitation/create')
    eve.say({ jsonrpc: '2.0', id: asked['id'], result: { action: 'accept', content: { confirm: true } } })
    await eve.quiet()
    await ada.quiet()
    expect(ada.heard.some(frame => frame['id'] === 'call')).toBe(false)
  })

  it('have a deadline: an unanswered one is called back, and the tool fails', async () => {
    const clock = fakeClock()
    const wire = await speak(make({ clock, askTimeout: '30s' }).server, revision, { capabilities: everything })
    const id = wire.begin('tools/call', { name: 'sure' })
    const asked = await wire.next(frame => frame['method'] === 'elicitation/create')
    clock.advance(31_000)
    expect(resultOf(await wire.next(frame => frame['id'] === id && frame['method'] === undefined))['isError']).toBe(true)
    const cancelled = await wire.next(frame => frame['method'] === 'notifications/cancelled')
    expect((cancelled['params'] as Frame)['requestId']).toBe(asked['id'])
  })

  it('are called back when their call is cancelled', async () => {
    const wire = await speak(make().server, revision, { capabilities: everything })
    const id = wire.begin('tools/call', { name: 'sure' })
    const asked = await wire.next(frame => frame['method'] === 'elicitation/create')
    wire.tell('notifications/cancelled', { requestId: id })
    const cancelled = await wire.next(frame => frame['method'] === 'notifications/cancelled')
    expect((cancelled['params'] as Frame)['requestId']).toBe(asked['id'])
  })

  it('over HTTP go out on the stream of their call and are answered by a POST of their own', async () => {
    const { server } = make()
    const { url } = await server.listen()
    const peer = await httpPeer(url, revision, everything)
    const { response } = await peer.open('tools/call', { name: 'sure' })
    const frames: Frame[] = []
    for await (const { frame } of events(response)) {
      if (frame === undefined) continue
      frames.push(frame)
      if (frame['method'] !== 'elicitation/create') continue
      const body = { jsonrpc: '2.0', id: frame['id'], result: { action: 'accept', content: { confirm: true } } }
      expect((await send(url, { headers: headersFor(revision, '', {}, peer.session), body })).status).toBe(202)
    }
    expect(textOf(frames.at(-1) ?? {})).toBe('yes')
  })

  it('over HTTP cannot be answered from another session', async () => {
    const { server } = make()
    const { url } = await server.listen({ closeMs: 10 })
    const [ada, eve] = [await httpPeer(url, revision, everything), await httpPeer(url, revision, everything)]
    const { request, response } = await ada.open('tools/call', { name: 'sure' })
    for await (const { frame } of events(response)) {
      if (frame?.['method'] !== 'elicitation/create') continue
      const answer = (result: Frame, session: string | undefined) =>
        send(url, { headers: headersFor(revision, '', {}, session), body: { jsonrpc: '2.0', id: frame['id'], result } })
      await answer({ action: 'decline' }, eve.session)
      await answer({ action: 'accept', content: { confirm: true } }, ada.session)
      break
    }
    request.destroy()
    const late = await ada.ask('ping')
    expect(late.status).toBe(200)
  })
})

describe.each(pushing)('the model and the folders at %s', revision => {
  const answers = {
    'sampling/createMessage': () => ({ role: 'assistant', content: { type: 'text', text: 'Hi' }, model: 'm-1' }),
    'roots/list': () => ({ roots: [{ uri: 'file:///a' }, { uri: 'file:///b', name: 'B' }] }),
  }

  it('are asked in the words of the wire: one block a message before D, no audio at A', async () => {
    const wire = await speak(make().server, revision, { capabilities: everything, answers })
    expect(textOf(await wire.ask('tools/call', { name: 'model' }))).toBe('m-1')
    const asked = wire.heard.find(frame => frame['method'] === 'sampling/createMessage')?.['params'] as Frame
    const text = { type: 'text', text: 'a' }
    const sound =
      revision === '2024-11-05'
        ? { type: 'text', text: '[audio, audio/wav]' }
        : { type: 'audio', data: 'AAAA', mimeType: 'audio/wav' }
    const split = [
      { role: 'user', content: text },
      { role: 'user', content: sound },
    ]
    expect(asked['messages']).toEqual(revision === '2025-11-25' ? [{ role: 'user', content: [text, sound] }] : split)
    expect(asked['includeContext']).toBe('thisServer')
    expect(textOf(await wire.ask('tools/call', { name: 'folders' }))).toBe('file:///a file:///b')
  })

  it('are not asked of a client that did not declare them', async () => {
    const wire = await speak(make().server, revision, { answers })
    for (const name of ['model', 'folders', 'sure'])
      expect(resultOf(await wire.ask('tools/call', { name }))['isError']).toBe(true)
    expect(wire.heard.filter(frame => frame['method'] !== undefined)).toEqual([])
  })
})

describe('wires without a way to ask', () => {
  it.each(['2024-11-05', '2025-03-26'] as const)('%s has no forms, whatever is declared', async revision => {
    const wire = await speak(make().server, revision, { capabilities: everything, answers: accept })
    expect(resultOf(await wire.ask('tools/call', { name: 'sure' }))['isError']).toBe(true)
  })

  it('the dialect has none at all (§3.1)', async () => {
    const wire = await speak(make().server, 's3')
    for (const name of ['sure', 'model', 'folders'])
      expect(resultOf(await wire.ask(callName('s3'), { name }))['status']).toBe('error')
    expect(wire.heard.filter(frame => frame['method'] !== undefined)).toEqual([])
  })

  it('a prompt or a resource that cannot ask is a JSON-RPC error there', async () => {
    const wire = await speak(make().server, '2025-03-26')
    expect(errorOf(await wire.ask('prompts/get', { name: 'plan', arguments: { goal: 'x' } })).code).toBe(-32602)
    expect(errorOf(await wire.ask('resources/read', { uri: 'memo://1' })).code).toBe(-32602)
  })

  it('a server without sessions cannot push: the tool says so at once', async () => {
    const { server } = make({ sessions: false })
    const { url } = await server.listen({ closeMs: 10 })
    const peer = await httpPeer(url, '2025-11-25', everything)
    expect(resultOf((await peer.ask('tools/call', { name: 'sure' })).frame)['isError']).toBe(true)
  })
})
