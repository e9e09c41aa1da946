/** Middleware that only passes on changes nothing on any wire; one that acts is held to the wire all the same (item 6). */
import { afterEach, describe, expect, it } from 'vitest'
import type { RevisionId } from '../../src/revisions/index.ts'
import { McpError, type Server } from '../../src/server/index.ts'
import { accept, askingServer, drive, everything } from './asking-server.ts'
import { richServer } from './rich-server.ts'
import { callName, errorOf, everyRevision, type Frame, official, requestRevisions, resultOf, speak, textOf } from './wire.ts'

const closers: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close()
})

const made = (server: Server): Server => {
  closers.push(() => server.close())
  return server
}

function requests(revision: RevisionId): readonly (readonly [string, Frame])[] {
  const call = callName(revision)
  return [
    ['tools/list', {}],
    ...['rich', 'numbers', 'tree', 'picture', 'bars', 'word', 'plain', 'fails', 'nobody'].map(name => [call, { name }] as const),
    [call, { name: 'rich', arguments: { region: 7 } }],
    ['resources/list', {}],
    ['resources/read', { uri: 'file:///rich.txt' }],
    ['resources/read', { uri: 'file:///none' }],
    ['prompts/list', {}],
    ['prompts/get', { name: 'rich', arguments: { topic: 'x' } }],
    ['prompts/get', { name: 'rich' }],
    ['completion/complete', { ref: { type: 'ref/prompt', name: 'rich' }, argument: { name: 'topic', value: '' } }],
    ['no/such', {}],
    ['ping', {}],
  ]
}

describe.each(everyRevision)('at %s', revision => {
  it('what only passes on changes no answer', async () => {
    const plain = await speak(made(richServer()), revision)
    const wrapped = await speak(
      made(
        richServer()
          .use((call, next) => next(call))
          .use(async (call, next) => next(call)),
      ),
      revision,
    )
    for (const [method, params] of requests(revision)) {
      const [one, two] = [await plain.ask(method, params, 'same'), await wrapped.ask(method, params, 'same')]
      expect([method, params, two]).toEqual([method, params, one])
    }
  })

  it('what throws a protocol failure is numbered by the wire, anything else is an internal failure without its words', async () => {
    const server = made(richServer())
    server.use((call, next) => {
      if (call.method === 'tools/list') throw new McpError('resource-not-found', 'not here')
      if (call.method === 'prompts/list') throw new Error('secret detail')
      return next(call)
    })
    const wire = await speak(server, revision)
    expect(errorOf(await wire.ask('tools/list')).code).toBe(revision === '2026-07-28' ? -32602 : -32002)
    const { code, message } = errorOf(await wire.ask('prompts/list'))
    expect([code, message]).toEqual([-32603, expect.not.stringContaining('secret')])
  })

  it('sees the canonical name of a method, and may change its params', async () => {
    const server = made(richServer())
    const seen: string[] = []
    server.use((call, next) => {
      seen.push(call.method)
      return next(call.method === 'tools/call' ? { ...call, params: { ...call.params, name: 'plain' } } : call)
    })
    const wire = await speak(server, revision)
    const { content, output } = resultOf(await wire.ask(callName(revision), { name: 'fails' }))
    expect([revision === 's3' ? output : (content as Frame[])[0]?.['text'], seen]).toEqual([
      'just text',
      expect.arrayContaining(['tools/call']),
    ])
  })
})

describe.each(official)('a result of middleware at %s', revision => {
  it('goes down the same steps as any other', async () => {
    const server = made(richServer())
    const instead = { content: [{ type: 'resource_link', uri: 'x://y', name: 'y' }], structuredContent: [1] }
    server.use((call, next) => (call.method === 'tools/call' ? instead : next(call)))
    server.use((call, next) => next(call))
    const wire = await speak(server, revision)
    const { content, structuredContent } = resultOf(await wire.ask('tools/call', { name: 'plain' }))
    const old = revision === '2024-11-05' || revision === '2025-03-26'
    expect((content as Frame[])[0]?.['type']).toBe(old ? 'text' : 'resource_link')
    expect(structuredContent).toEqual(revision === '2026-07-28' ? [1] : old ? undefined : { result: [1] })
  })
})

describe.each(requestRevisions)('asking through middleware at %s', revision => {
  it('works as without: what was asked is not taken for a failure', async () => {
    const { server, traces } = askingServer()
    made(server)
    const outcomes: string[] = []
    server.use(async (call, next) => {
      try {
        const result = await next(call)
        outcomes.push('result')
        return result
      } catch (error) {
        outcomes.push(error instanceof McpError ? error.kind : 'other')
        throw error
      }
    })
    const wire = await speak(server, revision, { capabilities: everything })
    const { last, rounds } = await drive(wire, 'tools/call', { name: 'book', arguments: {} }, accept)
    expect([textOf(last), rounds.length, outcomes, traces]).toEqual([
      'booked for Ada',
      2,
      ['suspended', 'suspended', 'result'],
      [],
    ])
  })
})
