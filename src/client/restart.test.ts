import { afterEach, describe, expect, it } from 'vitest'
import { type SessionServer, sessionServer } from '../../test/client/session-server.ts'
import { afterTest, cleanUp, hastyClock } from '../../test/transports/http-test-server.ts'
import { createServer } from '../server/index.ts'
import { httpClientConnection } from '../transports/http/client.ts'
import type { ConnectOptions } from './api.ts'
import type { Client } from './client.ts'
import { connect } from './connect.ts'

afterEach(cleanUp)

/** A server with a tool and a resource, as after each start of its process. */
async function start(port = 0) {
  const server = createServer({ name: 'restarted', version: '1.0.0' })
  server.tool('first', {}, () => 'one')
  server.resource('memo://a', { name: 'a' }, () => 'text')
  const { url, close } = await server.listen({ port })
  const stop = async (): Promise<void> => {
    await server.close()
    await close()
  }
  afterTest(stop)
  return { server, url, stop }
}

/** Over a connection that comes back soon. */
async function join(url: string, options: ConnectOptions = {}): Promise<Client> {
  const mcp = await connect(httpClientConnection(url, { retryMs: 50, maxBackoffMs: 50 }), {
    revisions: ['2025-11-25'],
    ...options,
  })
  afterTest(() => mcp.close())
  return mcp
}

const initializations = (server: SessionServer) => server.of('initialize').length

describe('a server that is started anew on its address', () => {
  it('is heard again by those who follow a list, who are told to look, although nobody calls', async () => {
    const before = await start()
    const mcp = await join(before.url)
    const changes = mcp.changes('tools')
    const told = changes.next()
    await before.stop()
    const after = await start(Number(new URL(before.url).port))
    expect((await told).done).toBe(false)
    const announced = until(mcp, 'second')
    after.server.tool('second', {}, () => 'two')
    await announced
  })

  it('is subscribed to again by those who follow a resource', async () => {
    const before = await start()
    const mcp = await join(before.url)
    const updates = mcp.resourceUpdates('memo://a')
    const told = updates.next()
    await mcp.ping()
    await before.stop()
    const after = await start(Number(new URL(before.url).port))
    expect(await told).toEqual({ done: false, value: 'memo://a' })
    const heard = hearAll(updates)
    await expect
      .poll(() => {
        after.server.resourceUpdated('memo://a')
        return heard.length
      })
      .toBeGreaterThan(2)
  })
})

/** Follows the list of tools until it holds the tool. */
async function until(mcp: Client, name: string): Promise<void> {
  for await (const _ of mcp.changes('tools')) for await (const tool of mcp.tools()) if (tool.name === name) return
}

function hearAll(updates: AsyncIterable<string>): string[] {
  const heard: string[] = []
  const read = async (): Promise<void> => {
    for await (const uri of updates) heard.push(uri)
  }
  void read()
  return heard
}

/** Forgets its sessions and hangs up, as a process that ends. */
function crash(server: SessionServer): void {
  server.sessions.clear()
  for (const stream of server.streams.values()) stream.destroy()
  server.streams.clear()
}

describe('the stream on which a session is found to be lost', () => {
  it('has the session opened anew and is opened in it', async () => {
    const server = await sessionServer()
    const mcp = await join(server.url)
    await expect.poll(() => server.streams.size).toBe(1)
    const changed = mcp.changes('prompts').next()
    crash(server)
    expect((await changed).done).toBe(false)
    await expect.poll(() => [...server.streams.keys()]).toEqual(['session-2'])
    expect(initializations(server)).toBe(2)
  })

  it('has it tried again while the server is not ready', async () => {
    const server = await sessionServer()
    const mcp = await join(server.url, { clock: hastyClock() })
    await expect.poll(() => server.streams.size).toBe(1)
    server.overloaded = true
    const changed = mcp.changes('prompts').next()
    crash(server)
    await expect.poll(() => initializations(server)).toBeGreaterThan(3)
    server.overloaded = false
    expect((await changed).done).toBe(false)
  })

  it('fails those who follow when the server refuses to open it again', async () => {
    const server = await sessionServer({
      initialize: ({ seen: { id } }, response) =>
        void response
          .writeHead(200, { 'content-type': 'application/json' })
          .end(JSON.stringify({ jsonrpc: '2.0', id, error: { code: -32602, message: 'No more of this' } })),
    })
    const { answers } = server
    const refuse = answers.get('initialize')
    answers.delete('initialize')
    const mcp = await join(server.url)
    await expect.poll(() => server.streams.size).toBe(1)
    if (refuse !== undefined) answers.set('initialize', refuse)
    const changed = mcp.changes('prompts').next()
    crash(server)
    await expect(changed).rejects.toThrow('No more of this')
  })

  it('is not mistaken for a lost session where the server has no such stream and says so with 404', async () => {
    const server = await sessionServer({}, {})
    server.mute = true
    const mcp = await join(server.url)
    await expect.poll(() => server.of('ping').length).toBe(1)
    await mcp.ping()
    expect(initializations(server)).toBe(1)
  })

  it('that forgets each session at once is asked less and less often', async () => {
    const clock = hastyClock()
    const server = await sessionServer()
    await join(server.url, { clock })
    for (let session = 1; session < 6; session++) {
      await expect.poll(() => server.streams.has(`session-${session}`)).toBe(true)
      crash(server)
    }
    await expect.poll(() => clock.waits).toEqual([400, 800, 1600, 3200])
  })
})
