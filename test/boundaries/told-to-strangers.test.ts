/** What whoever merely reaches a gateway, or calls it, learns of what stands behind it: never addresses, paths or what a program said when it died. */

import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import http from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { connect } from '../../src/client/index.ts'
import { createGateway, type GatewayOptions } from '../../src/gateway/index.ts'
import { operatorHeader, readOperatorKey } from '../../src/gateway/ops/health.ts'
import { memoryStore } from '../../src/stores/memory.ts'
import { rawServer } from '../gateway/raw-server.ts'
import { upstreamOf } from '../gateway/world.ts'
import { headersFor, json, send } from '../spec/http.ts'
import { enveloped } from '../spec/wire.ts'
import { bearerOf, tokens } from './guarded-gateway.ts'

const canary = 'CANARY-what-it-said-when-it-died'

/** A gateway before a good server, a program that dies with a word, and an address where nobody listens. */
async function withDead(options: GatewayOptions = {}) {
  const folder = await mkdtemp(join(tmpdir(), 'vivarium-canary-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  const file = join(folder, 'dies.mjs')
  await writeFile(file, `console.error('${canary} at ${folder}'); process.exit(3)`)
  const servers = {
    bank: upstreamOf().target,
    dead: { command: process.execPath, args: [file] },
    lost: 'http://127.0.0.1:9/hidden-path',
  }
  const gateway = await createGateway({ log: 'silent', servers, drain: 1, ...options })
  onTestFinished(() => gateway.close())
  await gateway.ready()
  const { url, port } = await gateway.listen()
  return { gateway, folder, url, port }
}

/** One that adds nothing to what it passes on, on the same machine. */
async function plainProxy(port: number): Promise<string> {
  const proxy = http.createServer((request, response) => {
    const headers = { ...request.headers, host: `127.0.0.1:${port}` }
    const onward = http.request({ host: '127.0.0.1', port, path: request.url, method: request.method, headers }, answer => {
      response.writeHead(answer.statusCode ?? 502, answer.headers)
      answer.pipe(response)
    })
    request.pipe(onward)
  })
  await new Promise<void>(resolve => proxy.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    proxy.closeAllConnections()
    proxy.close()
  })
  return `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`
}

const secrets = (folder: string) => [canary, folder, '127.0.0.1:9', 'hidden-path', 'dies.mjs']

describe('/ready and /health', () => {
  it('say to strangers only whether it is ready, also behind a plain proxy on the same machine', async () => {
    const { port } = await withDead()
    const proxy = await plainProxy(port)
    for (const origin of [proxy, `http://127.0.0.1:${port}`]) {
      const [ready, health] = [
        await send(`${origin}/ready`, { method: 'GET' }),
        await send(`${origin}/health`, { method: 'GET' }),
      ]
      expect([JSON.parse(ready.text), JSON.parse(health.text)]).toEqual([{ ready: true }, { alive: true }])
    }
  })

  it('show a client the servers that it sees, and of none what it said', async () => {
    const { port, folder } = await withDead({ auth: { tokens }, clients: { ann: { upstreams: ['bank', 'dead'] }, bob: {} } })
    const read = async (name: 'ann' | 'bob') =>
      (await send(`http://127.0.0.1:${port}/ready`, { method: 'GET', headers: bearerOf(name) })).text
    const namesOf = (text: string) => (JSON.parse(text).upstreams as { name: string }[]).map(({ name }) => name)
    const [ann, bob] = [await read('ann'), await read('bob')]
    expect([namesOf(ann), namesOf(bob)]).toEqual([
      ['bank', 'dead'],
      ['bank', 'dead', 'lost'],
    ])
    for (const secret of secrets(folder)) expect(`${ann} ${bob}`).not.toContain(secret)
  })

  it.each<[string, GatewayOptions]>([
    ['that its list of tools does not reach', { clients: { ann: { tools: ['bank/*'] }, bob: {} } }],
    ['of which a rule refuses it all', { rules: [{ name: 'bank-only', upstream: ['dead', 'lost'], client: 'ann', do: 'deny' }] }],
  ])('show a client no server %s', async (_, options) => {
    const { port } = await withDead({ auth: { tokens }, clients: { ann: {}, bob: {} }, ...options })
    const { text } = await send(`http://127.0.0.1:${port}/ready`, { method: 'GET', headers: bearerOf('ann') })
    expect(JSON.parse(text)).toMatchObject({ servers: { up: 1, down: 0 }, upstreams: [{ name: 'bank' }] })
  })

  it('show a caller that is no client nothing', async () => {
    const { port } = await withDead({
      auth: { tokens: { ...tokens, eve: 'the-token-of-eve-0123456789' } },
      clients: { ann: {}, bob: {}, eve: { upstreams: [] } },
    })
    const headers = { authorization: 'Bearer the-token-of-eve-0123456789' }
    const { text } = await send(`http://127.0.0.1:${port}/ready`, { method: 'GET', headers })
    expect(JSON.parse(text)).toMatchObject({ upstreams: [], servers: { up: 0, down: 0 } })
  })

  it('show all to whoever can read the store, and to nobody who guesses', async () => {
    const store = memoryStore()
    const { port, folder } = await withDead({ store })
    const key = (await readOperatorKey(store)) ?? ''
    const read = async (shown: string) =>
      (await send(`http://127.0.0.1:${port}/ready`, { method: 'GET', headers: { [operatorHeader]: shown } })).text
    expect(JSON.parse(await read(key))).toMatchObject({ servers: { up: 1, down: 2 } })
    for (const secret of secrets(folder)) expect(await read(key)).not.toContain(secret)
    expect(JSON.parse(await read('a guess'))).toEqual({ ready: true })
  })
})

describe('a caller', () => {
  it('that calls what is down, reads a list or opens a session learns no address, path or last words', async () => {
    const { url, folder } = await withDead()
    const said: string[] = []
    const ask = async (method: string, params: Record<string, unknown>) => {
      const body = { jsonrpc: '2.0', id: 1, method, params: enveloped('2026-07-28', params) }
      const answer = await send(url, { headers: headersFor('2026-07-28', method, params), body })
      said.push(`${answer.text} ${JSON.stringify(answer.headers)}`)
    }
    for (const name of ['dead_pay', 'lost_pay', 'dead_work', 'pay']) await ask('tools/call', { name, arguments: {} })
    await ask('server/discover', {})
    await ask('tools/list', {})
    await ask('resources/read', { uri: 'note://dead' })
    const initialize = { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'c', version: '1' } }
    said.push(
      (await send(url, { headers: json, body: { jsonrpc: '2.0', id: 1, method: 'initialize', params: initialize } })).text,
    )
    said.push((await send(url.replace('/mcp', '/elsewhere'), { headers: json, body: '{}' })).text)
    for (const secret of secrets(folder)) expect(said.join('\n')).not.toContain(secret)
  })

  it('that calls a program which dies during the call is not told its last words', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'vivarium-canary-'))
    onTestFinished(() => rm(folder, { recursive: true, force: true }))
    const file = join(folder, 'dies-later.mjs')
    const answer = "const say = (id, result) => console.log(JSON.stringify({ jsonrpc: '2.0', id, result }))"
    const script = `import { createInterface } from 'node:readline'
${answer}
for await (const line of createInterface({ input: process.stdin })) {
  const { id, method } = JSON.parse(line)
  if (method === 'initialize') say(id, { protocolVersion: '2025-06-18', capabilities: { tools: {} }, serverInfo: { name: 'x', version: '1' } })
  else if (method === 'tools/list') say(id, { tools: [{ name: 'die', inputSchema: { type: 'object' } }] })
  else if (method === 'tools/call') { console.error('${canary} in ${folder}'); process.exit(3) }
  else if (id !== undefined) console.log(JSON.stringify({ jsonrpc: '2.0', id, error: { code: -32601, message: 'none' } }))
}`
    await writeFile(file, script)
    const gateway = await createGateway({
      log: 'silent',
      drain: 1,
      servers: { frail: { command: process.execPath, args: [file] } },
    })
    onTestFinished(() => gateway.close())
    await gateway.ready()
    const { url } = await gateway.listen()
    await using client = await connect(url, { retry: false })
    const first = JSON.stringify(await client.callTool('die', {}).catch(String))
    const second = JSON.stringify(await client.callTool('die', {}).catch(String))
    for (const secret of [canary, folder, 'dies-later']) expect(first + second).not.toContain(secret)
    expect(first).toContain('reference')
  })

  it('of a server that waits for its operator is not told where the files of the gateway lie', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'vivarium-canary-'))
    onTestFinished(() => rm(folder, { recursive: true, force: true }))
    await writeFile(join(folder, 'server.mjs'), rawServer("() => 'done'"))
    const config = join(folder, 'gateway.yaml')
    await writeFile(config, JSON.stringify({ names: 'prefixed', include: 'mcp.json' }))
    const command = (args: readonly string[]) =>
      writeFile(join(folder, 'mcp.json'), JSON.stringify({ mcpServers: { notes: { command: process.execPath, args } } }))
    await command([join(folder, 'server.mjs')])
    const gateway = await createGateway({ config, log: 'silent', store: memoryStore(), drain: 1 })
    onTestFinished(() => gateway.close())
    await gateway.ready()
    const { url } = await gateway.listen()
    await using client = await connect(url, { retry: false })
    expect((await client.callTool('notes_work', {})).text).toBe('done')
    await command([join(folder, 'server.mjs'), '--more'])
    await gateway.reload()
    await gateway.ready()
    const told = JSON.stringify(await client.callTool('notes_work', {}).catch(String))
    expect(told).toContain('must approve it')
    for (const secret of [folder, 'gateway.yaml', '--more']) expect(told).not.toContain(secret)
  })
})
