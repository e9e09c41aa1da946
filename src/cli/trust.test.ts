import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { readConfig } from '../host/config/read.ts'
import { createHost } from '../host/create.ts'
import { trustIn } from './trust.ts'

function world() {
  const folder = mkdtempSync(join(tmpdir(), 'vivarium-trust-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const asked: (readonly string[])[] = []
  const answer: { yes: boolean | undefined } = { yes: true }
  const look = async (config: unknown, file = join(folder, '.mcp.json')) => {
    const text = JSON.stringify(config)
    writeFileSync(file, text)
    const confirm = async (_: string, lines: readonly string[]) => {
      asked.push(lines)
      return answer.yes
    }
    return trustIn({ confirm, env: { HOME: folder } })(await readConfig(text, file, { env: {} }), text)
  }
  return { folder, asked, answer, look }
}

const one = {
  mcpServers: { one: { command: 'node', args: ['a b', 'x'], env: { TOKEN: 'secret' } }, far: { url: 'http://x.test' } },
}

test('the whole command is shown, and no value of a variable; a yes counts for this file with this text', async () => {
  const { asked, look, folder } = world()
  expect(await look(one)).toBeUndefined()
  expect(asked).toEqual([['one: node "a b" x (with TOKEN)']])
  expect(await look(one)).toBeUndefined()
  expect(asked).toHaveLength(1)
  await look({ ...one, more: 1 })
  expect(asked).toHaveLength(2)
  await look(one, join(folder, 'other.json'))
  expect(asked).toHaveLength(3)
})

test('a no, and nobody to ask, start nothing; neither is remembered', async () => {
  const { answer, look, asked } = world()
  for (const yes of [false, undefined]) {
    answer.yes = yes
    expect(await look(one)).toMatchObject({ code: 'CONFIG_NOT_TRUSTED', fix: expect.stringContaining('--trust') })
  }
  expect(asked).toHaveLength(2)
})

test('a config that starts no command, and the examples of this package, are not asked about', async () => {
  const { asked, look } = world()
  expect(await look({ mcpServers: { far: { url: 'http://x.test' }, off: { command: 'x', disabled: true } } })).toBeUndefined()
  const file = join(import.meta.dirname, '../../examples/host/mcp.json')
  const env = { VIVARIUM_DATA: '/d', VIVARIUM_FOLDER: '/f', VIVARIUM_NODE: 'node' }
  const confirm = async () => asked.push([]) < 0
  expect(
    await trustIn({ confirm, env: {} })(await readConfig('{"mcpServers":{"a":{"command":"x"}}}', file, { env }), ''),
  ).toBeUndefined()
  expect(asked).toEqual([])
})

test('a config that changes while the host runs changes nothing before somebody agrees', async () => {
  const { folder } = world()
  const file = join(folder, '.mcp.json')
  writeFileSync(file, '{"mcpServers":{}}')
  const troubles: string[] = []
  const host = await createHost({
    config: file,
    onConfig: ({ servers }) =>
      servers.size === 0 ? undefined : { code: 'CONFIG_NOT_TRUSTED', rule: 'r', message: 'm', fix: 'f' },
    onTrouble: ({ code }) => troubles.push(code),
  })
  onTestFinished(() => host.close())
  writeFileSync(file, JSON.stringify({ mcpServers: { one: { command: process.execPath } } }))
  await expect.poll(() => troubles, { timeout: 20_000 }).toEqual(['CONFIG_NOT_TRUSTED'])
  expect(host.servers).toEqual([])
})
