import { describe, expect, expectTypeOf, it } from 'vitest'
import { z } from 'zod'
import { envelope, everyRevision, type Frame, rawWire } from '../../../../test/raw-wire.ts'
import type { RevisionId } from '../../../revisions/index.ts'
import { createServer, type Server } from '../../../server/server.ts'

function desk(): Server {
  const server = createServer({ name: 'desk', version: '1', revisions: everyRevision })
  server.prompt(
    'triage',
    {
      title: 'Triage',
      description: 'Sorts a ticket',
      arguments: { id: { title: 'Id', description: 'Which ticket', required: true }, tone: { description: 'How to say it' } },
      icons: [{ src: 'https://example.com/t.png' }],
      meta: { desk: 1 },
    },
    ({ id, tone }) => `Triage ${id}${tone === undefined ? '' : `, ${tone}`}`,
  )
  return server
}

async function ask(server: Server, revision: RevisionId, method: string, params?: Frame): Promise<Frame> {
  return (await rawWire(server.acceptor, revision)).ask(method, params)
}

async function get(server: Server, revision: RevisionId, name: string, args?: Frame): Promise<Frame> {
  const answer = await ask(server, revision, 'prompts/get', args === undefined ? { name } : { name, arguments: args })
  return answer['result'] as Frame
}

describe('prompts/list', () => {
  const bare = {
    name: 'triage',
    description: 'Sorts a ticket',
    arguments: [
      { name: 'id', description: 'Which ticket', required: true },
      { name: 'tone', description: 'How to say it' },
    ],
  }
  const titled = {
    ...bare,
    title: 'Triage',
    _meta: { desk: 1 },
    arguments: [{ name: 'id', title: 'Id', description: 'Which ticket', required: true }, bare.arguments[1]],
  }

  it.each<[RevisionId, object]>([
    ['2024-11-05', bare],
    ['2025-03-26', bare],
    ['2025-06-18', titled],
    ['s3', titled],
    ['2025-11-25', { ...titled, icons: [{ src: 'https://example.com/t.png' }] }],
    ['2026-07-28', { ...titled, icons: [{ src: 'https://example.com/t.png' }] }],
  ])('gives %s the members that it knows (§1.5)', async (revision, prompt) => {
    const { result } = await ask(desk(), revision, 'prompts/list')
    expect((result as Frame)['prompts']).toEqual([prompt])
  })

  it('says how long it may be kept on 2026-07-28 alone (trap 10)', async () => {
    expect((await ask(desk(), '2026-07-28', 'prompts/list'))['result']).toMatchObject({ ttlMs: 0, cacheScope: 'private' })
    expect((await ask(desk(), '2025-11-25', 'prompts/list'))['result']).not.toHaveProperty('ttlMs')
  })
})

describe('prompts/get', () => {
  it('makes of a string what the user says, under the description of the prompt', async () => {
    expect(await get(desk(), '2025-11-25', 'triage', { id: '7' })).toEqual({
      description: 'Sorts a ticket',
      messages: [{ role: 'user', content: { type: 'text', text: 'Triage 7' } }],
    })
  })

  it('takes messages in whatever form is shortest', async () => {
    const server = createServer({ name: 'desk', version: '1' })
    server.prompt('one', {}, () => ({ role: 'assistant', content: 'a' }))
    server.prompt('many', {}, () => ['a', { content: { type: 'text', text: 'b' } }])
    server.prompt('whole', { description: 'mine' }, () => ({ description: 'yours', messages: ['a'] }))
    const user = (text: string): object => ({ role: 'user', content: { type: 'text', text } })
    expect(await get(server, '2025-11-25', 'one')).toEqual({
      messages: [{ role: 'assistant', content: { type: 'text', text: 'a' } }],
    })
    expect(await get(server, '2025-11-25', 'many')).toEqual({ messages: [user('a'), user('b')] })
    expect(await get(server, '2025-11-25', 'whole')).toEqual({ description: 'yours', messages: [user('a')] })
  })

  it('is not stamped with a time to keep it (trap 10)', async () => {
    expect(await get(desk(), '2026-07-28', 'triage', { id: '7' })).not.toHaveProperty('ttlMs')
  })

  it.each(everyRevision)('refuses an unknown prompt with -32602 on %s', async revision => {
    expect(await ask(desk(), revision, 'prompts/get', { name: 'nope' })).toMatchObject({
      error: { code: -32602, message: expect.stringContaining('nope') },
    })
  })

  it('names a required argument that is missing, and is not fooled by names that every object has', async () => {
    const server = desk()
    server.prompt('odd', { arguments: { toString: { required: true } } }, () => 'x')
    const missing = await ask(server, '2025-11-25', 'prompts/get', { name: 'triage', arguments: { tone: 'mild' } })
    expect(missing).toMatchObject({ error: { code: -32602, message: expect.stringContaining('argument id') } })
    expect(await ask(server, '2025-11-25', 'prompts/get', { name: 'odd', arguments: {} })).toMatchObject({
      error: { code: -32602 },
    })
  })

  it('refuses an argument that is no text', async () => {
    const answer = await ask(desk(), '2025-11-25', 'prompts/get', { name: 'triage', arguments: { id: 7 } })
    expect(answer).toMatchObject({
      error: { code: -32602, message: expect.stringContaining('params.arguments.id must be a string') },
    })
  })

  it('gives each wire only the content it knows (§1.5)', async () => {
    const server = desk()
    server.prompt('mixed', {}, () => [
      { content: { type: 'resource_link', uri: 'a://b', name: 'b' } },
      { content: { type: 'audio', data: 'AAAA', mimeType: 'audio/wav' } },
    ])
    const contents = async (revision: RevisionId): Promise<unknown[]> =>
      ((await get(server, revision, 'mixed'))['messages'] as Frame[]).map(({ content }) => (content as Frame)['type'])
    expect(await contents('2025-11-25')).toEqual(['resource_link', 'audio'])
    expect(await contents('2025-03-26')).toEqual(['text', 'audio'])
    expect(await contents('2024-11-05')).toEqual(['text', 'resource'])
  })

  it('may ask the user first, on a wire where questions travel in results (trap 15)', async () => {
    const server = desk()
    server.prompt('asks', {}, async (_, ctx) => ((await ctx.confirm('Really?')) ? 'yes' : 'no'))
    const wire = await rawWire(server.acceptor, '2026-07-28')
    const _meta = { ...envelope('2026-07-28'), 'io.modelcontextprotocol/clientCapabilities': { elicitation: {} } }
    const { inputRequests, requestState } = (await wire.ask('prompts/get', { name: 'asks', _meta }))['result'] as Frame
    const inputResponses = Object.fromEntries(Object.keys(inputRequests as Frame).map(key => [key, { action: 'decline' }]))
    const answered = await wire.ask('prompts/get', { name: 'asks', inputResponses, requestState, _meta })
    expect(answered['result']).toMatchObject({ resultType: 'complete', messages: [{ content: { text: 'no' } }] })
  })
})

describe('the arguments of a prompt by a schema', () => {
  it('are shown from its properties, checked and transformed by it', async () => {
    const server = createServer({ name: 'desk', version: '1' })
    const schema = z.object({ count: z.coerce.number().int().describe('How many'), word: z.string().optional() })
    server.prompt('repeat', { arguments: schema }, ({ count, word }) => {
      expectTypeOf(count).toEqualTypeOf<number>()
      return (word ?? 'x').repeat(count)
    })
    const { result } = await ask(server, '2025-11-25', 'prompts/list')
    expect((result as { prompts: Frame[] }).prompts[0]?.['arguments']).toMatchObject([
      { name: 'count', description: 'How many' },
      { name: 'word', required: false },
    ])
    expect(await get(server, '2025-11-25', 'repeat', { count: '3' })).toMatchObject({ messages: [{ content: { text: 'xxx' } }] })
    const bad = await ask(server, '2025-11-25', 'prompts/get', { name: 'repeat', arguments: { count: 'many' } })
    expect(bad).toMatchObject({ error: { code: -32602, message: expect.stringContaining('count') } })
  })

  it('may also be plain JSON Schema', async () => {
    const server = createServer({ name: 'desk', version: '1' })
    const schema = { type: 'object', properties: { id: { type: 'string', description: 'Which' } }, required: ['id'] } as const
    server.prompt('by_id', { arguments: schema }, args => JSON.stringify(args))
    expect(await ask(server, '2025-11-25', 'prompts/get', { name: 'by_id' })).toMatchObject({ error: { code: -32602 } })
    expect(await get(server, '2025-11-25', 'by_id', { id: '1' })).toMatchObject({
      messages: [{ content: { text: '{"id":"1"}' } }],
    })
  })

  it('must be those of an object', () => {
    expect(() => createServer({ name: 'x', version: '1' }).prompt('p', { arguments: z.string() }, () => '')).toThrow(/object/)
  })
})
