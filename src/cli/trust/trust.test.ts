import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { createHost } from '../../host/create.ts'
import { fileToUse } from './config-file.ts'
import { decideConsent } from './consent.ts'

function world() {
  const folder = mkdtempSync(join(tmpdir(), 'vivarium-trust-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const asked: (readonly string[])[] = []
  const answer: { yes: boolean | undefined } = { yes: true }
  const look = async (config: unknown, file = join(folder, '.mcp.json'), own = false) => {
    const text = JSON.stringify(config)
    if (file.startsWith(folder)) writeFileSync(file, text)
    const confirm = async (_: string, lines: readonly string[]) => {
      asked.push(lines)
      return answer.yes
    }
    const decided = await decideConsent(await fileToUse({ file, text, env: {}, own }), { confirm, env: { HOME: folder } })
    return 'code' in decided ? decided : undefined
  }
  return { folder, asked, answer, look }
}

const one = {
  mcpServers: {
    one: { command: 'node', args: ['a b', 'x'], env: { TOKEN: `\${MINE}` }, cwd: `\${FOLDER}`, autoApprove: ['*'], timeout: 5 },
    far: { url: 'http://x.test', headers: { 'X-Key': `k \${KEY}\u001b[2K` } },
  },
  host: { system: 'Obey\n? me' },
}

test('all of it is shown, whole and escaped; a yes counts for this file with this content', async () => {
  const { asked, look, folder } = world()
  expect(await look(one)).toBeUndefined()
  expect(asked).toEqual([
    [
      'server "one"',
      "  starts node 'a b' x",
      `  in the folder \${FOLDER}`,
      `  with the variable TOKEN=\${MINE}`,
      '  passes the values of your variables MINE, FOLDER',
      '  calls without asking you: ["*"]',
      '  sets timeout: 5',
      'server "far"',
      '  connects to http://x.test',
      `  sends the header X-Key: k \${KEY}\\u{1b}[2K`,
      '  sends the values of your variables KEY',
      'host.system: "Obey\\n? me"',
      'It starts 1 program; it connects to 1 address; it uses the values of your variables MINE, FOLDER, KEY; it sets host.system.',
    ],
  ])
  expect(await look(one)).toBeUndefined()
  expect(asked).toHaveLength(1)
  await look(one, join(folder, 'other.json'))
  expect(asked).toHaveLength(2)
})

test('what changed is asked about again, and marked', async () => {
  const { asked, look } = world()
  await look({ mcpServers: { far: { url: 'http://x.test' } } })
  await look({ mcpServers: { far: { url: 'http://y.test' } } })
  expect(asked[1]).toEqual([
    '  server "far"',
    '+   connects to http://y.test',
    '- 1 line that you approved is no longer there',
    'It connects to 1 address.',
  ])
})

test('a no, and nobody to ask, use nothing; neither is remembered', async () => {
  const { answer, look, asked } = world()
  for (const yes of [false, undefined]) {
    answer.yes = yes
    expect(await look(one)).toMatchObject({ code: 'CONFIG_NOT_TRUSTED', fix: expect.stringContaining('--trust') })
  }
  expect(asked).toHaveLength(2)
})

test("a file that does nothing, the user's own, and the examples of this package are not asked about", async () => {
  const { asked, look, folder } = world()
  expect(await look({ mcpServers: {} })).toBeUndefined()
  expect(await look(one, join(folder, 'mine.json'), true)).toBeUndefined()
  expect(await look(one, join(import.meta.dirname, '../../../examples/host/mcp.json'))).toBeUndefined()
  expect(asked).toEqual([])
})

test('the content of a file of variables belongs to what is agreed to', async () => {
  const { asked, look, folder } = world()
  const config = { mcpServers: { one: { command: 'node', envFile: 'vars.env' } } }
  writeFileSync(join(folder, 'vars.env'), 'A=1')
  await look(config)
  await look(config)
  expect(asked).toEqual([expect.arrayContaining(['  with the variables of the file vars.env: A'])])
  writeFileSync(join(folder, 'vars.env'), 'A=1\nNODE_OPTIONS=--require ./x.js')
  await look(config)
  expect(asked[1]).toContain('+   with the variables of the file vars.env: A, NODE_OPTIONS')
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
  await expect.poll(() => troubles).toEqual(['CONFIG_NOT_TRUSTED'])
  expect(host.servers).toEqual([])
})
