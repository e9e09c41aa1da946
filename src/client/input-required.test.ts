import { describe, expect, it } from 'vitest'
import { type Answer, type Frame, modernServer, type Script, said } from '../../test/client/scripted-server.ts'
import type { ConnectOptions } from './api.ts'
import { connect } from './connect.ts'

const form = (message: string, more: Frame = {}): Frame => {
  return { method: 'elicitation/create', params: { message, requestedSchema: { type: 'object', properties: {} }, ...more } }
}
const asking = (inputRequests?: unknown, requestState?: unknown): Frame => {
  return {
    resultType: 'input_required',
    ...(inputRequests === undefined ? {} : { inputRequests }),
    ...(requestState === undefined ? {} : { requestState }),
  }
}

async function open(script: Script, options: ConnectOptions = {}) {
  const server = modernServer(script)
  return { server, mcp: await connect(server.connection, options) }
}

/** Asks with the given results, one after the other, then is done. */
function rounds(...results: readonly Frame[]): Answer {
  let round = 0
  return () => results[round++] ?? said('done')
}

const accept = { onElicit: () => ({ action: 'accept' as const, content: { ok: true } }) }

describe('a result that asks (rev §2.3)', () => {
  it('is answered by the same request, under a new id, with the bare answers and the state as it came', async () => {
    const state = ' a "state"\u2028 ünïcode\n'
    const { server, mcp } = await open({ 'tools/call': rounds(asking({ q1: form('Really?') }, state)) }, accept)
    await using _ = mcp
    expect((await mcp.callTool('t', { n: 1 })).text).toBe('done')
    const [first, second] = server.of('tools/call')
    expect(second?.['id']).not.toBe(first?.['id'])
    expect(server.params('tools/call')[1]).toEqual({
      name: 't',
      arguments: { n: 1 },
      inputResponses: { q1: { action: 'accept', content: { ok: true } } },
      requestState: state,
    })
  })

  it('without a state is answered without one', async () => {
    const { server, mcp } = await open({ 'tools/call': rounds(asking({ q: form('?') })) }, accept)
    await using _ = mcp
    await mcp.callTool('t')
    expect(server.params('tools/call')[1]).not.toHaveProperty('requestState')
  })

  it('with a state alone is tried again at once: the server sheds load', async () => {
    const { server, mcp } = await open({ 'tools/call': rounds(asking(undefined, 's')) })
    await using _ = mcp
    expect((await mcp.callTool('t')).text).toBe('done')
    expect(server.params('tools/call')[1]).toEqual({ name: 't', requestState: 's' })
  })

  it('again is answered with the last answers and the last state only (trap 15)', async () => {
    const { server, mcp } = await open(
      { 'tools/call': rounds(asking({ a: form('A') }, '1'), asking({ b: form('B') }), asking({ c: form('C') }, '3')) },
      accept,
    )
    await using _ = mcp
    await mcp.callTool('t')
    const sent = server
      .params('tools/call')
      .map(({ inputResponses, requestState }) => [Object.keys(inputResponses ?? {}), requestState])
    expect(sent).toEqual([
      [[], undefined],
      [['a'], '1'],
      [['b'], undefined],
      [['c'], '3'],
    ])
  })

  it('may ask several things at once, each of its handler', async () => {
    const requests = {
      name: form('Name?'),
      model: {
        method: 'sampling/createMessage',
        params: { messages: [{ role: 'user', content: { type: 'text', text: 'hi' } }], maxTokens: 5 },
      },
      folders: { method: 'roots/list' },
    }
    const asked: string[] = []
    const { server, mcp } = await open(
      { 'tools/call': rounds(asking(requests)) },
      {
        onElicit: ({ message }) => {
          asked.push(message)
          return { action: 'decline' }
        },
        onSample: ({ maxTokens }) => {
          asked.push(`${maxTokens} tokens`)
          return { role: 'assistant', content: { type: 'text', text: 'ho' }, model: 'm' }
        },
        roots: [{ uri: 'file:///w' }],
      },
    )
    await using _ = mcp
    await mcp.callTool('t')
    expect(asked.sort()).toEqual(['5 tokens', 'Name?'])
    expect(server.params('tools/call')[1]?.['inputResponses']).toEqual({
      name: { action: 'decline' },
      model: { role: 'assistant', content: { type: 'text', text: 'ho' }, model: 'm' },
      folders: { roots: [{ uri: 'file:///w' }] },
    })
  })

  it('is followed for ten rounds and no further', async () => {
    const { server, mcp } = await open({ 'tools/call': () => asking(undefined, 'again') })
    await using _ = mcp
    await expect(mcp.callTool('t')).rejects.toMatchObject({ kind: 'too-many-rounds' })
    expect(server.of('tools/call')).toHaveLength(11)
  })

  it('comes to an end in the tenth round', async () => {
    const { mcp } = await open({ 'tools/call': rounds(...Array.from({ length: 10 }, () => asking(undefined, 's'))) })
    await using _ = mcp
    expect((await mcp.callTool('t')).text).toBe('done')
  })

  it('is answered for prompts and resources too, and what came of it is not kept', async () => {
    const prompt = rounds(asking({ q: form('?') }))
    const read = () => ({ resultType: 'complete', contents: [{ uri: 'x:1', text: 't' }], ttlMs: 60_000, cacheScope: 'private' })
    const ask = ({ inputResponses }: Frame) =>
      inputResponses === undefined ? { ...asking({ q: form('?') }), ttlMs: 60_000 } : read()
    const script = {
      'prompts/get': () => {
        const result = prompt({}, {}) as Frame
        return result['resultType'] === 'complete' ? { resultType: 'complete', messages: [] } : result
      },
      'resources/read': ask,
    }
    const { server, mcp } = await open(script, accept)
    await using _ = mcp
    expect((await mcp.getPrompt('p', { a: 'b' })).messages).toEqual([])
    expect(server.params('prompts/get')[1]).toMatchObject({
      name: 'p',
      arguments: { a: 'b' },
      inputResponses: { q: { action: 'accept' } },
    })
    await mcp.readResource('x:1')
    await mcp.readResource('x:1')
    expect(server.of('resources/read')).toHaveLength(4)
  })
})

describe('a question that cannot be answered', () => {
  const sample = { method: 'sampling/createMessage', params: { messages: [], maxTokens: 1 } }
  const withTools = { method: 'sampling/createMessage', params: { messages: [], maxTokens: 1, tools: [] } }
  const page = { method: 'elicitation/create', params: { mode: 'url', message: 'go', url: 'https://example.com' } }
  const onSample = () => ({ role: 'assistant' as const, content: { type: 'text' as const, text: '' }, model: 'm' })

  it.each<[string, unknown, ConnectOptions]>([
    ['of an undeclared kind: elicitation', form('?'), {}],
    ['of an undeclared kind: sampling', sample, accept],
    ['of an undeclared kind: sampling with tools', withTools, { onSample }],
    ['of an undeclared kind: a page where only forms were declared', page, { ...accept, elicitUrl: false }],
    ['of no known kind', { method: 'tools/call', params: {} }, accept],
    ['without a method', {}, accept],
    ['that is none', null, accept],
    ['without a message', { method: 'elicitation/create', params: {} }, accept],
    ['without a form', { method: 'elicitation/create', params: { message: 'm' } }, accept],
    ['without messages', { method: 'sampling/createMessage', params: { maxTokens: 1 } }, { onSample }],
  ])('%s, ends the call and is not answered (trap 17)', async (_, question, options) => {
    const { server, mcp } = await open({ 'tools/call': rounds(asking({ q: question })) }, options)
    await using __ = mcp
    await expect(mcp.callTool('t')).rejects.toMatchObject({ name: 'McpError' })
    expect(server.of('tools/call')).toHaveLength(1)
  })

  it('because its handler throws ends the call with that, and puts the other questions away', async () => {
    let aborted: AbortSignal | undefined
    const { mcp } = await open(
      { 'tools/call': rounds(asking({ a: form('wait'), b: form('throw') })) },
      {
        onElicit: ({ message }, { signal }) => {
          if (message === 'throw') throw new Error('no screen')
          aborted = signal
          return new Promise(() => {})
        },
      },
    )
    await using _ = mcp
    await expect(mcp.callTool('t')).rejects.toThrow('no screen')
    expect(aborted?.aborted).toBe(true)
  })

  it('in time is given up with the call, even by a handler that does not look at its signal', async () => {
    const stop = new AbortController()
    const shown = Promise.withResolvers<AbortSignal>()
    const { server, mcp } = await open(
      { 'tools/call': rounds(asking({ a: form('wait') })) },
      {
        onElicit: (_, { signal }) => {
          shown.resolve(signal)
          return new Promise(() => {})
        },
      },
    )
    await using _ = mcp
    const call = mcp.callTool('t', {}, { signal: stop.signal }).catch(error => error)
    const seen = await shown.promise
    stop.abort(new Error('enough'))
    expect(await call).toMatchObject({ message: 'enough' })
    expect(seen.aborted).toBe(true)
    expect(server.of('tools/call')).toHaveLength(1)
  })

  it.each<[string, Frame]>([
    ['nothing at all', asking()],
    ['questions that are no object', asking([form('?')])],
    ['a state that is no text', asking(undefined, { n: 1 })],
    ['33 questions at once', asking(Object.fromEntries(Array.from({ length: 33 }, (_, n) => [n, form('?')])))],
  ])('since the result asks with %s, is a broken answer', async (_, result) => {
    const { server, mcp } = await open({ 'tools/call': rounds(result) }, accept)
    await using __ = mcp
    await expect(mcp.callTool('t')).rejects.toMatchObject({ kind: 'invalid-result' })
    expect(server.of('tools/call')).toHaveLength(1)
  })

  it('under a magic key is answered under that key', async () => {
    const requests = JSON.parse(
      '{"__proto__": {"method":"elicitation/create","params":{"message":"m","requestedSchema":{"type":"object","properties":{}}}}}',
    )
    const { server, mcp } = await open({ 'tools/call': rounds(asking(requests)) }, accept)
    await using _ = mcp
    await mcp.callTool('t')
    expect(Object.entries(server.params('tools/call')[1]?.['inputResponses'] ?? {})).toEqual([
      ['__proto__', { action: 'accept', content: { ok: true } }],
    ])
  })
})
