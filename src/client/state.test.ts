import { afterEach, describe, expect, it } from 'vitest'
import { remembering, revisions } from '../../test/remembering.ts'
import { stateExtension } from '../features/reliability/session-state/messages.ts'
import type { OnFrame } from '../recording/tap.ts'
import type { Server, ServerOptions } from '../server/index.ts'
import { connectInMemory, fakeClock, type InMemoryOptions } from '../testing/index.ts'
import type { Client } from './index.ts'

const open: { close(): Promise<void> }[] = []
afterEach(async () => {
  for (const each of open.splice(0).reverse()) await each.close()
})

function make(options: Partial<ServerOptions> = {}): Server {
  const server = remembering(options)
  open.push(server)
  return server
}

async function client(server: Server, options: InMemoryOptions): Promise<Client> {
  const made = await connectInMemory(server, options)
  open.push(made)
  return made
}

const note = async (mcp: Client, text: string, conversation?: string): Promise<string> =>
  (await mcp.callTool('note', { text }, conversation === undefined ? {} : { conversation })).text

/** The tokens in the frames of one direction, in order. */
function listen(): { readonly out: string[]; readonly in: string[]; readonly onFrame: OnFrame } {
  const heard = { out: [] as string[], in: [] as string[] }
  return {
    ...heard,
    onFrame: ({ way, text }) => {
      const token = /"session_state":"([^"]*)"/.exec(text)?.[1]
      if (token !== undefined) heard[way].push(token)
    },
  }
}

describe.each(revisions)('the client on %s', revision => {
  it('E14-1: sends the last token back byte by byte, by itself, and to nobody else', async () => {
    const wire = listen()
    const mcp = await client(make(), { revision, onFrame: wire.onFrame })
    for (const text of ['a', 'b', 'c']) await note(mcp, text)
    expect(await note(mcp, 'd')).toBe('a b c d')
    expect(new Set(wire.in).size).toBe(4)
    expect(wire.out).toEqual(wire.in.slice(0, 3))
    const other = listen()
    const elsewhere = await client(make(), { revision, onFrame: other.onFrame })
    expect(await note(elsewhere, 'x')).toBe('x')
    expect(other.out).toEqual([])
  })

  it('E14-1: sends it with calls, not with lists or pings', async () => {
    const wire = listen()
    const mcp = await client(make(), { revision, onFrame: wire.onFrame })
    await note(mcp, 'a')
    for await (const _ of mcp.tools());
    expect(wire.out).toEqual([])
    await mcp.callTool('plain')
    expect(wire.out).toHaveLength(1)
  })

  it('E14-2: drops a token that is too long, and says so', async () => {
    const traced: string[] = []
    const server = make()
    server.tool('flood', {}, () => 'x')
    server.use(async (call, next) => {
      const result = (await next(call)) as { content: unknown }
      if (call.method !== 'tools/call' || call.params['name'] !== 'flood') return result
      return { content: result.content, _meta: { [stateExtension]: { session_state: 'x'.repeat(64 * 1024 + 1) } } }
    })
    const mcp = await client(server, { revision, onTrace: event => void traced.push(event) })
    await note(mcp, 'a')
    await mcp.callTool('flood')
    expect(traced).toContain('state-refused')
    expect(await note(mcp, 'b')).toBe('b')
  })

  it('E14-3: clears what is refused, so that the next call begins anew', async () => {
    const clock = fakeClock()
    const mcp = await client(make({ clock, state: { ttl: '1h' } }), { revision, clock })
    await note(mcp, 'a')
    clock.advance(3_600_001)
    expect((await mcp.callTool('note', { text: 'b' })).problem).toMatchObject({ code: 'STATE_EXPIRED' })
    expect(await note(mcp, 'b')).toBe('b')
  })

  it('E14-3: clears what no server knows any more, too, and tells of it once', async () => {
    const server = make()
    const mcp = await client(server, { revision })
    await note(mcp, 'a')
    const ending = new AbortController()
    let session = ''
    for await (const { data } of server.states.follow({ signal: ending.signal })) {
      session = String((data as { session_id: string }).session_id)
      ending.abort()
    }
    await note(mcp, 'b')
    await server.states.rollback(session, 1)
    const refused = await mcp.callTool('note', { text: 'c' })
    expect(refused.problem).toMatchObject({ code: 'STATE_INVALID', details: { recovery: 'restart' } })
    expect(await note(mcp, 'd')).toBe('d')
  })

  it('E14-4: keeps the token that it has where an answer brings none', async () => {
    const mcp = await client(make(), { revision })
    await note(mcp, 'a')
    for (const tool of ['plain', 'read']) await mcp.callTool(tool)
    expect(await note(mcp, 'b')).toBe('a b')
  })

  it('E14-5: keeps its token after a conflict, which may be newer than that of the call', async () => {
    const mcp = await client(make(), { revision })
    await mcp.callTool('strict', { text: 'a' })
    const both = await Promise.all(['b', 'c'].map(text => mcp.callTool('strict', { text })))
    const [won] = both.filter(({ isError }) => !isError)
    expect(both.filter(({ problem }) => problem?.code === 'STATE_CONFLICT')).toHaveLength(1)
    expect((await mcp.callTool('strict', { text: 'd' })).text).toBe(`${won?.text} d`)
  })

  it('E14-6: keeps conversations on one connection apart', async () => {
    const mcp = await client(make(), { revision })
    expect(await note(mcp, 'a', 'one')).toBe('a')
    expect(await note(mcp, 'b', 'two')).toBe('b')
    expect(await note(mcp, 'c')).toBe('c')
    expect(await note(mcp, 'd', 'one')).toBe('a d')
    mcp.forgetState('one')
    expect(await note(mcp, 'e', 'one')).toBe('e')
    expect(await note(mcp, 'f', 'two')).toBe('b f')
  })
})
