import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { faultText } from '../../host/config/read.ts'
import { optionsOf, readGatewayFile } from './load.ts'

const env = { HUSH: 'a-secret-of-the-tests' }

async function read(contents: Readonly<Record<string, string>>) {
  const folder = await mkdtemp(join(tmpdir(), 'vivarium-gateway-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  for (const [name, text] of Object.entries(contents)) await writeFile(join(folder, name), text)
  const config = await readGatewayFile(join(folder, 'gateway.yaml'), { env, home: folder })
  const faults = config.faults.map(fault => faultText(fault).replaceAll(`${dirname(config.file)}/`, ''))
  return { folder, faults, servers: optionsOf(config).servers }
}

test('an entry says how the gateway shows who it is; secrets come from variables and files', async () => {
  const { folder, faults, servers } = await read({
    'gateway.yaml': `
servers:
  signed: { url: 'https://a.example/mcp', auth: sign-in }
  more: { url: 'https://a.example/mcp', auth: { signIn: true, scopes: [read] } }
  secret: { url: 'https://b.example/mcp', auth: { clientId: gateway, clientSecret: '\${HUSH}', issuer: 'https://as.example' } }
  filed: { url: 'https://c.example/mcp', auth: { clientId: gateway, clientSecretFile: '~/hush' } }
  loop: { url: 'http://127.0.0.1:1/mcp', auth: { clientId: gateway, privateKeyFile: hush, algorithm: EdDSA } }
`,
    hush: 'hush',
  })
  expect(faults).toEqual([])
  expect(servers).toMatchObject({
    signed: { auth: 'sign-in' },
    more: { auth: { signIn: true, scopes: ['read'] } },
    secret: { auth: { clientId: 'gateway', clientSecret: 'a-secret-of-the-tests', issuer: 'https://as.example' } },
    filed: { auth: { clientId: 'gateway', clientSecretFile: join(folder, 'hush') } },
    loop: { auth: { privateKeyFile: join(folder, 'hush'), algorithm: 'EdDSA' } },
  })
})

test('every mistake in it is told at its line, without the secret', async () => {
  const lines = [
    "  a: { url: 'https://a.example/mcp', auth: yes-please }",
    "  b: { url: 'https://a.example/mcp', auth: { clientId: gateway } }",
    `  c: { url: 'https://a.example/mcp', auth: { clientId: gateway, clientSecret: '\${HUSH}', secretKey: x } }`,
    `  d: { url: 'https://a.example/mcp', auth: { clientId: gateway, clientSecret: '\${NOWHERE}' } }`,
    "  e: { url: 'http://mcp.example/mcp', auth: sign-in }",
    '  f: { command: node, auth: sign-in }',
    "  g: { url: 'https://a.example/mcp', auth: { clientId: gateway, clientSecretFile: none } }",
    `  h: { url: 'https://a.example/mcp', auth: sign-in, headers: { Authorization: 'Bearer \${HUSH}' } }`,
    `  i: { url: 'https://a.example/mcp', auth: { clientId: g, clientSecret: '\${HUSH}', privateKey: '\${HUSH}' } }`,
    `  j: { url: 'https://a.example/mcp', auth: { clientId: g, privateKey: '\${HUSH}', algorithm: none } }`,
    `  k: { url: 'https://a.example/mcp', auth: { clientId: g, clientSecret: '\${HUSH}', scopes: read } }`,
  ]
  const { faults } = await read({ 'gateway.yaml': `servers:\n${lines.join('\n')}\n` })
  expect(faults).toEqual([
    expect.stringMatching(/^gateway\.yaml:2: The server "a": auth cannot be "yes-please" .*auth: sign-in/),
    expect.stringMatching(/^gateway\.yaml:3: The server "b": auth has no credentials of the gateway/),
    expect.stringMatching(/^gateway\.yaml:4: The server "c": auth has no setting "secretKey"/),
    expect.stringMatching(/^gateway\.yaml:5: .*"d".*NOWHERE is not set/),
    expect.stringMatching(/^gateway\.yaml:6: .*"e".*unencrypted over http.*https/),
    expect.stringMatching(/^gateway\.yaml:7: .*"f".*servers with a url.*env/),
    expect.stringMatching(/^gateway\.yaml:8: .*"g".*none" does not exist or is not readable/),
    expect.stringMatching(/^gateway\.yaml:9: .*"h".*cannot be combined/),
    expect.stringMatching(/^gateway\.yaml:10: .*"i".*clientSecret and privateKey/),
    expect.stringMatching(/^gateway\.yaml:11: .*"j".*algorithm is not supported/),
    expect.stringMatching(/^gateway\.yaml:12: .*"k".*scopes is not valid.*list of strings/),
  ])
  expect(faults.join()).not.toContain(env.HUSH)
})

test('in an included file, which is another program’s, an auth that is not ours is none', async () => {
  const { faults, servers } = await read({
    'gateway.yaml': 'include: other.json\n',
    'other.json': JSON.stringify({
      mcpServers: {
        theirs: { url: 'https://a.example/mcp', auth: { CLIENT_ID: 'x' } },
        ours: { url: 'https://a.example/mcp', auth: 'sign-in' },
      },
    }),
  })
  expect(faults).toEqual([])
  expect(servers).toEqual({
    theirs: { target: 'https://a.example/mcp' },
    ours: { target: 'https://a.example/mcp', auth: 'sign-in' },
  })
})
