import { rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { trial } from '../../../test/cli/trial.ts'
import { connect } from '../../client/index.ts'

const server = (name: string): string => `
import { createServer } from 'vivarium/server'
const server = createServer({ name: '${name}', version: '1.0.0' })
server.tool('${name}', {}, () => String(process.pid))
await server.stdio()
`

test('a running gateway follows its file and those it includes, by whatever way they are written', {
  timeout: 60_000,
}, async () => {
  const entry = (name: string) => ({ command: process.execPath, args: [`${name}.mjs`] })
  const included = (...names: string[]) =>
    JSON.stringify({ mcpServers: Object.fromEntries(names.map(name => [name, entry(name)])) })
  const own = (extra = ''): string => `include: mcp.json\nservers: ${JSON.stringify({ left: entry('left') })}\n${extra}`
  const it = await trial({
    'left.mjs': server('left'),
    'right.mjs': server('right'),
    'mcp.json': included('right'),
    'gateway.yaml': own(),
  })
  const { child, ended, until, err } = it.start(['gateway', 'gateway.yaml', '--port', '0', '--format', 'json'])
  const [, url = ''] = await until(/"url":"([^"]+)"/)
  const client = await connect(url)
  onTestFinished(() => client.close())
  const answers = async (tool: string): Promise<string> => (await client.callTool(tool).catch(() => ({ text: '' }))).text
  await expect.poll(() => answers('left')).toMatch(/\d/)
  await expect.poll(() => answers('right')).toMatch(/\d/)
  const pid = await answers('left')

  // As editors do it: another file in its place.
  await writeFile(join(it.folder, 'draft'), own('rules:\n  - { name: careful, tool: right, do: deny }\n'))
  await rename(join(it.folder, 'draft'), join(it.folder, 'gateway.yaml'))
  await until(/gateway\.yaml was reloaded\n/, 'err')
  expect(await client.callTool('right')).toMatchObject({ isError: true, text: expect.stringContaining('careful') })

  await writeFile(join(it.folder, 'mcp.json'), '{ "mcpServers": { ')
  await until(/mcp\.json:1: .*\n.*the previous settings stay in force/, 'err')
  await writeFile(join(it.folder, 'mcp.json'), included())
  await until(/was reloaded: ended right/, 'err')
  await expect(client.callTool('right')).rejects.toThrow('There is no tool')

  await writeFile(join(it.folder, 'gateway.yaml'), own('listen: { port: 1 }\nstore: "sqlite:a.db"\n'))
  await until(/store, listen changed in gateway\.yaml, but take effect only after a restart/, 'err')
  const before = err().match(/was reloaded/g)?.length ?? 0
  child.kill('SIGHUP')
  await expect.poll(() => err().match(/was reloaded/g)?.length).toBe(before + 1)
  expect(await answers('left')).toBe(pid)
  child.kill('SIGTERM')
  expect(await ended).toBe(0)
})
