/** Servers that flood, die, answer too much or come late: what callers and whoever runs the gateway hear of it. Real processes. */
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { createServer as createHttpServer, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Client, connect } from '../../src/client/index.ts'
import { createGateway, type Gateway } from '../../src/gateway/index.ts'
import { createServer } from '../../src/server/index.ts'

let folder: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'bad-servers-'))
})
afterAll(() => rm(folder, { recursive: true }))

/** Tools: `big` answers with so many bytes, `die` ends it with words on stderr, `flood` writes lines there, `hi` is harmless. */
const program = `
const ok = (id, result) => process.stdout.write(JSON.stringify({ result, jsonrpc: '2.0', id }) + '\\n')
const text = text => ({ content: [{ type: 'text', text }] })
require('node:readline').createInterface({ input: process.stdin }).on('line', line => {
  const { id, method, params } = JSON.parse(line)
  if (method === 'initialize') return ok(id, { protocolVersion: '2025-06-18', capabilities: { tools: {} }, serverInfo: { name: 'bad', version: '1' } })
  if (method === 'tools/list') return ok(id, { tools: ['big', 'die', 'flood', 'hi'].map(name => ({ name, inputSchema: { type: 'object' } })) })
  if (method !== 'tools/call') return id === undefined ? undefined : process.stdout.write(JSON.stringify({ jsonrpc: '2.0', id, error: { code: -32601, message: 'no' } }) + '\\n')
  const { name, arguments: { n } = {} } = params
  if (name === 'big') return ok(id, text('x'.repeat(n)))
  if (name === 'die') return process.stderr.write('at /srv/secret.js with ' + process.env.API_KEY + '\\n', () => process.exit(3))
  if (name === 'flood') { for (let i = 0; i < n; i++) process.stderr.write('line ' + i + ' ' + process.env.API_KEY + '\\n'); return ok(id, text('done')) }
  ok(id, text('hi'))
})`

const command = { command: process.execPath, args: ['-e', program], env: { API_KEY: 'sk-very-secret-value' } }

async function clientOf(gateway: Gateway): Promise<Client> {
  const { url } = await gateway.listen()
  return connect(url, { retry: false })
}

describe('one that is a command', () => {
  const lines: string[] = []
  const traced: [string, unknown][] = []
  let gateway: Gateway
  let mcp: Client
  beforeAll(async () => {
    gateway = await createGateway({
      servers: { bad: { target: command } },
      limits: { frameBytes: 1_000_000 },
      onStderr: (server, line) => lines.push(`${server}: ${line}`),
      onTrace: (event, detail) => traced.push([event, detail]),
    })
    await gateway.ready()
    mcp = await clientOf(gateway)
  })
  afterAll(async () => {
    await mcp.close()
    await gateway.close()
  })

  it('answers with more than limits.frameBytes: that call fails at once by the name of the limit, the next one does not', async () => {
    expect((await mcp.callTool('big', { n: 2_000_000 })).problem).toMatchObject({
      code: 'PAYLOAD_TOO_LARGE',
      message: expect.stringContaining('limits.frameBytes'),
    })
    expect((await mcp.callTool('hi')).text).toBe('hi')
  })

  it('floods standard error: so many lines come through, the rest is counted, and its own secrets are not in them', async () => {
    await mcp.callTool('flood', { n: 50_000 })
    await expect.poll(() => lines.some(line => /^bad: … \d+ lines omitted$/.test(line))).toBe(true)
    expect(lines.length).toBeLessThan(500)
    expect(lines[0]).toBe('bad: line 0 [redacted]')
    expect(lines.join()).not.toContain('sk-very')
  })

  it('dies: callers read a sentence and a reference, whoever runs the gateway finds the rest under it', async () => {
    const { problem, text } = await mcp.callTool('die')
    const [, reference] =
      /^The server "bad" disconnected during the call \(reference ([0-9a-f]{8})\)\. The call may have been executed/.exec(text) ??
      []
    expect(problem).toMatchObject({ code: 'OUTCOME_UNKNOWN', details: { upstream: 'bad', reference } })
    const found = traced.flatMap(([event, detail]) => (event === 'upstream-failed' ? [detail as { reference: string }] : []))
    expect(found.find(detail => detail.reference === reference)).toMatchObject({
      error: { message: expect.stringContaining('/srv/secret.js') },
    })
  })
})

it('one that answers HTTP errors: their bodies are not for callers', async () => {
  let broken = false
  const server = createServer({ name: 'web', version: '1.0.0' })
  server.tool('hi', { description: 'Says hi' }, () => 'hi')
  const { port } = await server.listen()
  const http = createHttpServer((asked, response) => {
    const { url: path, method, headers } = asked
    if (!broken) {
      const passed = request({ port, path, method, headers: { ...headers, host: `127.0.0.1:${port}` } }, answer => {
        response.writeHead(answer.statusCode ?? 500, answer.headers)
        answer.pipe(response)
      })
      return void asked.pipe(passed)
    }
    response.writeHead(500, { 'content-type': 'text/plain' }).end('stack trace: /srv/secret.js')
  })
  await new Promise<void>(done => http.listen(0, '127.0.0.1', done))
  const gateway = await createGateway({
    servers: { web: `http://127.0.0.1:${(http.address() as AddressInfo).port}/mcp` },
    log: 'silent',
  })
  await gateway.ready()
  const mcp = await clientOf(gateway)
  broken = true
  const answer = await mcp.callTool('hi')
  expect(JSON.stringify(answer)).not.toMatch(/secret|\b500\b/)
  expect(answer.problem?.message).toMatch(/^The server "web" .*\(reference \w{8}\)$/)
  await mcp.close()
  await gateway.close()
  http.closeAllConnections()
  await new Promise(done => http.close(done))
  await server.close()
})

it('one that dies at once is started once a try, from the second on', async () => {
  const log = join(folder, 'starts')
  await writeFile(log, '')
  const dies = `require('node:fs').appendFileSync(${JSON.stringify(log)}, 'x'); process.exit(1)`
  const traced: string[] = []
  const gateway = await createGateway({
    servers: { dies: { command: process.execPath, args: ['-e', dies] } },
    onTrace: event => traced.push(event),
  })
  await gateway.ready()
  for (let n = 1; n <= 3; n++) {
    const tried = traced.filter(event => event.startsWith('upstream')).length
    gateway.retry('dies')
    await expect.poll(() => traced.filter(event => event.startsWith('upstream')).length).toBeGreaterThan(tried)
    expect(await readFile(log, 'utf8')).toHaveLength(2 + n)
  }
  await gateway.close()
})

describe('names, where one comes later with the same', () => {
  const named = (word: string) => {
    const server = createServer({ name: word, version: '1.0.0' })
    server.tool('count', { description: 'Counts' }, () => word)
    return server
  }

  it('a name that was shown stays callable for what it meant, and is listed no more', async () => {
    const [one, two] = [named('one'), named('two')]
    const [oneAt, twoAt] = [await one.listen(), await two.listen()]
    const gateway = await createGateway({ servers: { one: oneAt.url } })
    await gateway.ready()
    const mcp = await clientOf(gateway)
    expect((await mcp.callTool('count')).text).toBe('one')
    await gateway.reload({ servers: { one: oneAt.url, two: twoAt.url } })
    await gateway.ready()
    expect(gateway.names().map(({ name }) => name)).toEqual(['one_count', 'two_count'])
    expect((await mcp.callTool('count')).text).toBe('one')
    expect((await mcp.callTool('two_count')).text).toBe('two')
    await mcp.close()
    await gateway.close()
    for (const server of [one, two]) await server.close()
  })

  it('with a prefix none ever changes', async () => {
    const server = named('one')
    const { url } = await server.listen()
    const file = join(folder, 'gateway.yaml')
    await writeFile(
      file,
      `names: prefixed\nlimits: { frameBytes: 33554432 }\nservers:\n  one: { url: "${url}" }\n  two: { url: "${url}", prefix: our }\n  three: { url: "${url}", prefix: false }\n  off: { url: "\${input:x}", disabled: true }\n`,
    )
    const gateway = await createGateway({ config: file })
    await gateway.ready()
    expect(gateway.names().map(({ name }) => name)).toEqual(['one_count', 'our_count', 'count'])
    await gateway.close()
    await server.close()
  })
})
