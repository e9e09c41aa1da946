import { describe, expect, it } from 'vitest'
import type { Acceptor, Connection } from '../jsonrpc/connection.ts'
import { isRecord } from '../jsonrpc/message.ts'
import { createServer } from '../server/index.ts'
import { table } from './define.ts'
import { judge } from './judge.ts'
import { tool } from './needs.ts'
import type { Scenario } from './scenario.ts'
import { tableOf } from './table.ts'

type Message = Readonly<Record<string, unknown>>

/** A server made of answers: what it declares and what it does need not agree. */
function scripted(capabilities: Message, answer: (message: Message) => Message | undefined): { readonly acceptor: Acceptor } {
  const hello = { protocolVersion: '2025-06-18', capabilities, serverInfo: { name: 'scripted', version: '7' } }
  const accept = (connection: Connection): void => {
    void connection.start({
      frame(text) {
        const message = readMessage(text)
        const said = message['method'] === 'initialize' ? { result: hello } : answer(message)
        if (said !== undefined && message['id'] !== undefined)
          void connection.send(JSON.stringify({ jsonrpc: '2.0', id: message['id'], ...said }))
      },
      fault() {},
      closed() {},
    })
  }
  const unused = (): never => {
    throw new Error('memory alone')
  }
  return { acceptor: { accept, deliver: unused, listen: unused, leave: unused } }
}

/** What is no message is passed over, as many servers do. */
function readMessage(text: string): Message {
  try {
    const value: unknown = JSON.parse(text)
    return isRecord(value) ? value : {}
  } catch {
    return {}
  }
}

const refusal = { error: { code: -32601, message: 'No such method' } }
const revisions = ['2025-06-18'] as const

function statusOf(report: Awaited<ReturnType<typeof judge>>, id: string): readonly [string | undefined, string | undefined] {
  const found = report.results.find(({ test_id }) => test_id === id)
  return [found?.status, found?.message]
}

const own = table('own/', { proves: [] })

describe('judging', () => {
  it('E12-2: what is not advertised is skipped with the reason', async () => {
    const report = await judge(
      scripted({}, ({ method }) => (method === 'ping' ? { result: {} } : refusal)),
      { revisions },
    )
    expect(statusOf(report, 'base/tools/list')).toEqual(['skipped', 'the server does not advertise tools'])
    expect(statusOf(report, 'base/lifecycle/ping')).toEqual(['passed', ''])
    expect(report).toMatchObject({ server_name: 'scripted', server_version: '7' })
  })

  it('E12-2: what is advertised but broken has failed, with the frames that show it', async () => {
    const server = scripted({ tools: {} }, ({ method }) =>
      method === 'tools/list' ? { result: { tools: [{ name: 'x' }] } } : refusal,
    )
    const report = await judge(server, { revisions })
    expect(statusOf(report, 'base/tools/list')[0]).toBe('failed')
    const failed = report.results.find(({ test_id }) => test_id === 'base/tools/list')
    expect(failed?.message).toContain('inputSchema')
    expect(failed?.frames[0]?.text).toContain('"tools":[{"name":"x"}]')
  })

  it('E12-2: a fault of the kit is an error, and the others are judged all the same', async () => {
    const broken = own('broken', 'This one is broken').by({ open: false }, () =>
      Promise.reject(new TypeError('a mistake of ours')),
    )
    const fine = own('fine', 'This one is fine').by({ open: false }, async () => {})
    await using server = createServer({ name: 'plain', version: '1' })
    const report = await judge(server, { revisions, scenarios: [broken, fine] })
    expect(report.results.map(({ test_id, status }) => [test_id, status])).toEqual([
      ['own/broken', 'error'],
      ['own/fine', 'passed'],
    ])
    expect(statusOf(report, 'own/broken')[1]).toBe('a mistake of ours')
  })

  it('a revision that the server does not speak is one line that says so', async () => {
    await using server = createServer({ name: 'plain', version: '1', revisions: ['2025-11-25'] })
    const { results } = await judge(server, { revisions: ['2024-11-05', '2026-07-28', 's3'] })
    expect(results.map(({ test_id, status, fault }) => [test_id, status, fault])).toEqual([
      ['cell/2024-11-05/memory', 'skipped', 'unspoken'],
      ['cell/2026-07-28/memory', 'skipped', 'unspoken'],
      ['cell/s3/memory', 'skipped', 'unspoken'],
    ])
  })

  it('a server that does not answer in time has failed, and nothing hangs', async () => {
    const server = scripted({}, () => undefined)
    const asks = own('asks', 'It answers').by(async ({ peer }) => {
      await peer.request('ping', {}, { ms: 50 })
    })
    const report = await judge(server, { revisions, scenarios: [asks] })
    expect(statusOf(report, 'own/asks')).toEqual(['failed', 'ping was not answered within 50 ms'])
  })

  it('a scenario that does not end is ended', async () => {
    await using server = createServer({ name: 'plain', version: '1' })
    const endless = own('endless', 'It ends').by({ open: false }, () => new Promise(() => {}))
    const report = await judge(server, { revisions, scenarios: [endless], scenarioMs: 50 })
    expect(statusOf(report, 'own/endless')[0]).toBe('failed')
  })
})

describe('tools that may write', () => {
  function countingServer(): { server: ReturnType<typeof createServer>; calls: string[] } {
    const server = createServer({ name: 'counting', version: '1' })
    const calls: string[] = []
    server.tool('delete_all', { description: 'Deletes' }, () => {
      calls.push('delete_all')
      return 'Gone'
    })
    server.tool('look', { description: 'Looks', annotations: { readOnlyHint: true } }, () => {
      calls.push('look')
      return 'Seen'
    })
    return { server, calls }
  }

  function calling(name: string): Scenario {
    return own(name, 'It is called').by(tool(name), async ({ peer }) => {
      await peer.request('tools/call', { name })
    })
  }

  it('E12-5: are not called by any scenario of the kit', async () => {
    const { server, calls } = countingServer()
    const report = await judge(server)
    await server.close()
    expect(report.summary.error).toBe(0)
    expect(calls.filter(name => name === 'delete_all')).toEqual([])
  })

  it('E12-5: do not leave the kit even if a scenario tries, unless writing is allowed', async () => {
    const { server, calls } = countingServer()
    const own = [calling('delete_all'), calling('look')]
    const refused = await judge(server, { revisions, scenarios: own })
    expect(refused.results.map(({ status }) => status)).toEqual(['error', 'passed'])
    expect(calls).toEqual(['look'])
    const allowed = await judge(server, { revisions, scenarios: own, allowWrites: true })
    await server.close()
    expect(allowed.summary.passed).toBe(2)
    expect(calls).toEqual(['look', 'delete_all', 'look'])
  })

  it('E12-5: scenarios that write are skipped unless that is allowed', async () => {
    const { server } = countingServer()
    const writing: Scenario = { ...calling('delete_all'), writes: true }
    const report = await judge(server, { revisions, scenarios: [writing] })
    await server.close()
    expect(report.results[0]).toMatchObject({
      status: 'skipped',
      message: 'the scenario may write: use --allow-writes to run it',
    })
  })
})

describe('a server that answers numbers as strings', () => {
  it('is told so at once, instead of being waited for, and once for all scenarios that meet it', async () => {
    const hello = { protocolVersion: '2025-06-18', capabilities: {}, serverInfo: { name: 'stringy', version: '1' } }
    const accept = (connection: Connection): void => {
      void connection.start({
        frame(text) {
          const { id, method } = readMessage(text)
          const answered = {
            jsonrpc: '2.0',
            id: method === 'initialize' ? id : String(id),
            result: method === 'initialize' ? hello : {},
          }
          if (id !== undefined) void connection.send(JSON.stringify(answered))
        },
        fault() {},
        closed() {},
      })
    }
    const { acceptor } = scripted({}, () => refusal)
    const report = await judge({ acceptor: { ...acceptor, accept } }, { revisions, only: /^base\/lifecycle/ })
    const [status, message] = statusOf(report, 'base/lifecycle/ping')
    expect([status, message]).toEqual(['failed', expect.stringContaining('must come back as it was')])
    const table = tableOf(report)
    expect(table.match(/must come back as it was/g)).toHaveLength(1)
    expect(table).toMatch(/Also: {2}base\/lifecycle\//)
  })
})
