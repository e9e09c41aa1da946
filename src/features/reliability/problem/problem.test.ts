import { afterEach, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { expectFits } from '../../../../test/extension-schemas.ts'
import { envelope, type Frame, resultOf, speak, textOf } from '../../../../test/spec/wire.ts'
import type { RevisionId } from '../../../revisions/index.ts'
import { createServer, McpError, problem, type Server } from '../../../server/index.ts'
import { connectInMemory } from '../../../testing/index.ts'
import { problemExtension } from './messages.ts'

const revisions: readonly RevisionId[] = ['2025-11-25', '2026-07-28']
const knowing = { capabilities: { extensions: { [problemExtension]: {} } } }
const leak = 'ENOENT: no such file, open /srv/app/secrets.json'

const servers: Server[] = []
afterEach(async () => {
  for (const server of servers.splice(0)) await server.close()
})

function make(): Server {
  const server = createServer({
    name: 'problems',
    version: '1.0.0',
    log: 'silent',
    limits: { callsPerConversation: 2, rates: { calls: { perSecond: 1, burst: 20 } } },
  })
  servers.push(server)
  server.tool('say', { input: z.object({ code: z.string(), more: z.record(z.string(), z.unknown()).optional() }) }, args => {
    throw problem(args.code, 'The title is too short', args.more)
  })
  server.tool('shout', { input: z.object({ words: z.string() }) }, ({ words }) => {
    throw Object.assign(new Error(words), { stack: `Error: ${words}\n    at open (/srv/app/db.ts:12:3)` })
  })
  server.tool(
    'slow',
    { timeout: '20ms' },
    (_, ctx) =>
      new Promise((_resolve, reject) => {
        ctx.signal.addEventListener('abort', () => reject(ctx.signal.reason))
      }),
  )
  server.tool('busy', {}, (_, ctx) => new Promise<string>(resolve => ctx.signal.addEventListener('abort', () => resolve('gone'))))
  server.tool('rare', { rate: { perSecond: 0.5, burst: 1 } }, () => 'now')
  server.prompt('refuses', {}, () => {
    throw problem('RATE_LIMIT_EXCEEDED', 'Not so fast', { retryAfter: 1500 })
  })
  server.resource('x://broken', { name: 'broken' }, () => {
    throw new Error(leak)
  })
  return server
}

/** The problem object of a frame, wherever it is. */
function told(frame: Frame): Frame {
  const { result, error } = frame as { result?: { _meta?: Frame }; error?: { data?: Frame } }
  const found = (result?._meta ?? error?.data)?.[problemExtension] as Frame
  expectFits(found, 'error.schema.json')
  return found
}

describe.each(revisions)('problems at %s', revision => {
  it('E11-1: what a handler throws as a problem comes with all its parts', async () => {
    const wire = await speak(make(), revision, knowing)
    const more = {
      category: 'transient',
      retryAfter: 1200,
      suggestion: 'Use at least 3 characters',
      actor: 'user',
      details: { field: 'title' },
      documentation: 'https://example.com/titles',
    }
    const answer = await wire.ask('tools/call', { name: 'say', arguments: { code: 'TITLE_SHORT', more } })
    expect(told(answer)).toEqual({
      code: 'TITLE_SHORT',
      message: 'The title is too short',
      category: 'transient',
      retry_after_seconds: 2,
      user_actionable: true,
      suggestion: 'Use at least 3 characters',
      details: { field: 'title' },
      documentation_url: 'https://example.com/titles',
    })
    expect(resultOf(answer)['isError']).toBe(true)
  })

  it.each([
    ['bad arguments', 'tools/call', { name: 'say', arguments: {} }, 'INVALID_INPUT', 'invalid_input'],
    ['a handler that breaks', 'tools/call', { name: 'shout', arguments: { words: 'oh' } }, 'SERVER_ERROR', 'permanent'],
    ['a tool that takes too long', 'tools/call', { name: 'slow' }, 'OPERATION_TIMEOUT', 'transient'],
    ['an unknown tool', 'tools/call', { name: 'none' }, 'RESOURCE_NOT_FOUND', 'permanent'],
    ['a prompt that refuses', 'prompts/get', { name: 'refuses' }, 'RATE_LIMIT_EXCEEDED', 'rate_limited'],
    ['a resource that breaks', 'resources/read', { uri: 'x://broken' }, 'SERVER_ERROR', 'permanent'],
    ['parameters that are none', 'tools/call', { name: 7 }, 'INVALID_INPUT', 'invalid_input'],
  ])('E11-1: %s is a problem', async (_, method, params, code, category) => {
    const wire = await speak(make(), revision, knowing)
    expect(told(await wire.ask(method, params))).toMatchObject({ code, category })
  })

  it('E11-1: limits are problems that say how long to wait', async () => {
    const wire = await speak(make(), revision, knowing)
    await wire.ask('tools/call', { name: 'rare' })
    expect(told(await wire.ask('tools/call', { name: 'rare' }))).toMatchObject({
      code: 'RATE_LIMIT_EXCEEDED',
      category: 'rate_limited',
      retry_after_seconds: 2,
    })
    const busy = [1, 2].map(() => wire.ask('tools/call', { name: 'busy' }).catch(() => undefined))
    expect(told(await wire.ask('tools/call', { name: 'busy' }))).toMatchObject({
      code: 'SERVER_UNAVAILABLE',
      category: 'transient',
      retry_after_seconds: 1,
    })
    await wire.close()
    expect(busy).toHaveLength(2)
  })

  it('E11-2: a peer that did not declare problems gets words that suffice, and nothing else', async () => {
    const wire = await speak(make(), revision)
    const more = { suggestion: 'Use at least 3 characters' }
    const answer = await wire.ask('tools/call', { name: 'say', arguments: { code: 'X', more } })
    expect(textOf(answer)).toBe('The title is too short. Use at least 3 characters')
    expect(JSON.stringify(answer)).not.toContain(problemExtension)
    expect(JSON.stringify(await wire.ask('tools/call', { name: 'none' }))).not.toContain(problemExtension)
  })

  it.each([leak, 'GET https://api.internal/v1 failed', 'upstream said {"password":"x"}', '<html>502</html>', 'a\n    at b'])(
    'E11-7: a handler that throws "%s" tells nobody of the inside',
    async words => {
      const wire = await speak(make(), revision, knowing)
      const answer = await wire.ask('tools/call', { name: 'shout', arguments: { words } })
      expect(told(answer)).toMatchObject({ code: 'SERVER_ERROR', correlation_id: expect.any(String) })
      for (const part of [words, 'srv', 'db.ts', 'password', 'internal']) expect(JSON.stringify(answer)).not.toContain(part)
      expect(JSON.stringify(await wire.ask('resources/read', { uri: 'x://broken' }))).not.toContain('srv')
    },
  )

  it('E11-7: what a handler says in a plain sentence is told', async () => {
    const wire = await speak(make(), revision)
    expect(textOf(await wire.ask('tools/call', { name: 'shout', arguments: { words: 'There is no ticket 7' } }))).toBe(
      'There is no ticket 7',
    )
  })

  it('E11-8: an address of documentation that is not https is dropped', async () => {
    const wire = await speak(make(), revision, knowing)
    const more = { documentation: 'http://example.com' }
    const answer = await wire.ask('tools/call', { name: 'say', arguments: { code: 'X', more } })
    expect(told(answer)).not.toHaveProperty('documentation_url')
  })

  it('E11-9: details beyond 8 KiB are left out', async () => {
    const wire = await speak(make(), revision, knowing)
    const more = { details: { long: 'x'.repeat(9_000) } }
    const answer = await wire.ask('tools/call', { name: 'say', arguments: { code: 'X', more } })
    expect(told(answer)['details']).toEqual({ truncated: true })
  })

  it('E11-10: an unknown tool stays −32602', async () => {
    const wire = await speak(make(), revision, knowing)
    expect(await wire.ask('tools/call', { name: 'none' })).toMatchObject({ error: { code: -32602 } })
  })

  it('a failure of the protocol that an author throws keeps its number and data', async () => {
    const server = make()
    server.tool('own', {}, () => {
      throw new McpError('my-kind', 'No', { code: 1234, data: { a: 1 } })
    })
    const wire = await speak(server, revision, knowing)
    const { error } = (await wire.ask('tools/call', { name: 'own' })) as { error: Frame }
    expect(error).toMatchObject({ code: 1234, data: { a: 1, [problemExtension]: { code: 'INVALID_INPUT' } } })
  })

  it('E11-5, E11-6: a client reads the problem of a result, whatever it is called', async () => {
    const mcp = await connectInMemory(make(), { revision })
    const more = { category: 'transient', retryAfter: 5_000, actor: 'user', suggestion: 'Wait' }
    const out = await mcp.callTool('say', { code: 'UPSTREAM_ERROR', more })
    expect(out.problem).toMatchObject({
      code: 'SERVER_UNAVAILABLE',
      category: 'transient',
      retryAfter: 5_000,
      actor: 'user',
      suggestion: 'Wait',
    })
    await mcp.close()
  })
})

it('a peer of a session may declare problems as an experiment', async () => {
  const wire = await speak(make(), '2025-06-18', { capabilities: { experimental: { [problemExtension]: {} } } })
  expect(told(await wire.ask('tools/call', { name: 'say', arguments: { code: 'X' } }))).toMatchObject({ code: 'X' })
})

it('where each request declares for itself, what another one declared counts for nothing', async () => {
  const wire = await speak(make(), '2026-07-28')
  const call = { name: 'say', arguments: { code: 'X' } }
  const first = await wire.ask('tools/call', { ...call, _meta: envelope('2026-07-28', knowing.capabilities) })
  expect(told(first)).toMatchObject({ code: 'X' })
  expect(JSON.stringify(await wire.ask('tools/call', call))).not.toContain(problemExtension)
})
