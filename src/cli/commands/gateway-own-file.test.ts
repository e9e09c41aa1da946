/** A gateway whose operator edits its own file, in a folder that is not the one that it was started in. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { trial } from '../../../test/cli/trial.ts'
import { connect } from '../../client/index.ts'

const server = (name: string): string => `
import { createServer } from 'vivarium/server'
const server = createServer({ name: '${name}', version: '1.0.0' })
server.tool('work', {}, () => '${name}')
server.tool('die', {}, () => process.exit(1))
await server.stdio()
`
/** Never says a word. */
const silent = 'process.stdin.resume()'

const file = (name: string): string => `
store: "sqlite:kept/a.db"
servers:
  tools: { command: ${JSON.stringify(process.execPath)}, args: ["${name}.mjs"] }
  silent: { command: ${JSON.stringify(process.execPath)}, args: [silent.mjs] }
`

const files = {
  'one.mjs': server('one'),
  'two.mjs': server('two'),
  'silent.mjs': silent,
  'conf/gateway.yaml': file('one'),
}

test('servers that come up and go down are told, what he changes is applied, and no line says undefined', {
  timeout: 120_000,
}, async () => {
  const it = await trial(files)
  const gateway = it.start(['gateway', 'conf/gateway.yaml', '--port', '0', '--format', 'json'])
  const [, url = ''] = await gateway.until(/"url":"([^"]+)"/)
  await gateway.until(/upstream-up server=tools/, 'err')
  expect(existsSync(join(it.folder, 'conf/kept/a.db'))).toBe(true)
  const client = await connect(url)
  onTestFinished(() => client.close())
  const status = await it.run(['gateway', 'status', 'conf/gateway.yaml', '--port', new URL(url).port])
  expect(status.out).toMatch(/tools up {2}2026-07-28: 2 tools, 0 resources, 0 prompts\nsilent connecting\n/)

  await client.callTool('die')
  await gateway.until(/upstream-down server=tools[\s\S]*upstream-up server=tools/, 'err')

  it.write('conf/gateway.yaml', file('two'))
  await gateway.until(/The config file changed how "tools" is started or reached: changed argument 1: "two\.mjs"/, 'err')
  await expect.poll(async () => (await client.callTool('work').catch(() => ({ text: '' }))).text).toBe('two')
  const check = await it.run(['gateway', 'approvals', 'conf/gateway.yaml'])
  expect(check.out).toContain('Nothing is waiting for approval')
  const audit = await it.run(['gateway', 'audit', 'conf/gateway.yaml'])
  expect(audit.out).toMatch(/noted approved tools .*code=LAUNCH_CHANGED by=file/)
  expect([gateway.out(), gateway.err(), status.out, audit.out].join('\n')).not.toContain('undefined')
})

test('in a terminal he is asked once, and it starts by his yes', { timeout: 120_000 }, async () => {
  const it = await trial(files)
  const gateway = it.terminal(['gateway', 'conf/gateway.yaml', '--port', '0'])
  await gateway.until(/upstream-up server=tools/, 'err')
  it.write('conf/gateway.yaml', file('two'))
  await gateway.until(/The file now starts tools in another way:[\s\S]*changed argument 1: "two\.mjs"[\s\S]*Approve\?/, 'err')
  gateway.child.stdin?.write('y\n')
  await gateway.until(/Approve\?[\s\S]*upstream-up server=tools/, 'err')
  expect(gateway.err().match(/Approve\?/g)).toHaveLength(1)
})
