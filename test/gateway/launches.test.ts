/** Launches of servers that are not the ones that were first seen: a file that another program writes starts nothing new by itself. */
import { existsSync } from 'node:fs'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import {
  createGateway,
  type Gateway,
  type GatewayNotice,
  type GatewayOptions,
  type LaunchChange,
} from '../../src/gateway/index.ts'
import { rawServer } from './raw-server.ts'
import { clientOf, toolNames, upstreamOf } from './world.ts'

/** Leaves a file with its name where it is started. */
const program = (name: string): string => `${rawServer(`() => '${name}'`)}
writeFileSync(new URL('./${name}.started', import.meta.url), '')
`

async function place(extra = ''): Promise<{ at: (name: string) => string; include: (name: string) => Promise<void> }> {
  const folder = await mkdtemp(join(tmpdir(), 'vivarium-launches-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  const at = (name: string): string => join(folder, name)
  const include = (name: string): Promise<void> => {
    const args = [at(`${name}.mjs`)]
    return writeFile(at('mcp.json'), JSON.stringify({ mcpServers: { tools: { command: process.execPath, args } } }))
  }
  await writeFile(at('good.mjs'), program('good'))
  await writeFile(at('evil.mjs'), program('evil'))
  await writeFile(at('gateway.yaml'), `include: mcp.json\nstore: 'sqlite:${at('a.db')}'\n${extra}`)
  await include('good')
  return { at, include }
}

async function opened(options: GatewayOptions): Promise<Gateway> {
  const gateway = await createGateway({ log: 'silent', ...options })
  onTestFinished(() => gateway.close())
  await gateway.ready()
  return gateway
}

it('another command in an included file is not started until it is approved, and told until then', async () => {
  const { at, include } = await place()
  const gateway = await opened({ config: at('gateway.yaml') })
  const client = await clientOf(gateway)
  expect((await client.callTool('work', {})).text).toBe('good')
  await include('evil')
  await gateway.reload()
  await gateway.ready()
  expect(gateway.upstreams()).toMatchObject([
    {
      status: 'down',
      why: {
        code: 'LAUNCH_CHANGED',
        rule: 'pins',
        message: 'The start command of the server "tools" differs from the approved one',
        fix: `Check its entry in the config. If it is correct: vivarium gateway ${at('gateway.yaml')} --approve tools`,
      },
    },
  ])
  expect(await client.callTool('work', {})).toMatchObject({
    isError: true,
    text: expect.stringContaining('differs from the approved one'),
  })
  const [held] = await gateway.approvals()
  expect(held).toMatchObject({
    kind: 'launch',
    upstream: 'tools',
    changes: [expect.stringMatching(/^changed argument 1: .*evil\.mjs"$/)],
  })
  expect(existsSync(at('evil.started'))).toBe(false)
  expect(await gateway.approve(held?.id ?? '')).toBe(true)
  await expect.poll(() => gateway.upstreams()[0]?.status).toBe('up')
  expect([(await client.callTool('work', {})).text, await gateway.approvals()]).toEqual(['evil', []])
  const lines = (await gateway.audit.read()).filter(({ more }) => more?.['code'] === 'LAUNCH_CHANGED')
  expect(lines.map(({ outcome }) => outcome)).toEqual(['held', 'approved'])
})

it('it is held across restarts, and goes on as before once the file says again what it said', async () => {
  const { at, include } = await place()
  await (await opened({ config: at('gateway.yaml') })).close()
  await include('evil')
  const gateway = await opened({ config: at('gateway.yaml') })
  expect(gateway.upstreams()).toMatchObject([{ status: 'down', why: { code: 'LAUNCH_CHANGED' } }])
  const [held] = await gateway.approvals()
  expect(await gateway.refuse(held?.id ?? '')).toBe(true)
  expect([await gateway.approvals(), gateway.upstreams()[0]?.status]).toEqual([[], 'down'])
  await include('good')
  await gateway.reload()
  await gateway.ready()
  expect(gateway.upstreams()).toMatchObject([{ status: 'up' }])
  expect(existsSync(at('evil.started'))).toBe(false)
  expect((await readFile(at('a.db'))).includes('evil.mjs')).toBe(false)
})

it.each([
  ['warn', 1],
  ['off', 0],
] as const)('with pins: %s it is started, and told %i times', async (pins, times) => {
  const { at, include } = await place(`pins: ${pins}\n`)
  const traced: string[] = []
  const gateway = await opened({ config: at('gateway.yaml'), onTrace: event => traced.push(event) })
  await include('evil')
  await gateway.reload()
  await gateway.ready()
  expect((await (await clientOf(gateway)).callTool('work', {})).text).toBe('evil')
  expect(traced.filter(event => event === 'launch-held')).toHaveLength(times)
})

it('another address is held too; what a program hands over by itself is not', async () => {
  const [one, two] = [upstreamOf('one'), upstreamOf('two')]
  const [{ url: first }, { url: second }] = [await one.server.listen(), await two.server.listen()]
  const gateway = await opened({ servers: { web: first, own: one.target } })
  await gateway.reload({ servers: { web: second, own: two.target } })
  await gateway.ready()
  expect(gateway.upstreams()).toMatchObject([
    { name: 'web', status: 'down', why: { code: 'LAUNCH_CHANGED' } },
    { name: 'own', status: 'up' },
  ])
  const [held] = await gateway.approvals()
  expect(held).toMatchObject({ message: 'The address of the server "web" differs from the approved one' })
  expect(await toolNames(await clientOf(gateway))).toContain('own_pay')
  await gateway.approve(held?.id ?? '')
  await expect.poll(() => gateway.upstreams()[0]?.status).toBe('up')
})

/** The gateway's own file names the server, and the store of the one that was first started. */
async function ownFile() {
  const { at } = await place()
  const write = (name: string): Promise<void> =>
    writeFile(
      at('gateway.yaml'),
      JSON.stringify({ store: 'sqlite:a.db', servers: { tools: { command: process.execPath, args: [at(`${name}.mjs`)] } } }),
    )
  await write('good')
  return { at, write }
}

it('what the operator changes in the file of the gateway itself is applied at once, told once, and written down', async () => {
  const { at, write } = await ownFile()
  const notices: GatewayNotice[] = []
  const gateway = await opened({ config: at('gateway.yaml'), onNotice: notice => notices.push(notice) })
  const client = await clientOf(gateway)
  expect((await client.callTool('work', {})).text).toBe('good')
  expect(existsSync(at('a.db'))).toBe(true)
  await write('evil')
  await gateway.reload()
  await gateway.ready()
  expect((await client.callTool('work', {})).text).toBe('evil')
  expect(notices.map(({ kind, message }) => [kind, message])).toEqual([
    [
      'launch-changed',
      expect.stringMatching(/^The config file changed how "tools" is started or reached: changed argument 1: .*evil/),
    ],
  ])
  const lines = (await gateway.audit.read()).filter(({ more }) => more?.['code'] === 'LAUNCH_CHANGED')
  expect(lines).toMatchObject([{ outcome: 'approved', more: { by: 'file', server: 'tools' } }])
  await gateway.close()
  const again = await opened({ config: at('gateway.yaml'), onNotice: notice => notices.push(notice) })
  expect([again.upstreams()[0]?.status, notices.length]).toEqual(['up', 1])
})

it('where somebody can be asked he is, once, and it is held until his yes', async () => {
  const { at, write } = await ownFile()
  const asked: LaunchChange[] = []
  const answer = Promise.withResolvers<boolean>()
  const onLaunchChanged = (launch: LaunchChange): Promise<boolean> => {
    asked.push(launch)
    return answer.promise
  }
  const gateway = await opened({ config: at('gateway.yaml'), onLaunchChanged, onNotice: () => {} })
  await write('evil')
  await gateway.reload()
  await gateway.ready()
  gateway.retry('tools')
  expect(gateway.upstreams()).toMatchObject([{ status: 'down', why: { code: 'LAUNCH_CHANGED' } }])
  expect(existsSync(at('evil.started'))).toBe(false)
  answer.resolve(true)
  await expect.poll(() => gateway.upstreams()[0]?.status).toBe('up')
  expect(asked).toMatchObject([{ upstream: 'tools', changes: [expect.stringContaining('evil.mjs')] }])
})

it('where he says no it stays down, across reloads, and goes on when the file says again what it said', async () => {
  const { at, write } = await ownFile()
  let asked = 0
  const gateway = await opened({
    config: at('gateway.yaml'),
    onLaunchChanged: () => {
      asked++
      return false
    },
  })
  await write('evil')
  for (let turn = 0; turn < 2; turn++) {
    await gateway.reload()
    await gateway.ready()
  }
  expect([gateway.upstreams()[0]?.status, asked, existsSync(at('evil.started'))]).toEqual(['down', 1, false])
  await write('good')
  await gateway.reload()
  await gateway.ready()
  expect(gateway.upstreams()[0]?.status).toBe('up')
})
