import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import http from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { describe, expect, it, onTestFinished } from 'vitest'
import { connect } from '../../src/client/index.ts'
import { createLog, createServer } from '../../src/server/index.ts'

/** Secret, and in no way like a token. */
const canary = 'canary+in the/mine%1'
const careless = join(import.meta.dirname, 'careless-server.ts')
const secrets = { UPSTREAM_TOKEN: canary, SETTING: `${canary}-2`, VIVARIUM_SECRET: `${canary} of thirty-two characters` }

/** What was written or told, anywhere. The beginning is enough: nothing honest has it. */
function expectNoCanary(written: readonly string[], atLeast: number): void {
  const all = written.join('\n')
  expect(written.length).toBeGreaterThanOrEqual(atLeast)
  expect(all.match(/.{0,60}canary(?:[+ ]|%2B).{0,20}/gi) ?? []).toEqual([])
  expect(all).not.toContain('\u001b')
}

async function outcome(promise: Promise<unknown>): Promise<string> {
  return promise.then(
    value => JSON.stringify(value),
    (error: Error) => `${error.message} ${JSON.stringify('data' in error ? error.data : '')}`,
  )
}

function gather() {
  const lines: string[] = []
  return { lines, log: createLog({ level: 'debug', format: 'json', write: line => lines.push(line) }) }
}

describe('a canary in the environment of a server on stdio', () => {
  it.each(['debug', 'debug,json'])('is neither logged by it (%s), told to its client, nor logged by that', async setting => {
    const { lines, log } = gather()
    const stderr: string[] = []
    const env = { ...secrets, VIVARIUM_LOG: setting }
    const target = {
      command: process.execPath,
      args: ['--disable-warning=ExperimentalWarning', careless],
      env,
      stderr: (line: string) => void stderr.push(line),
    }
    const mcp = await connect(target, { log, revisions: ['2025-11-25'] })
    const told = await Promise.all([
      outcome(mcp.callTool('known')),
      outcome(mcp.callTool('request')),
      outcome(mcp.callTool('thrown')),
      outcome(mcp.callTool('none', { token: canary })),
      outcome(mcp.readResource('x://a')),
      outcome(mcp.getPrompt('p', {})),
    ])
    await mcp.close()
    expect(stderr.join('\n')).toContain('Upstream refused [redacted]')
    expect(told.join('\n')).toContain('[redacted]')
    expectNoCanary([...stderr, ...told, ...lines], 12)
  })

  it('is not logged when frames are broken', async () => {
    const child = spawn(process.execPath, ['--disable-warning=ExperimentalWarning', careless], {
      env: { ...process.env, ...secrets, VIVARIUM_LOG: 'debug' },
    })
    const written: string[] = []
    for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', text => written.push(text))
    const call = { jsonrpc: '2.0', method: 'notifications/x', params: { access_token: canary } }
    const frames = [
      `{"token":"${canary}`,
      `[${JSON.stringify(canary)}]`,
      JSON.stringify(call),
      JSON.stringify({ ...call, id: { secret: canary } }),
    ]
    child.stdin.end(`${frames.join('\n')}\n`)
    await once(child, 'close')
    expectNoCanary(written, 2)
  })

  it('is not in the error of a command that dies with it on its lips', async () => {
    const { lines, log } = gather()
    const script = 'console.error("cannot use", process.env.SETTING); process.exit(3)'
    const failed = await outcome(
      connect({ command: process.execPath, args: ['-e', script], env: secrets, stderr: 'ignore' }, { log }),
    )
    expect(failed).toContain('cannot use [redacted]')
    expectNoCanary([failed, ...lines], 1)
  })

  it('is not in the error of a command that cannot be started', async () => {
    const { lines, log } = gather()
    const failed = await outcome(connect({ command: '/no/such/program', env: secrets }, { log }))
    expectNoCanary([failed, ...lines], 1)
  })
})

describe('a canary in the headers of a request', () => {
  it('is neither logged by the server nor told to anybody', async () => {
    const { lines, log } = gather()
    const server = createServer({ name: 'a', version: '1', log, secret: secrets.VIVARIUM_SECRET })
    onTestFinished(() => server.close())
    server.tool('echo', {}, () => {
      throw new Error(`The upstream does not like ${canary}, nor ${secrets.VIVARIUM_SECRET}`)
    })
    server.resource('x://a', { name: 'a' }, () => {
      throw new Error(`Not with ${canary}`)
    })
    const { url } = await server.listen()
    const credentials = {
      authorization: `Bearer ${canary}`,
      cookie: `sid=${canary}`,
      'x-api-key': canary,
      'mcp-session-id': canary,
    }
    const send = async (body: string, headers: object = credentials, query = '') => {
      const common = { 'content-type': 'application/json', accept: 'application/json, text/event-stream', ...headers }
      const response = await fetch(`${url}${query}`, { method: 'POST', body, headers: common })
      return `${response.status} ${JSON.stringify([...response.headers])} ${await response.text()}`
    }
    const { 'mcp-session-id': _, ...without } = credentials
    const initialize = request('initialize', {
      protocolVersion: '2025-11-25',
      capabilities: {},
      clientInfo: { name: 'x', version: '1' },
    })
    const opened = await fetch(url, {
      method: 'POST',
      body: initialize,
      headers: { ...without, 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
    })
    const session = { ...without, 'mcp-session-id': opened.headers.get('mcp-session-id') ?? '' }
    const told = [
      await send(request('tools/call', { name: 'echo', arguments: {} }), session),
      await send(request('resources/read', { uri: 'x://a' }), session),
      await send('{"broken', session, `?access_token=${encodeURIComponent(canary)}`),
      await send(request('tools/list', {})),
      await send('[]', { ...credentials, 'content-type': `text/${'x'}` }),
    ]
    expect(told[0]).toContain('[redacted]')
    expect(lines.join('\n')).toContain('tool-failed')
    expectNoCanary([...told, ...lines], 7)
  })

  it('is not logged by a client whose server says it back, nor in the words of what it throws', async () => {
    const { lines, log } = gather()
    const origin = await echoing()
    const headers = { authorization: `Bearer ${canary}`, 'x-api-key': canary }
    const mcp = await connect(origin, { headers, log, revisions: ['2025-11-25'], logLevel: 'debug' })
    await mcp.close()
    expect(lines.join('\n')).toContain('No: Bearer [redacted] or [redacted]')
    const told = [
      await outcome(connect(`${origin}moved`, { headers, log })),
      await outcome(connect(`${origin}none`, { headers, log })),
    ]
    expect(told[0]).toContain('code=[redacted]')
    expect(told[1]).toContain('Bearer [redacted]')
    expectNoCanary([...lines, ...told], 4)
  })
})

/** A server that repeats the credentials it was given, wherever it can. */
async function echoing(): Promise<string> {
  const opened = { protocolVersion: '2025-11-25', capabilities: { logging: {} }, serverInfo: { name: 'x', version: '1' } }
  const server = http.createServer(async (req, res) => {
    const text = Buffer.concat(await req.toArray()).toString()
    const { id, method }: { id?: number; method?: string } = text === '' ? {} : JSON.parse(text)
    const error = { code: -32000, message: `No: ${req.headers.authorization} or ${req.headers['x-api-key']}` }
    if (req.url === '/moved') return res.writeHead(302, { location: `/?code=${encodeURIComponent(canary)}` }).end()
    if (req.url === '/none' || method === undefined) return res.writeHead(404).end(`No: ${req.headers.authorization}`)
    if (id === undefined) return res.writeHead(202).end()
    res.writeHead(200, { 'content-type': 'application/json' })
    return res.end(JSON.stringify({ jsonrpc: '2.0', id, ...(method === 'initialize' ? { result: opened } : { error }) }))
  })
  onTestFinished(() => void server.close())
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
}

describe('a stdio server', () => {
  it('writes its log to standard error alone', async () => {
    const program = `import { createServer } from ${JSON.stringify(join(import.meta.dirname, '../../src/server/index.ts'))}
      const server = createServer({ name: 'a', version: '1', log: 'debug' })
      await server.stdio()`
    const child = promisify(execFile)(
      process.execPath,
      ['--disable-warning=ExperimentalWarning', '--input-type=module', '-e', program],
      { timeout: 10_000 },
    )
    child.child.stdin?.end(
      `${JSON.stringify({ jsonrpc: '2.0', method: 'notifications/none' })}\nno JSON\n${request('ping', {})}\n`,
    )
    const { stdout, stderr } = await child
    for (const line of stdout.trim().split('\n')) expect(JSON.parse(line)).toMatchObject({ jsonrpc: '2.0' })
    expect(stderr).toMatch(/vivarium info .*server=a/)
  })
})

function request(method: string, params: object): string {
  return JSON.stringify({ jsonrpc: '2.0', id: 1, method, params })
}
