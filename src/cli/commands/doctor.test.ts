/** `doctor` against one broken server of each kind. */

import { chmodSync } from 'node:fs'
import { createServer, type RequestListener } from 'node:http'
import { createServer as createTls } from 'node:https'
import type { AddressInfo, Server } from 'node:net'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { certificate } from '../../../test/cli/certificate.ts'
import { type Trial, trial } from '../trial.ts'

const plain = join(import.meta.dirname, '../../../test/cli/plain-server.mjs')

async function listening(server: Server): Promise<number> {
  await new Promise<void>(done => server.listen(0, '127.0.0.1', done))
  onTestFinished(() => void server.close())
  return (server.address() as AddressInfo).port
}

const http = async (listener: RequestListener): Promise<string> => `http://127.0.0.1:${await listening(createServer(listener))}`

/** Its exit code, and every line that is not fine with its fix. */
async function wrongs({ run }: Trial, ...args: readonly string[]): Promise<readonly unknown[]> {
  const { code, out, err } = await run(['doctor', '--timeout', '4s', ...args])
  const lines = out.split('\n').filter(line => !line.startsWith('✓') && !/^\d{4}-/.test(line))
  return [code, ...lines.map(line => line.trim()).filter(line => line !== ''), ...(err === '' ? [] : [err])]
}

describe('programs', () => {
  test('one that is fine says what it speaks', async () => {
    const { run } = await trial()
    const { code, out } = await run(['doctor', 'server.ts'])
    expect([code, out]).toEqual([
      0,
      expect.stringMatching(/✓ open +It opens and speaks 2026-07-28\n2026-07-28 · 6 tools · 1 resource/),
    ])
  })

  test('not found, not executable, a script that is not there', async () => {
    const it = await trial({ 'run.sh': 'exit' })
    expect(await wrongs(it, '--', 'uvxx', 'x')).toEqual([
      4,
      expect.stringMatching(/command +There is no program uvxx on the PATH/),
      expect.stringContaining('→ Install it'),
    ])
    expect(await wrongs(it, '--', './run.sh')).toEqual([
      4,
      expect.stringContaining('may not be run'),
      expect.stringContaining('chmod +x'),
    ])
    chmodSync(join(it.folder, 'run.sh'), 0o755)
    expect(await wrongs(it, '--', 'node', 'missing.js')).toEqual([
      4,
      expect.stringContaining('There is no file'),
      expect.any(String),
    ])
    expect(await wrongs(it, '--', './')).toEqual([4, expect.stringContaining('is a folder'), expect.any(String)])
  })

  test('a command that holds its arguments is told where they belong', async () => {
    const it = await trial({ '.mcp.json': JSON.stringify({ mcpServers: { a: { command: 'node /x/y.js' } } }) })
    const { out } = await it.run(['doctor', '.mcp.json'])
    expect(out).toContain('→ They belong in args: "command": "node", "args": ["/x/y.js"]')
  })

  test('servers of a file are told in its order, however long each takes', async () => {
    const late = { command: 'node', args: ['-e', 'setTimeout(() => process.exit(1), 1500)'] }
    const it = await trial({ 'x.json': JSON.stringify({ mcpServers: { late, early: { command: 'no-such-program' } } }) })
    expect((await it.run(['doctor', 'x.json'])).out).toMatch(/late[\s\S]*early/)
  })

  test('a file that only listens is told at once, and one without a server as serve tells it', async () => {
    const it = await trial({
      'tickets.ts': `import { createServer } from 'vivarium/server'\nawait createServer({ name: 't', version: '1.0.0' }).listen()\n`,
      'one.ts': 'export default 3\n',
      'm.ts': `import 'not-a-package'\n`,
    })
    for (const verb of ['list', 'doctor'])
      expect((await it.run([verb, 'tickets.ts'])).err).toContain(
        'tickets.ts listens on HTTP and exports no server\n  → Write: export',
      )
    expect((await it.run(['list', 'one.ts'])).err).toMatch(/^vivarium: \S+one\.ts exports no server\n {2}→ Write: export/)
    expect((await it.run(['list', 'm.ts'])).err).toBe(
      'vivarium: m.ts cannot be loaded: the package not-a-package is not installed\n  → npm install not-a-package\n',
    )
  }, 30_000)

  test('noise on standard output before the first message', async () => {
    const it = await trial({})
    expect(await wrongs(it, '--', 'node', plain, 'noise')).toEqual([
      0,
      expect.stringMatching(/^! stdout +It writes on standard output what is no message: "Server is starting…"/),
      expect.stringContaining('→ Log to standard error'),
    ])
  })

  test.each([
    [
      'a variable',
      'console.error("Error: GITHUB_TOKEN environment variable is required"); process.exit(1)',
      /env +It misses the variable GITHUB_TOKEN/,
      /--env GITHUB_TOKEN/,
    ],
    [
      'a package',
      'await import("not-a-package")',
      /start +The package not-a-package is not installed/,
      /npm install not-a-package/,
    ],
    [
      'a Python module',
      `console.error("ModuleNotFoundError: No module named 'mcp'"); process.exit(1)`,
      /The Python module mcp/,
      /pip install mcp/,
    ],
    [
      'HTTP instead',
      'console.error("Listening on http://localhost:3999/mcp"); setTimeout(() => {}, 60_000)',
      /It serves HTTP/,
      /Use its address: http:\/\/localhost:3999\/mcp/,
    ],
    ['nothing', 'setTimeout(() => {}, 60_000)', /It runs but does not answer/, /Is it a server over stdio/],
    [
      'frames of a language server',
      'process.stdout.write("Content-Length: 2\\r\\n\\r\\n{}"); setTimeout(() => {}, 60_000)',
      /frames messages by Content-Length/,
      /on a line of its own/,
    ],
  ])('one that misses or says %s', async (_, code, says, fix) => {
    const it = await trial({ 'run.mjs': code })
    const [exit, ...lines] = await wrongs(it, '--', 'node', join(it.folder, 'run.mjs'))
    expect(exit).not.toBe(0)
    expect(lines.join('\n')).toMatch(says)
    expect(lines.join('\n')).toMatch(fix)
  })

  test('schemas, names and revisions that clients stumble over', async () => {
    const it = await trial({})
    expect((await wrongs(it, '--', 'node', plain, 'schema')).slice(0, 2)).toEqual([
      1,
      expect.stringMatching(/✗ schema +the input of bad has the type "string"/),
    ])
    const [exit, ...names] = await wrongs(it, '--', 'node', plain, 'names')
    expect(exit).toBe(1)
    for (const says of [
      /has 70 characters/,
      /two words has characters beyond/,
      /same has no description/,
      /The tool name same stands twice/,
    ])
      expect(names.join('\n')).toMatch(says)
    expect((await wrongs(it, '--', 'node', plain, 'old')).join('\n')).toContain('2024-11-05 is old')
  })
})

describe('addresses', () => {
  test('nobody there, no such host, another path, a web page', async () => {
    const it = await trial()
    const { until } = it.start(['serve', 'server.ts', '--port', '0', '--format', 'json'])
    const [, port = ''] = await until(/"port":(\d+)/)
    expect(await wrongs(it, `http://127.0.0.1:${port}/wrong`)).toEqual([
      4,
      expect.stringContaining('Nothing serves at /wrong (HTTP 404)'),
      `→ Use http://127.0.0.1:${port}/mcp`,
    ])
    expect(await wrongs(it, `https://127.0.0.1:${port}/mcp`)).toEqual([
      4,
      expect.stringContaining('It does not speak TLS'),
      `→ Write http://127.0.0.1:${port}/mcp`,
    ])
    const page = await http((_, res) => res.writeHead(200, { 'content-type': 'text/html' }).end('<html>'))
    expect((await wrongs(it, page))[1]).toContain('There is a web page')
    expect((await wrongs(it, 'http://nowhere.invalid/mcp'))[1]).toContain('There is no host nowhere.invalid')
    const closed = await listening(createServer())
    expect((await wrongs(it, `http://127.0.0.1:${closed + 1}/mcp`))[0]).toBe(4)
  }, 60_000)

  test('a sign-in, by the metadata that the server names', async () => {
    const it = await trial({})
    const url: string = await http((req, res) => {
      if (req.url?.startsWith('/.well-known') === true)
        return res.writeHead(200, { 'content-type': 'application/json' }).end(
          JSON.stringify({
            resource: `${url}/mcp`,
            authorization_servers: ['https://login.example.com'],
            scopes_supported: ['mcp'],
          }),
        )
      return res
        .writeHead(401, { 'www-authenticate': `Bearer resource_metadata="${url}/.well-known/oauth-protected-resource/mcp"` })
        .end()
    })
    expect(await wrongs(it, '--no-auth', `${url}/mcp`)).toEqual([
      3,
      expect.stringContaining('It wants a sign-in at https://login.example.com, scopes mcp'),
      expect.stringContaining('→ Run vivarium list in a terminal'),
    ])
  })

  test('a certificate that nobody trusts', async () => {
    const it = await trial({})
    const port = await listening(createTls(certificate(), (_, res) => res.end()))
    expect(await wrongs(it, `https://127.0.0.1:${port}/mcp`)).toEqual([
      4,
      expect.stringMatching(/tls +Nobody that this machine trusts/),
      expect.stringContaining('NODE_EXTRA_CA_CERTS'),
    ])
  })

  test('the old pair of endpoints opens, and silence is told as such', async () => {
    const it = await trial()
    const { until } = it.start(['serve', 'server.ts', '--port', '0', '--sse', '--format', 'json'])
    const [, port = ''] = await until(/"port":(\d+)/)
    const { code, out } = await it.run(['doctor', `http://127.0.0.1:${port}/sse`])
    expect([code, out]).toEqual([0, expect.stringContaining('It opens and speaks')])
    const mute = await http(() => {})
    expect((await wrongs(it, `${mute}/mcp`))[1]).toContain('says nothing within')
  }, 60_000)
})

test('a config file: one line each, what is wrong with it, and names that collide', async () => {
  const it = await trial()
  it.write(
    'mcp.json',
    JSON.stringify({
      mcpServers: {
        one: { command: 'node', args: [plain] },
        two: { command: 'node', args: [plain] },
        gone: { command: 'no-such-program' },
        secret: { command: 'node', env: { KEY: `\${NOT_SET_HERE}` } },
        off: { command: 'node', disabled: true },
      },
    }),
  )
  const { code, out } = await it.run(['doctor', 'mcp.json'])
  expect(code).not.toBe(0)
  expect(out).toMatch(/✓ one|! one/)
  expect(out).toMatch(/✗ gone +There is no program no-such-program on the PATH/)
  expect(out).toMatch(/✗ secret +The variable NOT_SET_HERE is not set/)
  expect(out).toMatch(/- off +disabled/)
  expect(out).toMatch(/! collision +The tool ping is offered by (one, two|two, one)/)
  const json = JSON.parse((await it.run(['doctor', 'mcp.json', '--format', 'json'])).out) as readonly {
    servers: readonly { server: string; works: boolean }[]
  }[]
  expect(json[0]?.servers.find(({ server }) => server === 'one')?.works).toBe(true)
}, 60_000)

test('without a target it looks at every config file there is', async () => {
  const it = await trial({
    '.cursor/mcp.json': JSON.stringify({ mcpServers: { plain: { command: 'node', args: [plain] } } }),
    '.mcp.json': '{ "mcpServers": { ',
  })
  const { code, out } = await it.run(['doctor'])
  expect(code).toBe(1)
  expect(out).toMatch(/^project \.mcp\.json\n +✗ config +line 1: The file is no JSON/m)
  expect(out).toMatch(/^cursor \.cursor\/mcp\.json\n +✓ plain/m)
  // The folder is the home as well: one file is looked at once.
  expect(out.match(/^cursor/gm)).toHaveLength(1)
  const empty = await trial({})
  expect((await empty.run(['doctor'])).err).toContain('No client on this machine has a config with servers')
})
