import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import { type Client, type ConnectOptions, connect, type RevisionId } from '../client/index.ts'
import { createServer, type Server } from '../server/index.ts'
import { fakeClock } from '../testing/clock.ts'
import { replayTape, startRecording } from '../testing/connect.ts'
import { memoryPair } from '../transports/memory.ts'
import { openTape, serveTape, tapeOf } from './mock-server.ts'
import { recordTape } from './tap.ts'

let folder: string
let file: string

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'tape-'))
  file = join(folder, 'session.tape')
})
afterEach(() => rm(folder, { recursive: true, force: true }))

const wires: readonly RevisionId[] = ['2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25', '2026-07-28', 'draft-2026-v1', 's3']

function shop(price = 3): Server {
  const server = createServer({ name: 'shop', version: '1.0.0', secret: 'a secret of thirty-two characters', revisions: wires })
  server.tool('price', { input: z.object({ of: z.string() }), output: z.object({ price: z.number(), at: z.string() }) }, () => ({
    price,
    at: new Date().toISOString(),
  }))
  server.tool('slow', {}, async (_, ctx) => {
    await ctx.progress(1, { total: 2 })
    await ctx.progress(2, { total: 2 })
    return 'there'
  })
  server.tool('ask', {}, async (_, ctx) => {
    const answer = await ctx.elicit({ message: 'How many?', schema: z.object({ count: z.number() }) })
    return answer.action === 'accept' ? `You get ${answer.content.count}` : 'Nothing'
  })
  server.tool('login', { input: z.object({ password: z.string() }) }, () => 'in')
  return server
}

function dial(server: Server): () => ReturnType<typeof memoryPair>[0] {
  return () => {
    const [near, far] = memoryPair()
    server.acceptor.accept(far)
    return near
  }
}

const asking: ConnectOptions = { onElicit: async () => ({ action: 'accept', content: { count: 2 } }) }

async function visit(mcp: Client): Promise<string[]> {
  const steps: number[] = []
  const price = await mcp.callTool('price', { of: 'tea' })
  const slow = await mcp.callTool('slow', {}, { onProgress: ({ progress }) => void steps.push(progress) })
  const asked = await mcp.callTool('ask')
  return [String((price.structured as { price: number }).price), slow.text, steps.join(), asked.text]
}

async function recorded(options: ConnectOptions = {}, server = shop(), redact: readonly string[] = []): Promise<void> {
  const tape = recordTape(file, { redact })
  const mcp = await connect(dial(server)(), { ...asking, ...options, wrap: tape.wrap })
  await visit(mcp)
  await mcp.callTool('login', { password: 'hunter22' })
  await mcp.close()
  tape.close()
}

describe('a tape as a server', () => {
  for (const revision of wires.filter(id => id >= '2025-06-18' && id !== 's3'))
    test(`says on ${revision} what was said then, under the ids of now`, async () => {
      await recorded({ revisions: [revision] })
      const tape = await openTape(file)
      await using mcp = await connect(tape.target(), {
        ...asking,
        revisions: [revision],
        info: { name: 'another', version: '9' },
      })
      await mcp.callTool('login', { password: 'hunter22' })
      expect(await visit(mcp)).toEqual(['3', 'there', '1,2', 'You get 2'])
      expect(await visit(mcp)).toEqual(['3', 'there', '1,2', 'You get 2'])
    })

  test('refuses what the tape does not know, by its name', async () => {
    await recorded()
    await using mcp = await connect((await openTape(file)).target())
    await expect(mcp.callTool('price', { of: 'gold' })).rejects.toThrow(/The tape has no answer to tools\/call/)
  })

  test('serves over HTTP and takes its time when told to', async () => {
    await recorded({ revisions: ['2025-06-18'] })
    const clock = fakeClock()
    const mock = await serveTape(file, { speed: 0.001, clock })
    onTestFinished(() => mock.close())
    const opening = connect(mock.url ?? '', { revisions: ['2025-06-18'] })
    const early = await Promise.race([opening, new Promise(done => setImmediate(() => setImmediate(done)))])
    expect(early).toBeUndefined()
    const turning = setInterval(() => clock.advance(1_000_000), 5)
    onTestFinished(() => clearInterval(turning))
    await using mcp = await opening
    expect((await mcp.callTool('price', { of: 'tea' })).structured).toMatchObject({ price: 3 })
  })
})

describe('a tape against a server', () => {
  for (const revision of wires)
    test(`finds no difference to the server of then on ${revision}, though ids and times differ`, async () => {
      await recorded({ revisions: [revision] }).catch(() => {})
      const { differences, sent } = await replayTape(file, dial(shop()))
      expect(differences).toEqual([])
      expect(sent).toBeGreaterThan(2)
    })

  test('names what another server says otherwise, where, and what it was', async () => {
    await recorded()
    const { differences } = await replayTape(file, dial(shop(4)))
    expect(differences).toContainEqual(
      expect.objectContaining({
        conversation: 1,
        what: 'answer to tools/call',
        path: 'result.structuredContent.price',
        before: 3,
        after: 4,
      }),
    )
    const { differences: none } = await replayTape(file, dial(shop(4)), {
      ignore: ['**.price', '**.text.price', 'result.content[0].text.price'],
    })
    expect(none).toEqual([])
  })

  test('tells of answers that are missing, and of what comes beyond the tape', async () => {
    await recorded()
    const silent = (): ReturnType<typeof memoryPair>[0] => memoryPair()[0]
    const { differences } = await replayTape(file, silent, { timeoutMs: 1 })
    expect(differences[0]).toMatchObject({ after: 'nothing arrived', what: 'answer to server/discover' })
    const short = tapeOf(
      (await readFile(file, 'utf8'))
        .split('\n')
        .filter(line => !line.includes('notifications/progress'))
        .join('\n'),
    )
    const beyond = await replayTape(short, dial(shop()))
    expect(beyond.differences).toContainEqual(expect.objectContaining({ line: 0, what: 'notification notifications/progress' }))
  })
})

describe('faults', () => {
  async function faulty(faults: string[], seed = 1): Promise<Client> {
    await recorded({ revisions: ['2025-11-25'] })
    const tape = await openTape(file)
    const mcp = await connect(tape.target({ faults, seed }), { ...asking, revisions: ['2025-11-25'], retry: false, timeout: 300 })
    onTestFinished(() => mcp.close())
    return mcp
  }
  const price = (mcp: Client) =>
    mcp.callTool('price', { of: 'tea' }).then(
      ({ isError }) => (isError ? 'failed' : 'ok'),
      (error: Error) => error.message,
    )

  test('strike the method that they name, and no other', async () => {
    const mcp = await faulty(['error=-32603@tools/call', 'drop@prompts/*'])
    expect(await price(mcp)).toMatch(/injected by a fault/)
    await expect(mcp.ping()).resolves.toBeUndefined()
  })

  test('lose an answer, so that its time is over', async () => {
    expect(await price(await faulty(['drop@tools/call']))).toMatch(/300|time/i)
  })

  test('double, delay and reorder answers without changing them', async () => {
    const mcp = await faulty(['duplicate', 'delay=5ms@tools/call', 'reorder@tools/call'])
    expect(await Promise.all([price(mcp), price(mcp), price(mcp)])).toEqual(['ok', 'ok', 'ok'])
  })

  test('cut the connection', async () => {
    expect(await price(await faulty(['cut@tools/call']))).toMatch(/clos|lost|end/i)
  })

  test('cut the connection over HTTP, its socket too', async () => {
    await recorded({ revisions: ['2026-07-28'] })
    const mock = await serveTape(await openTape(file), { faults: ['cut@tools/call'] })
    onTestFinished(() => mock.close())
    const _meta = {
      'io.modelcontextprotocol/protocolVersion': '2026-07-28',
      'io.modelcontextprotocol/clientInfo': { name: 'x', version: '1' },
      'io.modelcontextprotocol/clientCapabilities': {},
    }
    const params = { name: 'price', arguments: { of: 'tea' }, _meta }
    const headers = {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      'mcp-protocol-version': '2026-07-28',
      'mcp-method': 'tools/call',
      'mcp-name': 'price',
    }
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params })
    const answer = await fetch(mock.url ?? '', { method: 'POST', headers, body })
    expect([answer.status, answer.headers.get('connection')]).toEqual([502, 'close'])
  })

  test('send bytes that are no message', async () => {
    expect(await price(await faulty(['garbage@tools/call']))).not.toBe('ok')
  })

  test('strike the same calls for the same seed', async () => {
    const failureDraw = async (seed: number): Promise<string> => {
      const mcp = await faulty(['error@tools/call:0.5'], seed)
      let text = ''
      for (let at = 0; at < 12; at++) text += (await price(mcp)) === 'ok' ? '.' : 'x'
      return text
    }
    const [one, again, other] = [await failureDraw(7), await failureDraw(7), await failureDraw(8)]
    expect(again).toBe(one)
    expect(other).not.toBe(one)
    expect(one).toMatch(/\.x|x\./)
  })

  test('are refused by name where they cannot be read', async () => {
    await recorded()
    const tape = await openTape(file)
    expect(() => tape.target({ faults: ['explode'] })).toThrow(/"explode" is not a valid fault\. Write KIND/)
    expect(() => tape.target({ faults: ['drop:2'] })).toThrow(/is not a valid fault/)
  })
})

test('a server that cannot be started, or goes amid a call, is told to the recorder and its client hears an end', async () => {
  const troubles: string[] = []
  const onTrouble = (error: Error): void => void troubles.push(error.message)
  const absent = await startRecording({ command: 'no-such-program-here' }, { file, onTrouble })
  onTestFinished(() => absent.close())
  await expect(connect(absent.url ?? '', { revisions: ['2025-11-25'], retry: false })).rejects.toThrow()
  expect(troubles[0]).toMatch(/Cannot start no-such-program-here/)
  const dying = { command: process.execPath, args: ['-e', 'process.stdin.once("data", () => process.exit(3))'] }
  const proxy = await startRecording(dying, { file, onTrouble })
  onTestFinished(() => proxy.close())
  await expect(connect(proxy.url ?? '', { revisions: ['2025-11-25'], retry: false })).rejects.toThrow()
  expect(troubles[1]).toMatch(/exit code 3/)
  const nobody = await startRecording('http://127.0.0.1:1/mcp', { file, onTrouble })
  onTestFinished(() => nobody.close())
  await expect(connect(nobody.url ?? '', { retry: false })).rejects.toThrow(/502/)
  expect(troubles[2]).toMatch(/ECONNREFUSED/)
})

describe('the file', () => {
  test('holds no named member, no secret header, and nobody else may read it', async () => {
    await recorded({}, shop(), ['params.arguments.password'])
    expect(await readFile(file, 'utf8')).not.toContain('hunter22')
    expect((await stat(file)).mode & 0o077).toBe(0)
    const { url, close } = await shop().listen()
    onTestFinished(close)
    const proxy = await startRecording(url, { file, headers: { 'x-api-key': 'key-of-the-recorder' } })
    onTestFinished(() => proxy.close())
    await using mcp = await connect(proxy.url ?? '', { headers: { authorization: 'Bearer very-secret' } })
    await mcp.callTool('price', { of: 'tea' })
    const text = await readFile(file, 'utf8')
    expect(text).toContain('"authorization":"[redacted]"')
    expect(text).not.toMatch(/very-secret|key-of-the-recorder/)
  })

  test('is whole up to the last frame when its writer is killed', async () => {
    const { url, close } = await shop().listen()
    onTestFinished(close)
    const script = `import { startRecording } from ${JSON.stringify(join(import.meta.dirname, '..', 'testing', 'connect.ts'))}
      const proxy = await startRecording(${JSON.stringify(url)}, { file: ${JSON.stringify(file)} })
      console.log(proxy.url)`
    const child = spawn(process.execPath, ['--input-type=module', '-e', script], { stdio: ['ignore', 'pipe', 'inherit'] })
    const [address] = await once(child.stdout, 'data')
    const mcp = await connect(String(address).trim())
    await mcp.callTool('price', { of: 'tea' })
    const exited = once(child, 'exit')
    child.kill('SIGKILL')
    await exited
    await mcp.close()
    const { conversations } = await openTape(file)
    expect(JSON.stringify(conversations)).toContain('structuredContent')
  })

  test('stops at its bound and says so, while all goes on passing', async () => {
    const tape = recordTape(file, { maxBytes: 4_000 })
    await using mcp = await connect(dial(shop())(), { wrap: tape.wrap })
    for (let at = 0; at < 20; at++) await mcp.callTool('price', { of: 'tea' })
    expect((await stat(file)).size).toBeLessThanOrEqual(4_000)
    expect((await openTape(file)).cut).toBe(true)
  })
})

test('a tape of the older form, which began with {"tape":1}, plays as it did', async () => {
  const tape = await openTape(join(import.meta.dirname, '../../test/tape/older/tape-1.jsonl'))
  expect(tape.header).toEqual({ recording: 1, began: '2026-11-18T11:14:48.561Z', by: 'vivarium 0.1.0' })
  await using mcp = await connect(tape.target(), { revisions: ['2025-06-18'] })
  expect((await mcp.callTool('price', { of: 'tea' })).content).toEqual([{ type: 'text', text: 'tea costs 3' }])
})

test('a value that was left out of a tape matches any, and the others only themselves', async () => {
  await recorded({}, shop(), ['params.arguments.of'])
  const mcp = await connect((await openTape(file)).target(), asking)
  onTestFinished(() => mcp.close())
  expect((await mcp.callTool('price', { of: 'coffee' })).structured).toMatchObject({ price: 3 })
  await expect(mcp.callTool('price', { of: 'coffee', more: 1 })).rejects.toThrow()
})
