import { request as ask, createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { connect } from '../../src/client/index.ts'
import { carriersOf, startFixture } from '../transcripts/carriers.ts'
import { everyRevision } from '../transcripts/fixture.ts'

// A client that allows everything finds what a server of a single revision speaks, and harms it in no way.
for (const revision of everyRevision) {
  for (const carrier of carriersOf[revision]) {
    test(`client of every revision ⇄ server of ${revision} over ${carrier}`, async () => {
      const { target, close } = await startFixture(carrier, [revision])
      onTestFinished(close)
      const client = await connect(target, { revisions: everyRevision })
      expect(client.revision).toBe(revision)
      expect((await client.callTool('greet', { name: 'Ada' })).text).toBe('{"greeting":"Hello, Ada"}')
      await client.close()
    })
  }
}

for (const [manner, does] of [
  ['exit', 'dies of an unknown first message'],
  ['mute', 'does not answer one'],
] as const) {
  test(`client of every revision ⇄ stdio server that ${does}`, async () => {
    const target = { command: process.execPath, args: [join(import.meta.dirname, 'peers', 'old-server.mjs'), manner] }
    for (const attempt of ['probed', 'remembered']) {
      const client = await connect(target, { probeTimeout: '300ms' })
      onTestFinished(() => client.close())
      expect(client.revision, attempt).toBe('2025-06-18')
      expect((await client.callTool('echo', { text: 'still here' })).text).toBe('still here')
    }
  })
}

for (const [status, body] of [
  [404, ''],
  [405, 'no'],
  [400, '{"error":"bad request"}'],
] as const) {
  test(`client of every revision ⇄ old pair behind an address that answers POST with ${status}`, async () => {
    const { server, close } = await startFixture('memory')
    onTestFinished(close)
    const pair = await server?.listen({ path: '/elsewhere', ssePath: '/mcp' })
    const url = await startFront(pair?.port ?? 0, (request, response) => {
      if (request.method !== 'POST' || request.url !== '/mcp') return false
      response.writeHead(status).end(body)
      return true
    })
    const client = await connect(url)
    onTestFinished(() => client.close())
    expect(client.revision).toBe('2025-11-25')
    expect((await client.callTool('stopped')).text).toBe('0')
  })
}

/** Stands before a server and passes on what it does not respond itself. */
async function startFront(
  port: number,
  answers: (request: IncomingMessage, response: ServerResponse) => boolean,
): Promise<string> {
  const front = createServer((request, response) => {
    if (answers(request, response)) return
    const headers = { ...request.headers, host: `127.0.0.1:${port}` }
    const onward = ask({ port, method: request.method, path: request.url, headers }, answer => {
      response.writeHead(answer.statusCode ?? 502, answer.headers)
      answer.pipe(response)
    })
    onward.on('error', () => response.destroy())
    response.on('close', () => onward.destroy())
    request.pipe(onward)
  })
  await new Promise<void>(resolve => front.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    front.closeAllConnections()
    front.close()
  })
  return `http://127.0.0.1:${(front.address() as AddressInfo).port}/mcp`
}
