import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { afterEach, beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { connect } from '../../client/index.ts'
import { createServer } from '../../server/index.ts'
import { recordTape } from '../../testing/index.ts'
import type { Io } from '../io.ts'
import { run } from '../program.ts'

let folder: string
let file: string

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'tape-verb-'))
  file = join(folder, 'session.tape')
})
afterEach(() => rm(folder, { recursive: true, force: true }))

interface Started {
  readonly code: Promise<number>
  /** The first line on its output, as JSON. */
  readonly first: Promise<{ readonly url: string }>
  readonly text: () => string
  stop(): void
}

function start(words: readonly string[]): Started {
  const abort = new AbortController()
  const output = new PassThrough()
  let said = ''
  const { promise, resolve } = Promise.withResolvers<{ url: string }>()
  output.on('data', chunk => {
    said += chunk
    if (said.startsWith('{') && said.includes('\n') && words.includes('--port')) resolve(JSON.parse(said.split('\n')[0] ?? ''))
  })
  const io: Io = {
    ...{ input: new PassThrough(), output, errors: new PassThrough(), env: process.env },
    ...{ interactive: false, colour: false, signal: abort.signal },
  }
  return { code: run(words, io, '0'), first: promise, text: () => said, stop: () => abort.abort() }
}

async function greeter(greeting = 'Hello'): Promise<string> {
  const server = createServer({ name: 'greeter', version: '1.0.0' })
  server.tool('greet', {}, () => greeting)
  const { url, close } = await server.listen()
  onTestFinished(close)
  return url
}

async function greetedAt(url: string): Promise<string> {
  await using mcp = await connect(url)
  return (await mcp.callTool('greet')).text
}

describe('vivarium record', () => {
  test('says where the client connects, and leaves a tape that vivarium replay takes', async () => {
    const url = await greeter()
    const recording = start(['record', url, '--out', file, '--port', '0', '--format', 'json'])
    expect(await greetedAt((await recording.first).url)).toBe('Hello')
    recording.stop()
    expect(await recording.code).toBe(0)
    const same = start(['replay', file, '--against', url])
    expect(await same.code).toBe(0)
    expect(same.text()).toMatch(/no differences/)
  })

  test('leaves a tape that is there as it is, unless it is told to write over it and can begin', async () => {
    const url = await greeter()
    await writeFile(file, 'an old tape\n')
    await expect(start(['record', url, '--out', file, '--port', '0']).code).rejects.toMatchObject({ fix: /--force/ })
    const busy = new URL(url).port
    await expect(start(['record', url, '--out', file, '--force', '--port', busy]).code).rejects.toThrow('EADDRINUSE')
    expect(await readFile(file, 'utf8')).toBe('an old tape\n')
    const recording = start(['record', url, '--out', file, '--force', '--port', '0', '--format', 'json'])
    await recording.first
    recording.stop()
    await recording.code
    expect(await readFile(file, 'utf8')).toMatch(/^\{.*"recording":1/)
  })

  test('refuses a client on stdio and on a port at once', async () => {
    await expect(start(['record', 'http://127.0.0.1:1/mcp', '--stdio', '--port', '1', '--out', file]).code).rejects.toMatchObject(
      {
        message: '--stdio and --port cannot be used together',
      },
    )
  })
})

describe('vivarium replay', () => {
  async function recorded(): Promise<void> {
    const tape = recordTape(file)
    const mcp = await connect(await greeter(), { wrap: tape.wrap })
    await mcp.callTool('greet')
    await mcp.close()
    tape.close()
  }

  test('ends with 1 where the server answers otherwise, and shows how', async () => {
    await recorded()
    const replay = start(['replay', file, '--against', await greeter('Good day')])
    expect(await replay.code).toBe(1)
    expect(replay.text()).toMatch(/answer to tools\/call .*result\.content\[0\]\.text\n {2}- Hello\n {2}\+ Good day/)
    const json = start(['replay', file, '--format', 'json', '--against', await greeter('Good day')])
    expect(await json.code).toBe(1)
    expect(JSON.parse(json.text())).toMatchObject({ differences: [{ before: 'Hello', after: 'Good day' }] })
    expect(
      await start(['replay', file, '--timeout', '20s', '--ignore', '**.text', '--against', await greeter('Good day')]).code,
    ).toBe(0)
  })

  test('serves the tape until it is ended, with faults', async () => {
    await recorded()
    const mock = start(['replay', file, '--serve', '--port', '0', '--format', 'json', '--fault', 'error=-32001@tools/call'])
    await expect(greetedAt((await mock.first).url)).rejects.toThrow(/injected by a fault/)
    mock.stop()
    expect(await mock.code).toBe(0)
  })

  test('a tape without the handshake that is wanted is told in words of the command', async () => {
    await recorded()
    const mock = start(['replay', file, '--serve', '--port', '0', '--format', 'json'])
    const { url } = await mock.first
    const listing = start(['list', url, '--revision', '2024-11-05'])
    await expect(listing.code).rejects.toMatchObject({ fix: expect.stringMatching(/try --revision/) })
    mock.stop()
    await mock.code
  })

  test('says what is wrong with a file, and with words that ask for nothing or for two things', async () => {
    await expect(start(['replay', file, '--serve']).code).rejects.toMatchObject({ message: /The file \S+ does not exist/ })
    await writeFile(file, 'no tape\n')
    await expect(start(['replay', file, '--serve']).code).rejects.toMatchObject({
      message: 'Line 1 of the tape is not valid JSON',
    })
    await recorded()
    await expect(start(['replay', file]).code).rejects.toMatchObject({
      fix: 'Use --against TARGET to compare, --serve to serve the tape, or --web to see it',
    })
    await expect(start(['replay', file, '--serve', '--against', 'x']).code).rejects.toMatchObject({ message: /one thing only/ })
    expect(await readFile(file, 'utf8')).toContain('Hello')
  })
})
