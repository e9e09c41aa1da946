import { spawn } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { connect } from '../../client/index.ts'

const root = join(import.meta.dirname, '../../..')
const main = join(root, 'dist/cli/main.js')

const server = (name: string): string => `
import { createServer } from ${JSON.stringify(join(root, 'dist/server.js'))}
const server = createServer({ name: ${JSON.stringify(name)}, version: '1.0.0' })
server.tool('search', { description: 'Searches' }, () => ${JSON.stringify(name)})
server.tool('delete_${name}', { description: 'Deletes' }, () => 'gone')
await server.stdio()
`

async function folder(extra = ''): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), 'vivarium-gateway-'))
  onTestFinished(() => rm(path, { recursive: true, force: true }))
  const entry = (name: string) => ({ command: process.execPath, args: [join(path, `${name}.mjs`)] })
  await writeFile(join(path, 'left.mjs'), server('left'))
  await writeFile(join(path, 'right.mjs'), server('right'))
  await writeFile(join(path, 'mcp.json'), JSON.stringify({ mcpServers: { left: entry('left') } }))
  const inline = JSON.stringify({ right: entry('right') })
  const rules = `rules:\n  - { name: careful, tool: 'delete_*', do: deny }\n`
  await writeFile(join(path, 'gateway.yaml'), `include: mcp.json\nservers: ${inline}\n${rules}${extra}`)
  return path
}

function run(cwd: string, args: readonly string[]) {
  const child = spawn(process.execPath, [main, 'gateway', ...args], { cwd, env: { PATH: process.env['PATH'] ?? '', HOME: cwd } })
  onTestFinished(() => void child.kill('SIGKILL'))
  let [out, err] = ['', '']
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    out += text
  })
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    err += text
  })
  const ended = new Promise<number | null>(resolve => child.on('close', resolve))
  return { child, ended, out: () => out, err: () => err }
}

test('--check says what each server is, which names result, and which rule is about which tool', {
  timeout: 60_000,
}, async () => {
  const { ended, out, err } = run(await folder(), ['gateway.yaml', '--check', '--format', 'json'])
  expect([await ended, err()]).toEqual([0, ''])
  expect(JSON.parse(out())).toMatchObject({
    faults: [],
    servers: [
      { name: 'right', status: 'up', tools: 2 },
      { name: 'left', status: 'up', revision: '2026-07-28' },
    ],
    names: [
      { kind: 'tool', name: 'right_search', upstream: 'right', own: 'search', do: 'allow' },
      { name: 'delete_right', do: 'deny', rule: 'careful' },
      { name: 'left_search' },
      { name: 'delete_left', rule: 'careful' },
    ],
  })
})

test('--check tells mistakes with their lines, connects to nobody, and fails', { timeout: 60_000 }, async () => {
  const { ended, out } = run(await folder('listen: { prt: 1 }\n'), ['gateway.yaml', '--check'])
  expect(await ended).toBe(1)
  expect(out()).toMatch(/gateway\.yaml:5: listen has no setting "prt"/)
})

test('a file with a mistake is not served', { timeout: 60_000 }, async () => {
  const { ended, err } = run(await folder('listen: { prt: 1 }\n'), ['gateway.yaml', '--stdio'])
  expect(await ended).toBe(1)
  expect(err()).toMatch(/gateway\.yaml:5: .*--check to see all mistakes/s)
})

test('it serves over standard input and output, and ends its servers with itself', { timeout: 60_000 }, async () => {
  const cwd = await folder()
  const client = await connect({ command: process.execPath, args: [main, 'gateway', 'gateway.yaml', '--stdio'], cwd })
  onTestFinished(() => client.close())
  await expect
    .poll(async () => (await client.callTool('left_search').catch(() => ({ text: '' }))).text, { timeout: 30_000 })
    .toBe('left')
  expect(await client.callTool('delete_right')).toMatchObject({ isError: true, text: expect.stringContaining('careful') })
})

test('it serves over HTTP where it is told to, and ends in good order', { timeout: 60_000 }, async () => {
  const { child, ended, out } = run(await folder(), ['gateway.yaml', '--port', '0', '--format', 'json'])
  await expect.poll(out).toContain('url')
  const { url } = JSON.parse(out()) as { url: string }
  const client = await connect(url)
  await expect
    .poll(async () => (await client.callTool('right_search').catch(() => ({ text: '' }))).text, { timeout: 30_000 })
    .toBe('right')
  await client.close()
  child.kill('SIGTERM')
  expect(await ended).toBe(0)
})

test('--check tells of a rule that is about no tool', { timeout: 60_000 }, async () => {
  const { ended, out } = run(await folder("  - { name: typo, tool: 'nosuch_*', do: deny }\n"), ['gateway.yaml', '--check'])
  expect(await ended).toBe(0)
  expect(out()).toContain('The rule typo matches nothing')
  expect(out()).not.toContain('The rule careful')
})

test('--check names rules that refuse some calls of a tool', { timeout: 60_000 }, async () => {
  const spam = "  - { name: spam, do: deny, when: { tool: 'search', server: left, arguments: { q: '*spam*' } } }\n"
  const { ended, out } = run(await folder(spam), ['gateway.yaml', '--check'])
  expect(await ended).toBe(0)
  expect(out()).toMatch(/left_search.* allow; some calls: deny by spam$/m)
  expect(out()).toMatch(/right_search.* allow$/m)
})

test('--check says of a file that is not there just that', { timeout: 60_000 }, async () => {
  const { ended, err } = run(await folder(), ['none.yaml', '--check'])
  expect(await ended).toBe(1)
  expect(err()).toContain('The file "none.yaml" does not exist')
  expect(err()).not.toContain('ENOENT')
})

test('--check does not promise to try a server again', { timeout: 60_000 }, async () => {
  const path = await folder()
  await writeFile(join(path, 'left.mjs'), 'process.exit(1)')
  for (const format of ['text', 'json']) {
    const { ended, out, err } = run(path, ['gateway.yaml', '--check', '--format', format])
    expect([await ended, err()]).toEqual([4, ''])
    expect(out()).toContain('Correct its entry, or start the server')
    expect(out()).not.toContain('tried again')
    if (format === 'json')
      expect(JSON.parse(out())).toMatchObject({
        servers: [
          { name: 'right', target: expect.stringContaining('right.mjs'), status: 'up' },
          { name: 'left', status: 'down', why: { code: 'SERVER_DOWN', fix: 'Correct its entry, or start the server' } },
        ],
      })
  }
})

test('--check says of a server that has failed that it is down, also while it is tried once more', async () => {
  const path = await folder()
  const [starts, again] = [join(path, 'starts'), join(path, 'again')].map(file => JSON.stringify(file)) as [string, string]
  await writeFile(
    join(path, 'left.mjs'),
    `import { appendFileSync, readFileSync, writeFileSync } from 'node:fs'
    appendFileSync(${starts}, '.')
    if (readFileSync(${starts}).length < 4) process.exit(1)
    writeFileSync(${again}, '')
    setInterval(() => {}, 1_000)`,
  )
  const untilTriedAgain = `import { existsSync } from 'node:fs'
    while (!existsSync(${again})) await new Promise(resolve => setTimeout(resolve, 20))`
  await writeFile(join(path, 'right.mjs'), `${untilTriedAgain}${server('right')}`)
  const { ended, out, err } = run(path, ['gateway.yaml', '--check', '--format', 'json'])
  expect([await ended, err()]).toEqual([4, ''])
  expect(JSON.parse(out())).toMatchObject({ servers: [{ status: 'up' }, { status: 'down', why: { code: 'SERVER_DOWN' } }] })
})

test('--check says as JSON all that it says in words: mistakes, idle rules, what is not listed', {
  timeout: 60_000,
}, async () => {
  const typo = run(await folder("  - { name: typo, tool: 'nosuch_*', do: deny }\n"), [
    'gateway.yaml',
    '--check',
    '--format',
    'json',
  ])
  const mistake = run(await folder('listen: { prt: 1 }\n'), ['gateway.yaml', '--check', '--format', 'json'])
  expect([await typo.ended, typo.err(), await mistake.ended, mistake.err()]).toEqual([0, '', 1, ''])
  expect(JSON.parse(typo.out())).toMatchObject({ idle: ['typo'], names: [{}, { name: 'delete_right', listed: false }, {}, {}] })
  expect(JSON.parse(mistake.out())).toEqual({
    file: 'gateway.yaml',
    faults: [
      {
        file: expect.any(String),
        line: 5,
        rule: expect.any(String),
        message: expect.stringContaining('prt'),
        fix: expect.any(String),
      },
    ],
  })
})
