import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { faultText } from '../../host/config/read.ts'
import { createGateway } from '../create.ts'
import { optionsOf, readGatewayFile } from './load.ts'

const env = { TOKEN: 'a-token-of-the-tests', SECRET: 'a secret of at least thirty-two characters' }

async function files(contents: Readonly<Record<string, string>>): Promise<(name: string) => string> {
  const folder = await mkdtemp(join(tmpdir(), 'vivarium-gateway-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  for (const [name, text] of Object.entries(contents)) await writeFile(join(folder, name), text)
  return name => join(folder, name)
}

async function faultsOf(contents: Readonly<Record<string, string>>): Promise<readonly string[]> {
  const at = await files(contents)
  const { faults } = await readGatewayFile(at('gateway.yaml'), { env })
  return faults.map(fault => faultText(fault).replaceAll(`${dirname(at('gateway.yaml'))}/`, ''))
}

test('one file says all, and takes the servers of the files of other programs', async () => {
  const at = await files({
    'gateway.yaml': `
include: [claude.json, vscode.json]
servers:
  web: { url: 'https://example.com/mcp', headers: { authorization: 'Bearer \${TOKEN}' }, timeout: 5000, startTimeout: 9000 }
listen: { port: 7420, ssePath: /sse }
store: 'memory:'
secret: \${SECRET}
rules:
  - { name: careful, tool: 'delete_*', do: deny }
pins: warn
`,
    'claude.json':
      '{ "mcpServers": { "notes": { "command": "node", "args": ["notes.js"] }, "off": { "command": "x", "disabled": true } } }',
    'vscode.json': '{ "servers": { "files": { "type": "stdio", "command": "files" } } } // a comment',
  })
  const config = await readGatewayFile(at('gateway.yaml'), { env })
  expect(config.faults).toEqual([])
  expect(optionsOf(config)).toMatchObject({
    servers: {
      web: {
        target: 'https://example.com/mcp',
        headers: { authorization: 'Bearer a-token-of-the-tests' },
        timeoutMs: 5000,
        startTimeoutMs: 9000,
      },
      notes: { target: { command: 'node', args: ['notes.js'] } },
      files: { target: { command: 'files' } },
    },
    listen: { port: 7420, ssePath: '/sse' },
    store: 'memory:',
    secret: env.SECRET,
    pins: 'warn',
    rules: [{ name: 'careful' }],
  })
  expect(Object.keys(optionsOf(config).servers ?? {})).not.toContain('off')
})

test.each([
  ['sqlite:kept/a.db', 'kept/a.db'],
  ['sqlite:../a.db', '../a.db'],
  ['sqlite:///srv/a.db', '/srv/a.db'],
  ['sqlite:/srv/a.db', '/srv/a.db'],
])('the path of the store %s counts from the folder of the file', async (store, path) => {
  const at = await files({ 'gateway.yaml': `servers: { web: { url: 'https://example.com/mcp' } }\nstore: '${store}'\n` })
  const { frame, faults } = await readGatewayFile(at('gateway.yaml'), { env })
  expect([frame.store, faults]).toEqual([`sqlite:${resolve(dirname(at('gateway.yaml')), path)}`, []])
})

test('its own entry stands in the place of an included one', async () => {
  const at = await files({
    'gateway.yaml': 'include: other.json\nservers:\n  notes: { url: "https://example.com/mcp" }\n',
    'other.json': '{ "mcpServers": { "notes": { "command": "node" } } }',
  })
  const { servers, faults } = await readGatewayFile(at('gateway.yaml'), { env })
  expect(faults).toEqual([])
  expect(servers.get('notes')).toMatchObject({ target: 'https://example.com/mcp', file: at('gateway.yaml') })
})

test.each([
  [
    'a member that means nothing',
    'servers: { a: { url: "http://a/" } }\nlissten: 1\n',
    'gateway.yaml:2: The file has an unknown setting "lissten"',
  ],
  ['no servers', 'listen: { port: 1 }\n', 'gateway.yaml:1: The file has no servers'],
  ['a port that is none', 'servers: { a: { url: "http://a/" } }\nlisten:\n  port: many\n', 'gateway.yaml:3: listen.port'],
  ['a store of no kind', 'servers: { a: { url: "http://a/" } }\nstore: redis\n', 'gateway.yaml:2: store'],
  [
    'a variable that is not set',
    `servers: { a: { url: "http://a/" } }\nsecret: \${NOWHERE}\n`,
    'gateway.yaml:2: secret: The variable NOWHERE',
  ],
  ['a file that is not there', 'include: nowhere.json\nservers: { a: { url: "http://a/" } }\n', 'gateway.yaml:1: The file'],
  [
    'a rule that says nothing',
    'servers: { a: { url: "http://a/" } }\nrules:\n  - { name: x, do: perhaps }\n',
    'gateway.yaml:3: ',
  ],
  ['no YAML at all', 'servers: {\n', 'gateway.yaml:'],
  ['a server without an address', 'servers:\n  a: { args: [] }\n', 'gateway.yaml:2: The server "a" has neither'],
])('%s is told with its line and what would be right', async (_, text, told) => {
  const faults = await faultsOf({ 'gateway.yaml': text })
  expect(faults.join('\n')).toContain(told)
  for (const line of faults) expect(line).toMatch(/^gateway\.yaml:\d+: .+ \([a-z]+\..+\)\. .+/i)
})

test('two included files that name the same server are told, with both', async () => {
  const faults = await faultsOf({
    'gateway.yaml': 'include:\n  - one.json\n  - two.json\n',
    'one.json': '{ "mcpServers": { "notes": { "command": "node" } } }',
    'two.json': '{ "mcpServers": { "notes": { "command": "node" } } }',
  })
  expect(faults).toHaveLength(1)
  expect(faults[0]).toMatch(/^gateway\.yaml:3: The server "notes" is defined in .*one\.json.* and in .*two\.json/)
})

test('a gateway is not opened by a file with a mistake in it', async () => {
  const at = await files({ 'gateway.yaml': 'servers: { a: { url: "http://127.0.0.1:9/" } }\nrules: [{ do: perhaps }]\n' })
  await expect(createGateway({ config: at('gateway.yaml') })).rejects.toThrow(/gateway\.yaml:2/)
})

test('a misspelled member of an entry of its own is a mistake; other programs write what they like into theirs', async () => {
  const faults = await faultsOf({
    'gateway.yaml': `
include: other.json
servers:
  web: { url: 'https://example.com/mcp', header: { authorization: x } }
  both: { url: 'https://example.com/mcp', command: node }
`,
    'other.json': '{ "mcpServers": { "notes": { "command": "node", "colour": "red" } } }',
  })
  expect(faults.map(text => text.split('. ')[0])).toEqual([
    'gateway.yaml:4: The server "web" has an unknown setting "header" (gateway.entry)',
    'gateway.yaml:5: The server "both" has both command and url (gateway.entry)',
  ])
})
