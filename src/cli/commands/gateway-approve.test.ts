import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { trial } from '../../../test/cli/trial.ts'
import { connect } from '../../client/index.ts'

const server = (name: string): string => `
import { writeFileSync } from 'node:fs'
import { createServer } from 'vivarium/server'
writeFileSync('${name}.started', '')
const server = createServer({ name: '${name}', version: '1.0.0' })
server.tool('work', {}, () => '${name}')
await server.stdio()
`

test('a command that was changed is started neither by --check nor by the gateway, until --approve takes it', {
  timeout: 60_000,
}, async () => {
  const entry = (name: string) => JSON.stringify({ mcpServers: { tools: { command: process.execPath, args: [`${name}.mjs`] } } })
  const it = await trial({
    'good.mjs': server('good'),
    'evil.mjs': server('evil'),
    'mcp.json': entry('good'),
    'gateway.yaml': 'include: mcp.json\nstore: "sqlite:a.db"\n',
  })
  const nothing = await it.run(['gateway', 'gateway.yaml', '--approve', 'tools'])
  expect([nothing.code, nothing.err]).toEqual([1, expect.stringContaining('nothing is stored there yet')])
  const { until } = it.start(['gateway', 'gateway.yaml', '--port', '0', '--format', 'json'])
  const [, url = ''] = await until(/"url":"([^"]+)"/)
  const client = await connect(url)
  onTestFinished(() => client.close())
  const answer = async (): Promise<string> => (await client.callTool('work').catch(() => ({ text: '' }))).text
  await expect.poll(answer).toBe('good')

  it.write('mcp.json', entry('evil'))
  await until(/restarted tools/, 'err')
  await expect.poll(answer).toContain('differs from the approved one')
  const check = await it.run(['gateway', 'gateway.yaml', '--check'])
  expect([check.code, check.out]).toEqual([4, expect.stringContaining('vivarium gateway gateway.yaml --approve tools')])
  expect(existsSync(join(it.folder, 'evil.started'))).toBe(false)

  const approved = await it.run(['gateway', 'gateway.yaml', '--approve', 'tools'])
  expect([approved.code, approved.out]).toEqual([
    0,
    expect.stringMatching(/changed argument 1: "evil\.mjs"[\s\S]*starts in this way/),
  ])
  await expect.poll(answer).toBe('evil')
})
