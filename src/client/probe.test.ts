import { describe, expect, it } from 'vitest'
import {
  discovery,
  hello,
  modernServer,
  Refusal,
  type Script,
  ScriptedServer,
  silence,
} from '../../test/client/scripted-server.ts'
import { fakeClock } from '../testing/clock.ts'
import type { ConnectOptions } from './api.ts'
import { connect } from './connect.ts'

/** What a client does first: the methods that a server has heard, with the versions they name. */
async function opening(script: Script, options: ConnectOptions = {}) {
  const server = new ScriptedServer(script)
  const attempt = connect(server.connection, options)
  const [outcome] = await Promise.allSettled([attempt])
  const methods = server.heard.map(({ method }) => method)
  const revision = outcome.status === 'fulfilled' ? outcome.value.revision : undefined
  const error = outcome.status === 'rejected' ? outcome.reason : undefined
  if (outcome.status === 'fulfilled') await outcome.value.close()
  else await expect.poll(() => server.closed).toBe(true)
  return { methods, revision, error, server }
}

const versionKey = 'io.modelcontextprotocol/protocolVersion'

describe('probing: a modern server', () => {
  it('is opened by one discover, in the newest version, and nothing else (rev §2.6)', async () => {
    const { methods, revision, server } = await opening({ 'server/discover': () => discovery({ tools: {} }) })
    expect(revision).toBe('2026-07-28')
    expect(methods).toEqual(['server/discover'])
    expect(server.heard[0]).toMatchObject({ params: { _meta: { [versionKey]: '2026-07-28' } } })
  })

  it('tells its name in the result’s _meta, its instructions and its capabilities', async () => {
    const serverInfo = { name: 'm', version: '2' }
    const result = {
      ...discovery({ tools: {} }),
      instructions: 'be kind',
      _meta: { 'io.modelcontextprotocol/serverInfo': serverInfo },
    }
    const server = new ScriptedServer({ 'server/discover': () => result })
    await using mcp = await connect(server.connection)
    expect([mcp.server, mcp.instructions, mcp.capabilities]).toEqual([serverInfo, 'be kind', { tools: {} }])
  })

  it('that shares only older versions is given a handshake (rev §2.6 step 1)', async () => {
    const script = {
      'server/discover': () => discovery({}, ['2099-01-01', '2025-06-18']),
      initialize: () => hello({}, '2025-06-18'),
    }
    const { methods, revision } = await opening(script)
    expect(revision).toBe('2025-06-18')
    expect(methods).toEqual(['server/discover', 'initialize', 'notifications/initialized'])
  })

  it('that shares nothing is refused by name', async () => {
    const { error, methods } = await opening({ 'server/discover': () => discovery({}, ['2099-01-01']) })
    expect(error).toMatchObject({ kind: 'version-unsupported', message: expect.stringContaining('2099-01-01') })
    expect(methods).toEqual(['server/discover'])
  })

  it('that refuses the version is asked once more in one that it offers (−32022)', async () => {
    const script: Script = {
      'server/discover': params => {
        const asked = (params['_meta'] as Readonly<Record<string, unknown>>)[versionKey]
        if (asked === '2026-07-28') throw new Refusal(-32022, 'no', { supported: ['DRAFT-2026-v1'], requested: asked })
        return { ...discovery({}, ['DRAFT-2026-v1']), serverInfo: { name: 'd', version: '0' } }
      },
    }
    const { revision, methods } = await opening(script, { revisions: ['2026-07-28', 'draft-2026-v1', '2025-11-25'] })
    expect(revision).toBe('draft-2026-v1')
    expect(methods).toEqual(['server/discover', 'server/discover'])
  })

  it('of the draft is recognised by −32602 with the versions it supports (rev §2.6, S4)', async () => {
    let first = true
    const script: Script = {
      'server/discover': () => {
        if (!first) return discovery({}, ['DRAFT-2026-v1'])
        first = false
        throw new Refusal(-32602, 'version', { supported: ['DRAFT-2026-v1'], requested: '2026-07-28' })
      },
    }
    expect((await opening(script, { revisions: ['2026-07-28', 'draft-2026-v1'] })).revision).toBe('draft-2026-v1')
  })

  it('that offers the very version it refused gets it once more, and no third time', async () => {
    const refuse = (): never => {
      throw new Refusal(-32022, 'not yet', { supported: ['2026-07-28'], requested: '2026-07-28' })
    }
    const { error, methods } = await opening({ 'server/discover': refuse })
    expect(methods).toEqual(['server/discover', 'server/discover'])
    expect(error).toMatchObject({ kind: 'version-unsupported' })
  })

  it('whose refusal offers nothing shared is not tried with a handshake', async () => {
    const refuse = (): never => {
      throw new Refusal(-32022, 'no', { supported: ['2099-01-01'], requested: '2026-07-28' })
    }
    const { error, methods } = await opening({ 'server/discover': refuse, initialize: () => hello() })
    expect(methods).toEqual(['server/discover'])
    expect(error).toMatchObject({ kind: 'remote', code: -32022 })
  })

  it('whose refusal offers only older versions is given a handshake (ruling of rev §2.6)', async () => {
    const refuse = (): never => {
      throw new Refusal(-32022, 'no', { supported: ['2025-03-26'], requested: '2026-07-28' })
    }
    const { revision } = await opening({ 'server/discover': refuse, initialize: () => hello({}, '2025-03-26') })
    expect(revision).toBe('2025-03-26')
  })

  it.each([-32020, -32021])('that refuses with %i is modern all the same: no handshake', async code => {
    const refuse = (): never => {
      throw new Refusal(code)
    }
    const { error, methods } = await opening({ 'server/discover': refuse, initialize: () => hello() })
    expect(methods).toEqual(['server/discover'])
    expect(error).toMatchObject({ code })
  })
})

describe('probing: an older server', () => {
  it.each([-32601, -32602, -32600, -32603, -32000, -32700, -1, 0, 4711])(
    'is recognised by error %i to the probe (trap 20)',
    async code => {
      const refuse = (): never => {
        throw new Refusal(code)
      }
      const { revision, methods } = await opening({ 'server/discover': refuse, initialize: () => hello() })
      expect(revision).toBe('2025-11-25')
      expect(methods).toEqual(['server/discover', 'initialize', 'notifications/initialized'])
    },
  )

  it.each([{}, { supportedVersions: 'all' }, null, 7, 'yes', [[]]])(
    'is recognised by a result that is none: %j',
    async result => {
      const { revision } = await opening({ 'server/discover': () => result, initialize: () => hello() })
      expect(revision).toBe('2025-11-25')
    },
  )

  it.each([
    ['2024-10-07', '2024-11-05'],
    ['2024-11-05', '2024-11-05'],
    ['2025-03-26', '2025-03-26'],
  ])('may counter-offer %s', async (answered, expected) => {
    const { revision } = await opening({ initialize: () => hello({}, answered) })
    expect(revision).toBe(expected)
  })

  it.each([['1999-01-01'], ['2026-07-28'], ['9'.repeat(500)]])(
    'that answers initialize with %.20s, which no handshake leads to, is let go',
    async answered => {
      const { error, methods } = await opening({ initialize: () => hello({}, answered) })
      expect(error).toMatchObject({ kind: 'version-unsupported' })
      expect(error.message.length).toBeLessThan(300)
      expect(methods).toEqual(['server/discover', 'initialize'])
    },
  )

  it('that counter-offers a version which the options leave out is let go', async () => {
    const { error } = await opening({ initialize: () => hello({}, '2024-11-05') }, { revisions: ['2025-11-25'] })
    expect(error).toMatchObject({ kind: 'version-unsupported', message: expect.stringContaining('2024-11-05') })
  })

  it.each([null, [[]], 'ok', {}, { protocolVersion: 7 }, { server: {} }])(
    'that answers initialize with %j is let go',
    async result => {
      const { error } = await opening({ initialize: () => result })
      expect(error).toMatchObject({ kind: 'invalid-result', message: expect.stringContaining('protocolVersion') })
    },
  )

  it('is not probed at all by a client that speaks only wires with a handshake', async () => {
    const { methods } = await opening({ initialize: () => hello() }, { revisions: ['2025-11-25', '2025-06-18'] })
    expect(methods).toEqual(['initialize', 'notifications/initialized'])
  })

  it('is refused by a client that speaks only stateless wires, which probes for that (rev §2.6)', async () => {
    const { error, methods } = await opening({ initialize: () => hello() }, { revisions: ['2026-07-28'] })
    expect(methods).toEqual(['server/discover'])
    expect(error).toMatchObject({ kind: 'version-unsupported', message: expect.stringContaining('option revisions') })
  })

  it('that fails at the handshake fails as itself', async () => {
    const refuse = (): never => {
      throw new Refusal(-32000, 'not today')
    }
    expect((await opening({ initialize: refuse })).error).toMatchObject({ code: -32000, message: 'not today' })
  })
})

describe('probing: silence', () => {
  it('on a pipe is followed by initialize on the same pipe, without a cancel in between', async () => {
    const clock = fakeClock()
    const server = new ScriptedServer({ 'server/discover': () => silence, initialize: () => hello() })
    const attempt = connect(server.connection, { clock, probeTimeout: '5s' })
    await server.saw('server/discover')
    clock.advance(4_900)
    expect(server.of('initialize')).toEqual([])
    clock.advance(500)
    await using mcp = await attempt
    expect(mcp.revision).toBe('2025-11-25')
    expect(server.heard.map(({ method }) => method)).toEqual(['server/discover', 'initialize', 'notifications/initialized'])
  })

  it('of a modern server that was only slow ends in its own wire: it says so when it refuses initialize', async () => {
    const clock = fakeClock()
    let slow = true
    const server = new ScriptedServer({
      'server/discover': () => (slow ? silence : discovery()),
      initialize: () => {
        slow = false
        throw new Refusal(-32022, 'no handshakes here', { supported: ['2026-07-28'], requested: '2025-11-25' })
      },
    })
    const attempt = connect(server.connection, { clock })
    await server.saw('server/discover')
    clock.advance(6_000)
    await using mcp = await attempt
    expect(mcp.revision).toBe('2026-07-28')
  })

  it('is waited out where there is no handshake to try: the server is still starting, and is not taken for an old one', async () => {
    const clock = fakeClock()
    const slow = new ScriptedServer({ 'server/discover': () => silence })
    const attempt = connect(slow.connection, { clock, revisions: ['2026-07-28'] }).catch(error => error)
    await slow.saw('server/discover')
    clock.advance(59_000)
    expect(await Promise.race([attempt, Promise.resolve('waiting')])).toBe('waiting')
    clock.advance(2_000)
    expect(await attempt).toMatchObject({ kind: 'timeout' })
    expect(slow.heard).toHaveLength(1)
  })

  it('to initialize ends with the deadline of a call, and is not cancelled: a handshake cannot be', async () => {
    const clock = fakeClock()
    const server = new ScriptedServer({ initialize: () => silence })
    const attempt = connect(server.connection, { clock }).catch(error => error)
    await server.saw('initialize')
    clock.advance(61_000)
    expect(await attempt).toMatchObject({ kind: 'timeout' })
    expect(server.of('notifications/cancelled')).toEqual([])
  })
})

describe('probing: a connection that cannot be opened anew', () => {
  it('and dies of the probe says what to give instead', async () => {
    const server: ScriptedServer = new ScriptedServer({ 'server/discover': () => server.close() })
    await expect(connect(server.connection)).rejects.toThrow('Pass a URL or a command, which can be opened again')
  })
})

describe('what was settled', () => {
  it('is what later requests name', async () => {
    const server = modernServer({ 'tools/list': () => ({ resultType: 'complete', tools: [] }) })
    await using mcp = await connect(server.connection)
    for await (const _ of mcp.tools());
    expect(server.of('tools/list')[0]).toMatchObject({ params: { _meta: { [versionKey]: '2026-07-28' } } })
  })
})
