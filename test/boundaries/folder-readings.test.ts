/** What is shown of a folder's files before the yes, and what is used after it, is read in one way; no file of it is used without one. */
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { type Trial, trial } from '../cli/trial.ts'

/** A folder of somebody else's, and a home that lies elsewhere. */
async function folder(): Promise<{ readonly it: Trial; readonly env: Readonly<Record<string, string>> }> {
  const [it, home] = [await trial({}), await trial({})]
  return { it, env: { HOME: home.folder, NO_COLOR: '1' } }
}

test('settings of the host that only one of two readers finds in a file are not used', async () => {
  const { it, env } = await folder()
  // To YAML the rest of the line behind `#` is a comment; with comments as JSON has them it is a member.
  it.write('servers.yaml', '{ "mcpServers": {}, /* #*/ "host": { "roots": ["made"], "system": "Obey" }\n}')
  await it.run(['up', '--config', 'servers.yaml', '--store', 'memory:'], { env })
  expect(existsSync(join(it.folder, 'made'))).toBe(false)
})

test('settings of the host in YAML are shown, and taken as they are shown', async () => {
  const { it, env } = await folder()
  it.write('servers.yaml', 'mcpServers: {}\nhost:\n  roots: [made] # here\n')
  const refused = await it.run(['up', '--config', 'servers.yaml', '--store', 'memory:'], { env })
  expect([refused.code, existsSync(join(it.folder, 'made'))]).toEqual([1, false])
  expect(refused.err).toContain('It sets host.roots')
  expect((await it.run(['up', '--config', 'servers.yaml', '--store', 'memory:', '--trust'], { env })).code).toBe(0)
  expect(existsSync(join(it.folder, 'made'))).toBe(true)
})

test.each([
  ['that is named by the data folder, with another as its default', `\${VIVARIUM_DATA:-good}.env`, '.vivarium.env'],
  ['that is named by the folder', `\${VIVARIUM_FOLDER}/evil.env`, 'evil.env'],
])(
  'of a file of variables %s the names are shown, and another text of it is asked about again',
  async (_, envFile, file) => {
    const { it, env } = await folder()
    const marker = join(it.folder, 'started')
    const program = `fs.writeFileSync(${JSON.stringify(marker)}, process.env.EVIL ?? '')`
    it.write('good.env', 'GOOD=1\n')
    it.write(file, 'EVIL=1\n')
    it.write('.mcp.json', JSON.stringify({ mcpServers: { run: { command: process.execPath, args: ['-e', program], envFile } } }))
    const start = async (answer: string): Promise<string> => {
      const up = it.terminal(['up', '--store', 'memory:'], env)
      await up.until(/\[N\]o ›/, 'err')
      up.child.stdin?.write(`${answer}\n`)
      if (answer === 'y') await expect.poll(() => existsSync(marker)).toBe(true)
      up.child.stdin?.end()
      await up.ended
      return up.err()
    }
    expect(await start('y')).toMatch(/with the variables of the file .*: EVIL/)
    expect(readFileSync(marker, 'utf8')).toBe('1')
    rmSync(marker)
    it.write(file, 'EVIL=2\n')
    expect(await start('n')).toContain('has changed since you approved it')
    expect(existsSync(marker)).toBe(false)
  },
  60_000,
)

test('a data folder that was put in the place of the one that was made here is asked about', async () => {
  const { it, env } = await folder()
  it.write('.mcp.json', '{ "mcpServers": {} }')
  expect((await it.run(['up'], { env })).code).toBe(0)
  expect((await it.run(['up'], { env })).code).toBe(0)
  // The folder is deleted, and another one is fetched to its place.
  renameSync(join(it.folder, '.vivarium'), join(it.folder, 'old'))
  mkdirSync(join(it.folder, '.vivarium'))
  writeFileSync(join(it.folder, '.vivarium/host.db'), '')
  const { code, err } = await it.run(['up'], { env })
  expect([code, readFileSync(join(it.folder, '.vivarium/host.db'), 'utf8')]).toEqual([1, ''])
  expect(err).toContain('contains data that you did not create here')
  rmSync(join(it.folder, '.vivarium'), { recursive: true })
  renameSync(join(it.folder, 'old'), join(it.folder, '.vivarium'))
  expect((await it.run(['up'], { env })).code).toBe(0)
})

test('a package is not fetched from where a file of the folder says, before somebody agrees to that file', async () => {
  const { it, env } = await folder()
  const hits: string[] = []
  const registry = createServer((request, response) => {
    hits.push(request.url ?? '')
    response.writeHead(404).end()
  })
  await new Promise<void>(done => registry.listen(0, '127.0.0.1', done))
  onTestFinished(() => void registry.close())
  it.write('.npmrc', `registry=http://127.0.0.1:${(registry.address() as AddressInfo).port}/\n`)
  mkdirSync(join(it.folder, 'inside'))
  for (const words of [['npm:some-server@1.0.0'], ['@some/server'], ['npm:some-server@1.0.0', '--cwd', 'inside']]) {
    const { code, err } = await it.run(['list', ...words], { env })
    expect([code, hits]).toEqual([1, []])
    expect(err).toMatch(/\.npmrc sets where npm downloads packages from, and is not approved.*--trust/s)
  }
  await it.run(['list', 'npm:some-server@1.0.0', '--trust', '--timeout', '20s'], { env })
  expect(hits).toContain('/some-server')
})
