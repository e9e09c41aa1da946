import { mkdtemp, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { faultText, readConfig } from './read.ts'

const env = { TOKEN: 'secret' }
const read = (text: string, file = '/project/.mcp.json') => readConfig(text, file, { env, home: '/home/ann' })

describe('the shapes of config files', () => {
  test('mcpServers, with comments and trailing commas', async () => {
    const { servers, faults } = await read(`{
      // what most programs write
      "mcpServers": {
        "notes": { "command": "node", "args": ["notes.js", "\${TOKEN}"], "env": { "A": "1" }, "cwd": "/tmp" },
        "web": { "url": "https://example.com/mcp", "headers": { "Authorization": "Bearer \${TOKEN}" } }, /* inferred */
      },
    }`)
    expect(faults).toEqual([])
    expect(servers.get('notes')).toMatchObject({
      target: { command: 'node', args: ['notes.js', 'secret'], env: { A: '1' }, cwd: '/tmp' },
      disabled: false,
      line: 4,
    })
    expect(servers.get('web')).toMatchObject({
      target: 'https://example.com/mcp',
      headers: { Authorization: 'Bearer secret' },
    })
  })

  test("VS Code's servers, whose folder is that of the project", async () => {
    const text = `{ "servers": { "a": { "type": "stdio", "command": "\${workspaceFolder}/run" } } }`
    expect((await read(text, '/project/.vscode/mcp.json')).servers.get('a')?.target).toMatchObject({ command: '/project/run' })
  })

  test.each(['type', 'transport', 'transportType'])('the transport may be named by %s', async key => {
    const { servers, faults } = await read(
      JSON.stringify({
        mcpServers: { a: { [key]: 'streamable-http', url: 'http://localhost/' }, b: { [key]: 'pigeon', url: 'x' } },
      }),
    )
    expect(servers.get('a')?.target).toBe('http://localhost/')
    expect(faults).toMatchObject([{ server: 'b', why: { rule: 'config.transport' } }])
  })

  test('disabled, timeout, autoApprove, the live section, and members that are not ours', async () => {
    const entry = {
      command: 'x',
      disabled: true,
      timeout: 5_000,
      autoApprove: ['read'],
      live: {
        enable: ['memory.*'],
        disable: ['memory.push'],
        scopes: { files: { whitelist: ['src/**'], blacklist: ['.env'] } },
        uses: { 'memory.*': ['pushEvents'] },
      },
      icon: 'x.png',
    }
    expect((await read(JSON.stringify({ mcpServers: { a: entry } }))).servers.get('a')).toMatchObject({
      disabled: true,
      timeoutMs: 5_000,
      autoApprove: ['read'],
      live: entry.live,
      more: { icon: 'x.png' },
    })
  })

  test('variables from a file beside the config', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'vivarium-config-'))
    await writeFile(join(folder, '.env'), 'A=1\nB="two words"\n')
    const text = JSON.stringify({ servers: { a: { command: 'x', envFile: '.env', env: { A: '2' } } } })
    const { servers } = await readConfig(text, join(folder, 'mcp.json'), { env })
    expect(servers.get('a')?.target).toMatchObject({ env: { A: '2', B: 'two words' } })
  })
})

describe('mistakes', () => {
  test('a missing variable refuses its server alone, and names the field, the line and the fix', async () => {
    const { servers, refused, faults } = await read(`{
      "mcpServers": {
        "broken": { "command": "x",
          "env": { "KEY": "\${NONE}" } },
        "fine": { "command": "y" }
      }
    }`)
    expect([...servers.keys()]).toEqual(['fine'])
    expect(refused.get('broken')).toMatchObject({ code: 'VARIABLE_MISSING' })
    expect(faults.map(faultText)).toEqual([
      '/project/.mcp.json:4: The variable NONE is not set, but "env.KEY" of the server "broken" uses it (config.variables). ' +
        `Set NONE, or write \${NONE:-default} in the config`,
    ])
  })

  test.each([
    ['neither command nor url', '{}', 'config.target'],
    ['no object', '3', 'config.entry'],
    ['a url that is none', '{ "url": "example.com" }', 'config.url'],
    ['a url without the transport for it', '{ "type": "http" }', 'config.url'],
    ['args that are no list', '{ "command": "x", "args": "y" }', 'config.shape'],
    ['an object among args', '{ "command": "x", "args": [{}] }', 'config.shape'],
    ['env that is no object', '{ "command": "x", "env": [] }', 'config.shape'],
    ['disabled that is a word', '{ "command": "x", "disabled": "no" }', 'config.shape'],
    ['a timeout below nothing', '{ "command": "x", "timeout": -1 }', 'config.shape'],
    ['a use that is not known', '{ "command": "x", "live": { "uses": { "a": ["push"] } } }', 'config.uses'],
    ['a live section that is no object', '{ "command": "x", "live": true }', 'config.shape'],
    ['an envFile that is not there', '{ "command": "x", "envFile": "nowhere" }', 'config.envFile'],
    ['an input', `{ "command": "x", "args": ["\${input:a}"] }`, 'config.inputs'],
  ])('%s is told with its line, rule and fix, and harms no other', async (_, entry, rule) => {
    const { servers, faults } = await read(`{ "mcpServers": {\n"bad": ${entry},\n"good": { "command": "x" } } }`)
    expect([...servers.keys()]).toEqual(['good'])
    expect(faults).toMatchObject([{ file: '/project/.mcp.json', line: 2, server: 'bad', why: { rule } }])
    expect(faults[0]?.why.fix).toMatch(/./)
  })

  test.each([
    ['{ "mcpServers": {\n "a": { "command": } } }', 2, 'config.syntax'],
    ['', 1, 'config.syntax'],
    ['[]', 1, 'config.syntax'],
    ['{ "mcpServers": {\n', 1, 'config.syntax'],
    ['{ "mcpServers": { "a": {},\n "a": {} } }', 2, 'config.syntax'],
  ])('a file that cannot be read says where: %j', async (text, line, rule) => {
    const { readable, faults } = await read(text)
    expect(readable).toBe(false)
    expect(faults).toContainEqual(expect.objectContaining({ line, why: expect.objectContaining({ rule }) }))
  })

  test('a name that is almost right is told', async () => {
    const { faults } = await read('{\n "mcpservers": {} }')
    expect(faults).toMatchObject([{ line: 2, why: { fix: 'Write "mcpServers" instead of "mcpservers"' } }])
  })

  test('inputs are refused in clear words', async () => {
    const { faults } = await read('{ "inputs": [{ "id": "a" }], "servers": {} }')
    expect(faults).toMatchObject([{ why: { rule: 'config.inputs', fix: expect.stringContaining(`\${API_KEY}`) } }])
  })

  test('a file without servers, and one with a name in both lists, are told', async () => {
    expect((await read('{}')).faults).toMatchObject([{ why: { rule: 'config.servers' } }])
    const both = '{ "mcpServers": { "a": { "command": "x" } }, "servers": { "a": { "command": "y" } } }'
    expect(await read(both)).toMatchObject({ faults: [{ server: 'a', why: { rule: 'config.name' } }] })
  })

  test('no mistake tells the value of a variable', async () => {
    const { faults } = await read(`{ "mcpServers": { "a": { "url": "\${TOKEN}" }, "b": { "type": "\${TOKEN}x", "url": "" } } }`)
    expect(faults).toHaveLength(2)
    expect(faults[0] && faultText(faults[0])).not.toContain('secret')
  })

  test('names that objects inherit are names like others', async () => {
    const { servers } = await read('{ "mcpServers": { "__proto__": { "command": "x" }, "constructor": { "command": "y" } } }')
    expect([...servers.keys()]).toEqual(['__proto__', 'constructor'])
  })
})

test('the digest of a server changes with what is connected to, and with nothing else', async () => {
  const digestOf = async (entry: string) => (await read(`{ "mcpServers": { "a": ${entry} } }`)).servers.get('a')?.digest
  const first = await digestOf('{ "command": "x", "args": ["1"] }')
  expect(await digestOf('{ "args": ["1"], "command": "x", "live": { "enable": ["a"] }, "more": 1 }')).toBe(first)
  expect(await digestOf('{ "command": "x", "args": ["2"] }')).not.toBe(first)
})

test('whatever stands in a file, it is read or its mistakes are told', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.oneof(
        fc.string(),
        fc.json(),
        fc.object().map(o => JSON.stringify({ mcpServers: o })),
      ),
      async text => {
        const config = await read(text)
        expect(config.readable || config.faults.length > 0).toBe(true)
        for (const name of config.refused.keys()) expect(config.servers.has(name)).toBe(false)
      },
    ),
    { numRuns: 200 },
  )
})
