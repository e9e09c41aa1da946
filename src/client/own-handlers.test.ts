/** Handlers of a client that go wrong: the server is told who failed, and the author of the client what to return. */
import { afterAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import type { RevisionId } from '../revisions/index.ts'
import { createServer } from '../server/index.ts'
import { connectInMemory } from '../testing/connect.ts'
import type { ConnectOptions } from './api.ts'

const server = createServer({ name: 'asking', version: '1.0.0', log: 'silent' })
const form = z.object({ age: z.number() })
server.tool('form', {}, async (_, ctx) => (await ctx.elicit({ message: 'Age?', schema: form })).action)
server.tool('model', {}, async (_, ctx) => (await ctx.sample({ messages: [], maxTokens: 5 })).model)
server.tool('folders', {}, async (_, ctx) => (await ctx.roots()).length)
afterAll(() => server.close())

const fail = (): never => {
  throw new Error('the window broke')
}
const cases: readonly [tool: string, option: string, handler: unknown, said: string][] = [
  ['form', 'onElicit', fail, 'onElicit threw'],
  ['form', 'onElicit', () => undefined, "onElicit must return { action: 'accept'|'decline'|'cancel' }"],
  ['form', 'onElicit', () => ({ action: 'acept' }), "onElicit must return { action: 'accept'|'decline'|'cancel' }"],
  ['model', 'onSample', fail, 'onSample threw'],
  ['model', 'onSample', () => 'ho', 'onSample must return { role, content, model }'],
  ['folders', 'roots', fail, 'roots threw'],
  ['folders', 'roots', () => ['/home'], 'roots must return a list of { uri, name? }'],
]

async function call(revision: RevisionId, tool: string, options: ConnectOptions) {
  await using mcp = await connectInMemory(server, { revision, ...options })
  return await mcp.callTool(tool)
}

describe('a handler that throws or gives no answer', () => {
  it.each(cases)('of %s (%s: %s) is the client’s failure, and is logged there', async (tool, option, handler, said) => {
    const traced: unknown[] = []
    const onTrace = (event: string, detail: unknown): void => void (event === 'handler-failed' && traced.push(detail))
    const result = await call('2025-11-25', tool, { [option]: handler, onTrace })
    expect(result.isError).toBe(true)
    expect(result.text).toContain(`The client failed: `)
    expect(result.text).toContain(said)
    expect(result.text).not.toContain('window')
    expect(traced).toMatchObject([{ handler: option, error: expect.any(Error) }])
  })

  it.each(cases)('of %s (%s: %s) fails the call on wires where it is answered here', async (tool, option, handler, said) => {
    const expected = handler === fail ? 'the window broke' : said
    await expect(call('2026-07-28', tool, { [option]: handler })).rejects.toThrow(expected)
  })
})

describe('an answer', () => {
  it.each<RevisionId>(['2025-11-25', '2026-07-28'])('that does not fit its form is told by its field (%s)', async revision => {
    const onElicit: ConnectOptions['onElicit'] = () => ({ action: 'accept', content: { age: 'old' } })
    expect((await call(revision, 'form', { onElicit })).text).toMatch(/age: .*number/)
  })

  it('that nobody can give is told by what the client did not declare', async () => {
    expect((await call('2025-11-25', 'form', {})).text).toContain(
      'did not declare the capabilities that elicitation/create needs',
    )
    await expect(call('2026-07-28', 'form', {})).rejects.toThrow('did not declare the capabilities that elicitation/create needs')
  })
})
