/** What somebody meets in the first hour with a host: nothing that is written is dropped, and nothing is asked or told twice. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import { createHost, type HostOptions, type ServerOption } from '../../src/host/index.ts'
import { scripted } from '../../src/host/models/scripted.ts'
import { knownServer } from '../../src/host/servers/entry.ts'
import { createServer, type Server } from '../../src/server/index.ts'
import { memoryStore } from '../../src/stores/memory.ts'
import { memoryPair } from '../../src/transports/memory.ts'

function inMemory(server: Server) {
  return () => {
    const [here, there] = memoryPair()
    server.acceptor.accept(there)
    return here
  }
}

async function opened(options: HostOptions) {
  const host = await createHost(options)
  onTestFinished(() => host.close())
  return host
}

const desk = () => createServer({ name: 'desk', version: '1.0.0' })

describe('servers in the program’s own words', () => {
  test('what stands beside a command is used, as beside a url or a target', () => {
    const live = { enable: ['notes.*'] }
    const command = { command: 'node', args: ['server.mjs'], env: { A: '1' } }
    expect(knownServer('p', { ...command, live, timeoutMs: 5, autoApprove: ['read'] })).toMatchObject({
      target: command,
      live,
      timeoutMs: 5,
      autoApprove: ['read'],
    })
    expect(knownServer('p', { url: 'http://127.0.0.1:1/', live })).toMatchObject({ target: 'http://127.0.0.1:1/', live })
    expect(knownServer('p', { target: command, live })).toMatchObject({ target: command, live })
  })

  test.each([
    [{ command: 'node', lvie: {} }, 'servers.p.lvie is not known. Did you mean live?'],
    [{ url: 'http://127.0.0.1:1/', disable: ['x'] }, 'servers.p.disable is not known'],
    [{ command: 'node', live: { enabled: ['*'] } }, 'servers.p.live.enabled is not known. Did you mean enable?'],
    [{ args: ['x'] }, 'has no target'],
  ])('what is not known is refused by its name: %j', (option, message) => {
    expect(() => knownServer('p', option as unknown as ServerOption)).toThrow(message)
  })
})

test('another policy, other budgets and other roots hold at once for a running host, all of them or none', async () => {
  const server = desk()
  server.tool('act', {}, () => 'Done')
  const call = { calls: [{ name: 'act' }] }
  const host = await opened({ model: scripted([call, 'A', call, 'B']), servers: { desk: inMemory(server) } })
  const status = async (text: string) => {
    const turn = await host.conversation('c').send(text)
    await turn.done
    return turn.calls[0]?.outcome?.status
  }
  const autoApproved = { rules: [{ name: 'yes', do: 'allow', when: { kind: 'tool' } }] } as const
  await host.update({ policy: autoApproved })
  expect(await status('one')).toBe('done')
  const bad = [{ name: 'x', counts: 'tokens', most: -1, per: '1h' }] as const
  await expect(host.update({ policy: { rules: [] }, budgets: bad })).rejects.toThrow(
    'most must be a number above 0 and up to 1000000000, not -1',
  )
  expect(host.policy.explain({ kind: 'tool', server: 'desk', tool: 'act' }).verdict).toMatchObject({ do: 'allow', rule: 'yes' })
  await host.update({
    policy: { rules: [{ name: 'no', do: 'deny', when: { kind: 'tool' } }] },
    budgets: [{ ...bad[0], most: 5 }],
  })
  expect(await status('two')).toBe('refused')
  expect(await host.budgets()).toMatchObject([{ limit: { name: 'x', most: 5 }, server: 'desk', used: 0 }])
  const { notes } = await host.audit({ kind: 'config' })
  expect(notes.at(-1)).toMatchObject({ outcome: 'success', detail: 'applied: policy, budgets' })
})

test('a member of live that is not known is a mistake of the config file, and not left out in silence', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'vivarium-host-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const config = join(folder, 'mcp.json')
  writeFileSync(config, JSON.stringify({ mcpServers: { p: { command: 'node', live: { enabled: ['*'] } } } }))
  const host = await opened({ config, model: scripted([]) })
  expect(host.configFaults).toMatchObject([{ server: 'p', why: { rule: 'config.live', fix: 'Write "enable"' } }])
  expect(host.server('p')?.status).toBe('refused')
})

test('a tool that is approved while the host starts is there for the first turn of that start', async () => {
  const store = memoryStore()
  const first = desk()
  first.tool('act', { description: 'Acts' }, () => 'Done')
  const before = await createHost({ store, model: scripted([]), servers: { desk: inMemory(first) } })
  await before.server('desk')?.tools()
  await before.close()
  const second = desk()
  second.tool('act', { description: 'Acts otherwise' }, () => 'Done')
  const asked: string[] = []
  const onApproval: HostOptions['onApproval'] = ({ about }) => asked.push(about) > 0
  const model = scripted(['A'])
  const host = await opened({ store, model, onApproval, servers: { desk: inMemory(second) } })
  expect(asked).toEqual(['definition'])
  await (await host.conversation('c').send('Hello')).done
  expect(model.requests[0]?.tools.map(({ name }) => name)).toContain('act')
  expect(host.heldTools).toEqual([])
})

test('undo asks once where a rule asks and the tool wants a confirmation too; what nobody asked about is still confirmed', async () => {
  const server = desk()
  const done: string[] = []
  server.tool('add', { undo: { tool: 'remove', arguments: () => ({ id: 'n1' }) } }, () => `${done.push('add')}`)
  server.tool(
    'remove',
    { input: z.object({ id: z.string() }), confirm: { message: 'Remove it?' } },
    ({ id }) => `${done.push(`remove ${id}`)}`,
  )
  const asked: string[] = []
  const onApproval: HostOptions['onApproval'] = ({ rule }) => asked.push(rule) > 0
  const careful = { rules: [{ name: 'careful', do: 'ask', when: { kind: 'tool', tool: 'remove' } }] } as const
  const script = [{ calls: [{ name: 'add' }] }, 'A', { calls: [{ name: 'add' }] }, 'B']
  const host = await opened({ model: scripted(script), servers: { desk: inMemory(server) }, onApproval, policy: careful })
  const undo = async (text: string) => {
    const turn = await host.conversation('c').send(text)
    await turn.done
    asked.length = 0
    expect((await turn.undo()).complete).toBe(true)
    return [...asked]
  }
  expect(await undo('one')).toEqual(['careful'])
  await host.update({ policy: { rules: [{ name: 'fine', do: 'allow', when: { kind: 'tool' } }] } })
  expect(await undo('two')).toEqual(['confirmation'])
  expect(done).toEqual(['add', 'remove n1', 'add', 'remove n1'])
})

test('a model whose call the user declined is told so, and not to add a rule', async () => {
  const server = desk()
  server.tool('act', {}, () => 'Done')
  const model = scripted([{ calls: [{ name: 'act' }] }, 'A'])
  const policy = { rules: [{ name: 'careful', do: 'ask', when: { kind: 'tool' } }] } as const
  const host = await opened({ model, servers: { desk: inMemory(server) }, policy, onApproval: () => false })
  await (await host.conversation('c').send('Do it')).done
  const told = JSON.stringify(model.requests.at(-1)?.messages.at(-1))
  expect(told).toContain('The user declined the tool act')
  expect(told).not.toMatch(/\brule\b|policy|config/i)
})
