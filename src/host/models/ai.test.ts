import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type ProviderServer, providerServer } from '../../../test/model/provider-server.ts'
import { Problem } from '../../core/problem.ts'
import type { Model, ModelPart, ModelRequest } from './model.ts'
import { anthropic, modelFromEnvironment, openai } from './providers.ts'

let provider: ProviderServer
beforeAll(async () => {
  provider = await providerServer()
})
afterAll(() => provider.close())
beforeEach(() => {
  provider.requests.length = 0
  provider.answers.length = 0
})

const never = new AbortController().signal
const add = {
  name: 'add',
  description: 'Adds',
  inputSchema: { type: 'object', properties: { a: { type: 'number' } }, required: ['a'] },
}
const asked: ModelRequest = {
  system: [{ type: 'text', text: 'Be brief.' }],
  messages: [
    {
      role: 'user',
      content: [
        { type: 'text', text: '1 + 2?' },
        { type: 'image', data: 'iVBORw0KGgo=', mimeType: 'image/png' },
      ],
    },
    {
      role: 'assistant',
      content: [
        { type: 'text', text: 'Let me see.' },
        { type: 'tool_use', id: 'c1', name: 'add', arguments: { a: 1 } },
      ],
    },
    { role: 'tool', results: [{ id: 'c1', content: [{ type: 'text', text: '3' }], isError: false }] },
  ],
  tools: [add],
  maxTokens: 100,
  temperature: 0.5,
  stop: ['END'],
}

async function all(model: Model, request = asked, signal = never): Promise<readonly ModelPart[]> {
  const parts: ModelPart[] = []
  for await (const part of model.generate(request, { signal })) parts.push(part)
  return parts
}

const vendors: readonly (readonly [string, () => Model])[] = [
  ['anthropic', () => anthropic({ apiKey: 'secret', baseURL: provider.url, model: 'claude-haiku-4-5' })],
  ['openai', () => openai({ apiKey: 'secret', baseURL: provider.url, model: 'gpt-test' })],
]

describe.each(vendors)('%s', (vendor, open) => {
  test('streams words as they come, and tells what it cost', async () => {
    provider.answers.push({ text: ['It ', 'is ', '3.'] })
    expect(await all(open())).toEqual([
      { type: 'text', delta: 'It ' },
      { type: 'text', delta: 'is ' },
      { type: 'text', delta: '3.' },
      { type: 'end', finishReason: 'end_turn', usage: { inputTokens: 25, outputTokens: 12 }, model: open().info.id },
    ])
  })

  test('asks for tools with whole arguments, though they come in pieces', async () => {
    provider.answers.push({
      text: ['Adding.'],
      calls: [
        { id: 'c2', name: 'add', arguments: { a: 1, deep: { b: [2] } } },
        { id: 'c3', name: 'add', arguments: {} },
      ],
    })
    const parts = await all(open())
    expect(parts.filter(({ type }) => type === 'tool_use')).toEqual([
      { type: 'tool_use', id: 'c2', name: 'add', arguments: { a: 1, deep: { b: [2] } } },
      { type: 'tool_use', id: 'c3', name: 'add', arguments: {} },
    ])
    expect(parts.at(-1)).toMatchObject({ type: 'end', finishReason: 'tool_use' })
  })

  test('says that an answer was cut at its limit', async () => {
    provider.answers.push({ text: ['And so'], stop: vendor === 'anthropic' ? 'max_tokens' : 'length' })
    expect((await all(open())).at(-1)).toMatchObject({ finishReason: 'max_tokens' })
  })

  test.each([
    [429, { 'retry-after': '7' }, 'RATE_LIMIT_EXCEEDED', 7_000],
    [429, { 'retry-after-ms': '1500' }, 'RATE_LIMIT_EXCEEDED', 1_500],
    [529, {}, 'SERVER_UNAVAILABLE', undefined],
    [500, {}, 'SERVER_UNAVAILABLE', undefined],
    [401, {}, 'AUTHENTICATION_REQUIRED', undefined],
    [400, {}, 'INVALID_INPUT', undefined],
  ])('the status %i with %o is a Problem', async (status, headers, code, retryAfter) => {
    provider.answers.push({ status, headers, error: 'no luck' })
    const error = await all(open()).catch((thrown: unknown) => thrown)
    expect(error).toBeInstanceOf(Problem)
    expect(error).toMatchObject({ code, retryAfter })
    expect((error as Problem).message).toContain('no luck')
    expect((error as Problem).message).not.toContain('secret')
    expect(provider.requests).toHaveLength(1)
  })

  test('hangs up when nobody wants the answer any more', async () => {
    provider.answers.push({ text: ['Well, '], stalls: true })
    const stop = new AbortController()
    const heard: string[] = []
    await expect(async () => {
      for await (const part of open().generate(asked, { signal: stop.signal })) {
        if (part.type === 'text') heard.push(part.delta)
        stop.abort(new Error('enough'))
      }
    }).rejects.toThrow('enough')
    expect(heard).toEqual(['Well, '])
    await provider.hungUp
  })

  test('a provider that is not there is a Problem that waiting may help with', async () => {
    const away =
      vendor === 'anthropic'
        ? anthropic({ apiKey: 'k', baseURL: 'http://127.0.0.1:9/v1' })
        : openai({ apiKey: 'k', baseURL: 'http://127.0.0.1:9/v1' })
    const error = await all(away).catch((thrown: unknown) => thrown)
    expect(error).toMatchObject({ code: 'SERVER_UNAVAILABLE', retryable: true })
  })
})

test('what goes to Anthropic is its own message format', async () => {
  provider.answers.push({ text: ['3'] })
  await all(anthropic({ apiKey: 'secret', baseURL: provider.url, model: 'claude-haiku-4-5' }))
  const [{ path, headers, body } = { path: '', headers: {}, body: {} }] = provider.requests
  expect(path).toBe('/v1/messages')
  expect(headers).toMatchObject({ 'x-api-key': 'secret', 'anthropic-version': '2023-06-01' })
  expect(body).toMatchObject({
    model: 'claude-haiku-4-5',
    max_tokens: 100,
    temperature: 0.5,
    stop_sequences: ['END'],
    stream: true,
    system: [{ type: 'text', text: 'Be brief.' }],
    tools: [{ name: 'add', description: 'Adds', input_schema: add.inputSchema }],
    messages: [
      {
        role: 'user',
        content: [
          { type: 'text', text: '1 + 2?' },
          { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'iVBORw0KGgo=' } },
        ],
      },
      {
        role: 'assistant',
        content: [
          { type: 'text', text: 'Let me see.' },
          { type: 'tool_use', id: 'c1', name: 'add', input: { a: 1 } },
        ],
      },
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'c1' }] },
    ],
  })
})

test('what goes to OpenAI is its chat format', async () => {
  provider.answers.push({ text: ['3'] })
  await all(openai({ apiKey: 'secret', baseURL: provider.url, model: 'gpt-test' }))
  const [{ path, headers, body } = { path: '', headers: {}, body: {} }] = provider.requests
  expect(path).toBe('/v1/chat/completions')
  expect(headers).toMatchObject({ authorization: 'Bearer secret' })
  expect(body).toMatchObject({
    model: 'gpt-test',
    stream: true,
    stop: ['END'],
    tools: [{ type: 'function', function: { name: 'add', parameters: add.inputSchema } }],
    messages: [
      { content: 'Be brief.' },
      { role: 'user' },
      {
        role: 'assistant',
        content: 'Let me see.',
        tool_calls: [{ id: 'c1', type: 'function', function: { name: 'add', arguments: '{"a":1}' } }],
      },
      { role: 'tool', tool_call_id: 'c1', content: '3' },
    ],
  })
})

test('the environment chooses the model', () => {
  expect(modelFromEnvironment({}).info.id).toBe('offline-assistant')
  expect(modelFromEnvironment({ ANTHROPIC_API_KEY: 'k', ANTHROPIC_MODEL: 'claude-x' }).info).toMatchObject({
    id: 'claude-x',
    vendor: 'anthropic',
  })
  expect(modelFromEnvironment({ OPENAI_BASE_URL: 'http://127.0.0.1:1/v1', OPENAI_MODEL: 'local' }).info).toMatchObject({
    id: 'local',
    vendor: 'openai',
  })
})

test('without a key a provider is refused at once, and the refusal says what to set', () => {
  expect(() => anthropic({ apiKey: '' })).toThrow('No API key for Anthropic is set')
  expect(() => openai({ apiKey: '' })).toThrow('No API key for OpenAI is set')
})
