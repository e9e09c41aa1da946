import { assertType, describe, expect, it } from 'vitest'
import { z } from 'zod'
import {
  type Answer,
  type Frame,
  modernServer,
  Refusal,
  type Script,
  said,
  sessionServer,
  toolList,
} from '../../test/client/scripted-server.ts'
import { jsonSchema } from '../core/schema/index.ts'
import { McpError } from '../jsonrpc/error.ts'
import type { ConnectOptions } from './api.ts'
import type { Client } from './client.ts'
import { connect } from './connect.ts'

async function open(script: Script, options: ConnectOptions = {}) {
  const server = modernServer(script)
  return { server, mcp: await connect(server.connection, options) }
}

/** A client that has listed one tool `t`, which answers so. */
async function withTool(tool: Frame, answer: Answer, options: ConnectOptions = {}) {
  const opened = await open({ 'tools/list': () => toolList({ name: 't', ...tool }), 'tools/call': answer }, options)
  await readTools(opened.mcp)
  return opened
}

async function readTools(mcp: Client): Promise<string[]> {
  const names: string[] = []
  for await (const { name } of mcp.tools()) names.push(name)
  return names
}

describe('the result of a tool', () => {
  it('is its content, its text joined, its structure and its meta', async () => {
    const content = [
      { type: 'text', text: 'one' },
      { type: 'image', data: '', mimeType: 'image/png' },
      { type: 'text', text: 'two' },
    ]
    const result = { resultType: 'complete', content, structuredContent: { n: 1 }, _meta: { 'example.com/x': 1 } }
    const { mcp } = await open({ 'tools/call': () => result })
    await using _ = mcp
    const expected = { content, text: 'one\ntwo', structured: { n: 1 }, isError: false, meta: { 'example.com/x': 1 } }
    expect(await mcp.callTool('t', {})).toEqual(expected)
  })

  it('that is a failure of the tool is returned, not thrown', async () => {
    const { mcp } = await open({ 'tools/call': () => said('broken', { isError: true }) })
    await using _ = mcp
    expect(await mcp.callTool('t')).toMatchObject({ isError: true, text: 'broken' })
  })

  it.each([-32602, -32603, 4711])('that is a failure of the protocol is thrown with its number: %i', async code => {
    const refuse = (): never => {
      throw new Refusal(code, 'no such tool', { tool: 't' })
    }
    const { mcp } = await open({ 'tools/call': refuse })
    await using _ = mcp
    const error = await mcp.callTool('t').catch(thrown => thrown)
    expect(error).toBeInstanceOf(McpError)
    expect(error).toMatchObject({ kind: 'remote', code, message: 'no such tool', data: { tool: 't' } })
  })

  it.each([[null], [0], [false], [''], [[]]])('may be structured as %j: that is a value, not absence (trap 27)', async value => {
    const { mcp } = await open({ 'tools/call': () => said('x', { structuredContent: value }) })
    await using _ = mcp
    expect((await mcp.callTool('t')).structured).toEqual(value)
  })

  it('without resultType is complete: servers of older wires do not know the member', async () => {
    const { mcp } = await open({ 'tools/call': () => ({ content: [{ type: 'text', text: 'fine' }] }) })
    await using _ = mcp
    expect((await mcp.callTool('t')).text).toBe('fine')
  })

  it('of an unknown kind is refused, and the call is not made again', async () => {
    const { server, mcp } = await open({ 'tools/call': () => said('x', { resultType: 'surprise' }) })
    await using _ = mcp
    await expect(mcp.callTool('t')).rejects.toThrow('unknown type "surprise"')
    expect(server.of('tools/call')).toHaveLength(1)
  })

  it.each([[null], [[]], ['text'], [7], [{}], [{ content: 'text' }], [{ content: {} }]])(
    'that is %j is a broken answer',
    async result => {
      const { mcp } = await open({ 'tools/call': () => result })
      await using _ = mcp
      await expect(mcp.callTool('t')).rejects.toMatchObject({
        kind: 'invalid-result',
        message: expect.stringContaining('tools/call'),
      })
    },
  )

  it('with blocks that are none is passed on without falling over them', async () => {
    const content = [null, 7, { type: 'text' }, { type: 'text', text: 'ok' }]
    const { mcp } = await open({ 'tools/call': () => ({ content }) })
    await using _ = mcp
    expect((await mcp.callTool('t')).text).toBe('\nok')
  })

  it.each([null, 7, 'x', []])('whose meta is %j is read as one without', async _meta => {
    const { mcp } = await open({ 'tools/call': () => ({ content: [], isError: true, _meta }) })
    await using _ = mcp
    expect(await mcp.callTool('t')).toMatchObject({ isError: true, meta: undefined, problem: undefined })
  })

  it('with structure alone needs no content', async () => {
    const { mcp } = await open({ 'tools/call': () => ({ content: 'none', structuredContent: { n: 1 } }) })
    await using _ = mcp
    expect(await mcp.callTool('t')).toMatchObject({ content: [], text: '', structured: { n: 1 } })
  })
})

describe('what a tool promises', () => {
  const outputSchema = { type: 'object', properties: { sum: { type: 'number' } }, required: ['sum'] }

  it('is what its structured content must be', async () => {
    const { mcp } = await withTool({ outputSchema }, () => said('3', { structuredContent: { sum: 3 } }))
    await using _ = mcp
    expect((await mcp.callTool('t')).structured).toEqual({ sum: 3 })
  })

  it.each([[{ sum: 'three' }], [{}], [null], [3]])('and %j breaks is refused with the place', async structuredContent => {
    const { mcp } = await withTool({ outputSchema }, () => said('3', { structuredContent }))
    await using _ = mcp
    await expect(mcp.callTool('t')).rejects.toMatchObject({
      kind: 'invalid-result',
      message: expect.stringContaining('tool t does not match'),
    })
  })

  it('and does not give at all is refused, except with a failure', async () => {
    const { server, mcp } = await withTool({ outputSchema }, () => said('3'))
    await using _ = mcp
    await expect(mcp.callTool('t')).rejects.toThrow('declares an output schema, but returned no structured content')
    server.on('tools/call', () => said('broken', { isError: true }))
    expect((await mcp.callTool('t')).isError).toBe(true)
  })

  it('may be any schema on the newest wire', async () => {
    const { server, mcp } = await withTool({ outputSchema: { type: 'array', items: { type: 'integer' } } }, () =>
      said('', { structuredContent: [1, 2] }),
    )
    await using _ = mcp
    expect((await mcp.callTool('t')).structured).toEqual([1, 2])
    server.on('tools/call', () => said('', { structuredContent: [1, 'two'] }))
    await expect(mcp.callTool('t')).rejects.toMatchObject({ kind: 'invalid-result' })
  })

  it('comes wrapped on older wires, and is seen as the wire has it', async () => {
    const wrapped = { type: 'object', properties: { result: { type: 'array' } }, required: ['result'] }
    const script = {
      'tools/list': () => toolList({ name: 't', outputSchema: wrapped }),
      'tools/call': () => ({ content: [{ type: 'text', text: '[1]' }], structuredContent: { result: [1] } }),
    }
    await using mcp = await connect(sessionServer(script).connection)
    await readTools(mcp)
    expect((await mcp.callTool('t')).structured).toEqual({ result: [1] })
  })

  it('in words that are no schema, or too many, is not held against it; the tool still works', async () => {
    const deep: Frame = Array.from({ length: 40 }).reduce<Frame>(inner => ({ properties: { a: inner } }), {})
    const events: string[] = []
    const { mcp } = await withTool({ outputSchema: deep }, () => said('ok', { structuredContent: 1 }), {
      onTrace: event => events.push(event),
    })
    await using _ = mcp
    expect((await mcp.callTool('t')).text).toBe('ok')
    expect(events).toContain('schema-refused')
  })

  it('by a pattern that would take a backtracking matcher years is checked all the same (H10)', async () => {
    const evil = { type: 'object', properties: { s: { type: 'string', pattern: '^(a+)+$' } } }
    const { mcp } = await withTool({ outputSchema: evil }, () => said('', { structuredContent: { s: `${'a'.repeat(40)}!` } }))
    await using _ = mcp
    await expect(mcp.callTool('t')).rejects.toMatchObject({ kind: 'invalid-result' })
  })
})

describe('what the caller asks for', () => {
  it('checks and types the structured content', async () => {
    const { mcp } = await open({ 'tools/call': () => said('', { structuredContent: { n: '7' } }) })
    await using _ = mcp
    const out = await mcp.callTool('t', {}, { output: z.object({ n: z.coerce.number() }) })
    expect(out.isError ? undefined : out.structured.n + 1).toBe(8)
    const typed = jsonSchema<{ n: string }>({ type: 'object', properties: { n: { type: 'string' } } })
    const other = await mcp.callTool('t', {}, { output: typed })
    expect(other.isError ? undefined : other.structured.n).toBe('7')
  })

  it('is all that types it: without a schema, or with a failure, anything may have come', async () => {
    const { mcp } = await open({ 'tools/call': () => said('', { structuredContent: { n: 7 } }) })
    await using _ = mcp
    const bare = await mcp.callTool('t')
    assertType<unknown>(bare.structured)
    // @ts-expect-error: nobody said what it is
    expect(bare.structured.n).toBe(7)
    const output = z.object({ n: z.number() })
    const out = await mcp.callTool('t', {}, { output })
    // @ts-expect-error: it may have failed
    expect(out.structured.n).toBe(7)
  })

  it('and does not get is refused with the place, except with a failure', async () => {
    const { server, mcp } = await open({ 'tools/call': () => said('', { structuredContent: { n: 7 } }) })
    await using _ = mcp
    const output = z.object({ n: z.string() })
    await expect(mcp.callTool('t', {}, { output })).rejects.toMatchObject({
      kind: 'invalid-result',
      message: expect.stringMatching(/tool t does not match.*n: /),
    })
    server.on('tools/call', () => said('broken', { isError: true }))
    expect((await mcp.callTool('t', {}, { output })).text).toBe('broken')
  })

  it('may be a schema that cannot say what it is as JSON Schema: nobody is shown it', async () => {
    const { mcp } = await open({ 'tools/call': () => said('', { structuredContent: '2020-01-01' }) })
    await using _ = mcp
    const output = z.coerce.date().transform(date => date.getUTCFullYear())
    expect((await mcp.callTool('t', {}, { output })).structured).toBe(2020)
  })
})

describe('arguments', () => {
  const inputSchema = { type: 'object', properties: { n: { type: 'integer' } }, required: ['n'] }

  it('are sent as they are by default, and absent when absent', async () => {
    const { server, mcp } = await withTool({ inputSchema }, () => said('ok'))
    await using _ = mcp
    await mcp.callTool('t', { n: 'seven' })
    await mcp.callTool('t')
    expect(server.params('tools/call')).toEqual([{ name: 't', arguments: { n: 'seven' } }, { name: 't' }])
  })

  it('are checked before sending where that is wanted', async () => {
    const { server, mcp } = await withTool({ inputSchema }, () => said('ok'), { validateArguments: true })
    await using _ = mcp
    await expect(mcp.callTool('t', { n: 'seven' })).rejects.toMatchObject({
      kind: 'invalid-params',
      message: expect.stringContaining('n'),
    })
    await expect(mcp.callTool('t')).rejects.toMatchObject({ kind: 'invalid-params' })
    expect((await mcp.callTool('t', { n: 7 })).text).toBe('ok')
    expect(server.of('tools/call')).toHaveLength(1)
  })

  it('of a tool that was never listed are checked against the list, which is read for that', async () => {
    const script = { 'tools/list': () => toolList({ name: 't', inputSchema }), 'tools/call': () => said('ok') }
    const { server, mcp } = await open(script, { validateArguments: true })
    await using _ = mcp
    await expect(mcp.callTool('t', {})).rejects.toMatchObject({ kind: 'invalid-params' })
    expect((await mcp.callTool('t', { n: 1 })).text).toBe('ok')
    expect((await mcp.callTool('unlisted', {})).text).toBe('ok')
    expect(server.of('tools/call')).toHaveLength(2)
  })
})

describe('tools that are not fit for use', () => {
  const malformed = [null, 7, {}, { name: 7, inputSchema: {} }, { name: 'no-schema' }, { name: 'odd', inputSchema: [] }]

  it('are left out; the others are listed', async () => {
    const events: string[] = []
    const list = () => ({ tools: [...malformed, { name: 'fit', inputSchema: { type: 'object' } }] })
    const { mcp } = await open({ 'tools/list': list }, { onTrace: event => events.push(event) })
    await using _ = mcp
    expect(await readTools(mcp)).toEqual(['fit'])
    expect(events.filter(event => event === 'tool-malformed')).toHaveLength(malformed.length)
  })

  it('or have a schema deeper than is checked do not take the list with them', async () => {
    let deep: Frame = { type: 'string' }
    for (let level = 0; level < 50; level++) deep = { type: 'object', properties: { a: deep } }
    const { mcp } = await open({
      'tools/list': () => toolList({ name: 'deep', inputSchema: deep }, { name: 'fit' }),
      'tools/call': () => said('ok'),
    })
    await using _ = mcp
    expect(await readTools(mcp)).toEqual(['deep', 'fit'])
    expect((await mcp.callTool('deep', {})).text).toBe('ok')
  })
})
