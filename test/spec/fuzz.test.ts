/** Whatever comes, on every wire: the process lives, every request with a readable id gets exactly one answer, nothing is out of bounds. */
import fc from 'fast-check'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { isRecord } from '../../src/jsonrpc/message.ts'
import { createServer, jsonSchema, type Server } from '../../src/server/index.ts'
import { message } from './fuzz-messages.ts'
import { headersFor, send } from './http.ts'
import { everyRevision, type Frame, speak, type Wire } from './wire.ts'

let server: Server
let url: string
const loose: unknown[] = []
const note = (reason: unknown): void => {
  loose.push(reason)
}

beforeAll(async () => {
  process.on('unhandledRejection', note)
  server = createServer({
    name: 'fuzzed',
    version: '1.0.0',
    revisions: everyRevision,
    limits: { rates: false, sessions: 1_000_000 },
    onTrace: () => {},
  })
  server.tool('echo', { input: jsonSchema({ type: 'object', properties: { text: { type: 'string' } } }) }, args =>
    JSON.stringify(args).length.toString(),
  )
  server.tool('asks', {}, async (_, ctx) => String(await ctx.confirm('Sure?')))
  server.tool('fails', {}, () => Promise.reject(new Error('failed')))
  server.tool('task', { task: 'optional' }, () => 'task')
  server.tool('slow', {}, async () => {
    await new Promise<void>(resolve => setImmediate(() => resolve()))
    return 'slow'
  })
  server.resource('memo://one', { name: 'one' }, () => 'one')
  server.resource('note://{id}', { name: 'note', complete: { id: value => [value] } }, ({ id }) => id)
  server.prompt('brief', { arguments: { topic: { complete: value => [value] } } }, ({ topic }) => topic ?? 'none')
  url = (await server.listen()).url
})
afterAll(async () => {
  await server.close()
  process.off('unhandledRejection', note)
})
beforeEach(() => {
  loose.length = 0
})

const isId = (id: unknown): boolean => (typeof id === 'string' ? id.length <= 1_024 : Number.isSafeInteger(id))

/** What a message must be answered with: an answer under its id, one without, none, or what only the server can know. */
function expected(sent: unknown): 'id' | 'bare' | 'none' {
  if (!isRecord(sent)) return 'bare'
  const { id, method, jsonrpc } = sent
  if (method === undefined && ('result' in sent || 'error' in sent)) return jsonrpc === '2.0' ? 'none' : 'bare'
  if (isId(id)) return 'id'
  // Without an id it passes for something that was only told.
  if (typeof method === 'string' && id === undefined) return 'none'
  return 'bare'
}

const key = (frame: Frame): string => ('id' in frame && frame['id'] !== null ? JSON.stringify(frame['id']) : 'bare')

/** The answers that came, by id. */
function counted(frames: readonly Frame[]): Map<string, number> {
  const counts = new Map<string, number>()
  for (const frame of frames) if (frame['method'] === undefined) counts.set(key(frame), (counts.get(key(frame)) ?? 0) + 1)
  return counts
}

function wanted(messages: readonly unknown[]): Map<string, number> {
  const counts = new Map<string, number>()
  for (const sent of messages) {
    const answer = expected(sent)
    const under = answer === 'id' ? JSON.stringify((sent as Frame)['id']) : answer
    if (under !== 'none') counts.set(under, (counts.get(under) ?? 0) + 1)
  }
  return counts
}

function checkFrame(frame: Frame): void {
  expect(frame['jsonrpc']).toBe('2.0')
  if (frame['method'] !== undefined) return
  expect('result' in frame).toBe(!('error' in frame))
  expect(Object.keys(frame).every(name => ['jsonrpc', 'id', 'result', 'error'].includes(name))).toBe(true)
  if (!('error' in frame)) return
  const { code, message: said } = frame['error'] as Frame
  expect([Number.isInteger(code), typeof said]).toEqual([true, 'string'])
  expect(String(said).length).toBeLessThan(1_000)
  expect(JSON.stringify(frame).length).toBeLessThan(4_000)
}

/** Until all that is wanted is there, or it has become clear that it will not be. */
async function settled(wire: Wire, wants: ReadonlyMap<string, number>, from: number): Promise<Map<string, number>> {
  for (let turn = 0; turn < 3_000; turn++) {
    const have = counted(wire.heard.slice(from))
    if ([...wants].every(([id, count]) => (have.get(id) ?? 0) >= count)) return have
    await new Promise<void>(resolve => (turn < 50 ? setImmediate(() => resolve()) : setTimeout(resolve, 1)))
  }
  return counted(wire.heard.slice(from))
}

describe.each(everyRevision)('a pipe at %s', revision => {
  it('answers each request with a readable id once, and nothing else', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(message(revision), { minLength: 1, maxLength: 8 }), async messages => {
        const wire = await speak(server, revision)
        const from = wire.heard.length
        // Arrays are another property; what is no JSON text cannot be said.
        const sent = messages.filter(each => !Array.isArray(each) && each !== undefined)
        for (const each of sent) wire.say(JSON.stringify(each))
        const reread = sent.map(each => JSON.parse(JSON.stringify(each)))
        const wants = wanted(reread)
        await settled(wire, wants, from)
        wire.say({ jsonrpc: '2.0', id: 'the end', method: 'no/such' })
        await wire.next(frame => frame['id'] === 'the end')
        const have = counted(wire.heard.slice(from).filter(frame => frame['id'] !== 'the end'))
        expect([...have].sort()).toEqual([...wants].sort())
        for (const frame of wire.heard) checkFrame(frame)
        await wire.close()
      }),
      { numRuns: 120, interruptAfterTimeLimit: 8_000, markInterruptAsFailure: false },
    )
    expect(loose).toEqual([])
  })

  it('answers arrays as one, or refuses them as one', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(message(revision), { maxLength: 5 }), async messages => {
        const wire = await speak(server, revision)
        const from = wire.heard.length
        wire.say(JSON.stringify(messages))
        wire.say({ jsonrpc: '2.0', id: 'the end', method: 'no/such' })
        await wire.next(frame => frame['id'] === 'the end')
        await wire.quiet()
        for (const frame of wire.heard.slice(from)) checkFrame(frame)
        const results = wire.heard.slice(from).filter(frame => 'result' in frame)
        if (revision !== '2025-03-26') expect(results).toEqual([])
        await wire.close()
      }),
      { numRuns: 40, interruptAfterTimeLimit: 5_000, markInterruptAsFailure: false },
    )
    expect(loose).toEqual([])
  })

  it('answers any handshake once', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.jsonValue({ maxDepth: 3 }),
        fc.constantFrom('protocolVersion', 'capabilities', 'clientInfo', 'mcpVersion', 'clientCapabilities', '_meta'),
        async (value, member) => {
          const wire = await speak(server, revision, { hello: false })
          const params = {
            protocolVersion: '2025-11-25',
            capabilities: {},
            clientInfo: { name: 'x', version: '1' },
            [member]: value,
          }
          wire.say({ jsonrpc: '2.0', id: 1, method: 'initialize', params })
          await wire.next(frame => frame['id'] === 1)
          await wire.quiet()
          expect(wire.heard.filter(frame => frame['id'] === 1).length).toBe(1)
          for (const frame of wire.heard) checkFrame(frame)
          await wire.close()
        },
      ),
      { numRuns: 60, interruptAfterTimeLimit: 4_000, markInterruptAsFailure: false },
    )
  })

  it('survives any text', async () => {
    const wire = await speak(server, revision)
    fc.assert(
      fc.property(
        fc.oneof(
          fc.string({ unit: 'binary', maxLength: 200 }),
          fc.json().map(text => text.slice(0, -1)),
        ),
        text => wire.say(text),
      ),
      { numRuns: 200 },
    )
    await wire.quiet()
    for (const frame of wire.heard) checkFrame(frame)
    await wire.close()
  })
})

describe.each(everyRevision.filter(id => id !== '2024-11-05'))('HTTP at %s', revision => {
  it('answers every body with a status of ours and a frame of the wire, never a crash', async () => {
    const header = fc.constantFrom(
      undefined,
      '',
      'x',
      '2025-06-18',
      '2026-07-28',
      'DRAFT-2026-v1',
      'tools/call',
      'echo',
      '=?base64?ZWNobw==?=',
    )
    const headers = fc.record(
      { 'mcp-protocol-version': header, 'mcp-method': header, 'mcp-name': header, 'mcp-session-id': header },
      { requiredKeys: [] },
    )
    await fc.assert(
      fc.asyncProperty(message(revision), headers, fc.boolean(), async (body, bent, right) => {
        if (body === undefined) return
        const { method, params } = (isRecord(body) ? body : {}) as { method?: unknown; params?: unknown }
        const proper =
          typeof method === 'string' && /^[\x21-\x7e]+$/.test(method)
            ? headersFor(revision, method, {})
            : headersFor(revision, 'x', {})
        const name = isRecord(params) ? (params['name'] ?? params['uri']) : undefined
        const named = typeof name === 'string' ? { 'mcp-name': `=?base64?${Buffer.from(name).toString('base64')}?=` } : {}
        const answer = await send(url, {
          headers: right ? { ...proper, ...named } : { ...proper, ...bent },
          body: JSON.stringify(body),
        })
        expect([200, 202, 400, 404]).toContain(answer.status)
        if (answer.status === 202) expect(answer.text).toBe('')
        for (const frame of answer.frames) if (isRecord(frame)) checkFrame(frame)
      }),
      { numRuns: 120, interruptAfterTimeLimit: 8_000, markInterruptAsFailure: false },
    )
    expect(loose).toEqual([])
  })
})
