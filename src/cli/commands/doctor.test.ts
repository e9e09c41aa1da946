/** `doctor` against one broken server of each kind. */

import { chmodSync } from 'node:fs'
import { createServer, type RequestListener } from 'node:http'
import { createServer as createTls } from 'node:https'
import type { AddressInfo, Server } from 'node:net'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { certificate } from '../../../test/cli/certificate.ts'
import { type Trial, trial } from '../../../test/cli/trial.ts'

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
  // On a slow machine it says meanwhile that it waits, which is nothing wrong.
  const errors = err.replace(/^.* has not answered yet .*\n/gm, '')
  return [code, ...lines.map(line => line.trim()).filter(line => line !== ''), ...(errors === '' ? [] : [errors])]
}

describe('programs', () => {
  test('one that is fine says what it speaks', async () => {
    const { run } = await trial()
    const { code, out } = await run(['doctor', 'server.ts'])
    expect([code, out]).toEqual([
      0,
      expect.stringMatching(/✓ open +The server connects and speaks 2026-07-28\n2026-07-28 · 6 tools · 1 resource/),
    ])
  })

  test('not found, not executable, a script that is not there', async () => {
    const it = await trial({ 'run.sh': 'exit' })
    expect(await wrongs(it, '--', 'uvxx', 'x')).toEqual([
      4,
      expect.stringMatching(/command +The PATH has no program uvxx/),
      expect.stringContaining('→ Install it'),
    ])
    expect(await wrongs(it, '--', './run.sh')).toEqual([
      4,
      expect.stringContaining('is not executable'),
      expect.stringContaining('chmod +x'),
    ])
    chmodSync(join(it.folder, 'run.sh'), 0o755)
    expect(await wrongs(it, '--', 'node', 'missing.js')).toEqual([
      4,
      expect.stringMatching(/The file \S+ does not exist/),
      expect.any(String),
    ])
    expect(await wrongs(it, '--', './')).toEqual([4, expect.stringContaining('is a folder'), expect.any(String)])
  })

  test('a command that holds its arguments is told where they belong', async () => {
    const it = await trial({ '.mcp.json': JSON.stringify({ mcpServers: { a: { command: 'node /x/y.js' } } }) })
    const { out } = await it.run(['doctor', '.mcp.json', '--trust'])
    expect(out).toContain('→ Move them to "args": "command": "node", "args": ["/x/y.js"]')
  })

  test('servers of a file are told in its order, however long each takes', async () => {
    const late = { command: 'node', args: ['-e', 'setTimeout(() => process.exit(1), 1500)'] }
    const it = await trial({ 'x.json': JSON.stringify({ mcpServers: { late, early: { command: 'no-such-program' } } }) })
    expect((await it.run(['doctor', 'x.json', '--trust'])).out).toMatch(/late[\s\S]*early/)
  })

  test('a file that only listens is told at once, and one without a server as serve tells it', async () => {
    const it = await trial({
      'tickets.ts': `import { createServer } from 'vivarium/server'\nawait createServer({ name: 't', version: '1.0.0' }).listen()\n`,
      'one.ts': 'export default 3\n',
      'm.ts': `import 'not-a-package'\n`,
    })
    for (const verb of ['list', 'doctor'])
      expect((await it.run([verb, 'tickets.ts'])).err).toContain(
        'tickets.ts serves HTTP itself and does not export a server\n  → Write export',
      )
    expect((await it.run(['list', 'one.ts'])).err).toMatch(/^vivarium: \S+one\.ts does not export a server\n {2}→ Write export/)
    expect((await it.run(['list', 'm.ts'])).err).toBe(
      'vivarium: m.ts cannot be loaded: the package not-a-package is not installed\n  → Run npm install not-a-package\n',
    )
  })

  test('noise on standard output before the first message', async () => {
    const it = await trial({})
    expect(await wrongs(it, '--', 'node', plain, 'noise')).toEqual([
      0,
      expect.stringMatching(/^! stdout +The program writes other text than messages to standard output: "Server is starting…"/),
      expect.stringContaining('→ Log to standard error'),
    ])
  })

  test('programs that do not open, each by what it says, side by side', async () => {
    const stays = 'setTimeout(() => {}, 60_000)'
    const programs: Readonly<Record<string, string>> = {
      variable: 'console.error("Error: GITHUB_TOKEN environment variable is required"); process.exit(1)',
      package: 'await import("not-a-package")',
      http: `console.error("Listening on http://localhost:3999/mcp"); ${stays}`,
      nothing: stays,
      framed: `process.stdout.write("Content-Length: 2\\r\\n\\r\\n{}"); ${stays}`,
      crash: 'const it = undefined\nit.port',
    }
    const it = await trial(Object.fromEntries(Object.entries(programs).map(([name, code]) => [`${name}.mjs`, code])))
    const servers = Object.keys(programs).map(name => [name, { command: 'node', args: [join(it.folder, `${name}.mjs`)] }])
    it.write('mcp.json', JSON.stringify({ mcpServers: Object.fromEntries(servers) }))
    const { code, out, err } = await it.run(['doctor', 'mcp.json', '--trust', '--timeout', '8s'], { env: { GITHUB_TOKEN: 'x' } })
    expect(code).toBe(4)
    const said = (name: string): string => new RegExp(`✗ ${name} .*\\n.*\\n`).exec(out)?.[0] ?? ''
    expect(said('variable')).toMatch(
      /The environment variable GITHUB_TOKEN is missing\n +→ Your shell sets it.* "env": \{ "GITHUB_TOKEN"/,
    )
    expect(said('package')).toMatch(/package not-a-package is not installed\n +→ Run npm install not-a-package/)
    expect(said('http')).toMatch(/The program serves HTTP.*\n +→ Use its address, http:\/\/localhost:3999\/mcp/)
    expect(said('nothing')).toMatch(/did not answer within 8 s\n +→ Check that it serves over stdio.*--timeout/)
    expect(said('framed')).toMatch(/separates messages by Content-Length.*\n +→ Write each message on its own line/)
    expect(said('crash')).toMatch(/fails when it starts: TypeError: .*\n +→ Fix the error at .*crash\.mjs:2/)
    expect(err).toContain('nothing has not answered yet (no output so far). Waiting up to 8 s')
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
      /two words has characters other than/,
      /same has no description/,
      /The tool name same is listed twice/,
    ])
      expect(names.join('\n')).toMatch(says)
    expect((await wrongs(it, '--', 'node', plain, 'old')).join('\n')).toContain('speaks the old revision 2024-11-05')
  })
})

describe('addresses', () => {
  test('nobody there, no such host, another path, a web page', async () => {
    const it = await trial()
    const { until } = it.start(['serve', 'server.ts', '--port', '0', '--format', 'json'])
    const [, port = ''] = await until(/"port":(\d+)/)
    expect(await wrongs(it, `http://127.0.0.1:${port}/wrong`)).toEqual([
      4,
      expect.stringContaining('No MCP server answers at /wrong (HTTP 404)'),
      `→ Use http://127.0.0.1:${port}/mcp`,
    ])
    expect(await wrongs(it, `https://127.0.0.1:${port}/mcp`)).toEqual([
      4,
      expect.stringContaining('The server does not speak TLS'),
      `→ Use http://127.0.0.1:${port}/mcp`,
    ])
    const page = await http((_, res) => res.writeHead(200, { 'content-type': 'text/html' }).end('<html>'))
    expect((await wrongs(it, page))[1]).toContain('This is a web page')
    expect((await wrongs(it, 'http://nowhere.invalid/mcp'))[1]).toContain('The host nowhere.invalid does not exist')
    const closed = await listening(createServer())
    expect((await wrongs(it, `http://127.0.0.1:${closed + 1}/mcp`))[0]).toBe(4)
  })

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
      expect.stringContaining('The server requires a sign-in at https://login.example.com, scopes mcp'),
      expect.stringContaining('→ Run vivarium list in a terminal'),
    ])
  })

  test('a token that it wants, too many requests, and nothing at any path', async () => {
    const it = await trial({})
    const token = await http((_, res) => res.writeHead(401, { 'www-authenticate': 'Bearer' }).end())
    expect((await wrongs(it, token)).join('\n')).toMatch(/^3\n.*The server requires a token.*\n→ .*--bearer-env NAME/)
    const refusing = await http((_, res) => res.writeHead(403).end('Not you'))
    expect((await wrongs(it, refusing)).join('\n')).toMatch(/^1\n.*refuses the request: HTTP 403 Not you/)
    const busy = await http((_, res) => res.writeHead(429, { 'retry-after': '30' }).end())
    expect((await wrongs(it, busy)).join('\n')).toMatch(/^4\n.*too many requests.*\n→ Retry after 30 s/)
    const empty = await http((_, res) => res.writeHead(404).end())
    expect((await wrongs(it, empty)).join('\n')).toMatch(/^4\n.*No MCP server answers at \/ \(HTTP 404\), nor at \/mcp, \/sse/)
  })

  test('a certificate that nobody trusts', async () => {
    const it = await trial({})
    const port = await listening(createTls(certificate(), (_, res) => res.end()))
    expect(await wrongs(it, `https://127.0.0.1:${port}/mcp`)).toEqual([
      4,
      expect.stringMatching(/tls +The TLS certificate is not signed by an authority/),
      expect.stringContaining('NODE_EXTRA_CA_CERTS'),
    ])
  })

  test('the old pair of endpoints opens, and silence is told as such', async () => {
    const it = await trial()
    const { until } = it.start(['serve', 'server.ts', '--port', '0', '--sse', '--format', 'json'])
    const [, port = ''] = await until(/"port":(\d+)/)
    const { code, out } = await it.run(['doctor', `http://127.0.0.1:${port}/sse`])
    expect([code, out]).toEqual([
      0,
      expect.stringMatching(/The server connects and speaks[\s\S]*old HTTP\+SSE transport[\s\S]*→ Use \S+\/mcp, where/),
    ])
    const mute = await http(() => {})
    expect((await wrongs(it, `${mute}/mcp`))[1]).toContain('no response arrived within')
  })
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
  const { code, out } = await it.run(['doctor', 'mcp.json', '--trust'])
  expect(code).not.toBe(0)
  expect(out).toMatch(/✓ one|! one/)
  expect(out).toMatch(/✗ gone +The PATH has no program no-such-program/)
  expect(out).toMatch(/✗ secret +The variable NOT_SET_HERE is not set/)
  expect(out).toMatch(/- off +disabled/)
  expect(out).toMatch(/! collision +Several servers offer a tool ping: (one, two|two, one)/)
  const json = JSON.parse((await it.run(['doctor', 'mcp.json', '--trust', '--format', 'json'])).out) as readonly {
    servers: readonly { server: string; works: boolean }[]
  }[]
  expect(json[0]?.servers.find(({ server }) => server === 'one')?.works).toBe(true)
})

test('paths of another system or from another folder, and JSON that only some programs read', async () => {
  const it = await trial({
    'x.json': `{ "mcpServers": {
      "win": { "command": "C:\\\\Program Files\\\\node.exe" },
      "single": { "command": "node", "args": ["C:\\new\\table.js"] },
    } }`,
    'deep/mcp.json': JSON.stringify({ mcpServers: { near: { command: 'node', args: ['./near.js'] } } }),
    'deep/near.js': '',
    'y.json': '{ "mcpServers": { "a": { "command": "node" "args": [] } } }',
  })
  const { out } = await it.run(['doctor', 'x.json', '--trust'])
  expect(out).toMatch(/✗ win .*is a Windows path/)
  expect(out).toMatch(
    /✗ single +"C:\\new\\table.js" contains a control character, which JSON made of a single backslash\n +→ Double each backslash/,
  )
  expect(out).toMatch(/! config +line 3: a comma after the last member is not valid JSON\n +→ Remove it/)
  const deep = await it.run(['doctor', 'deep/mcp.json', '--trust'])
  expect(deep.out).toMatch(
    /✗ near +The file \S+ does not exist\n +→ The file is in the folder of the config: write its full path, \S+\/deep\/near\.js/,
  )
  expect((await it.run(['doctor', 'y.json'])).out).toMatch(/line 1: .*comma expected\n +→ Put a comma between/)
})

test('without a target it looks at every config file there is', async () => {
  const it = await trial({
    '.cursor/mcp.json': JSON.stringify({ mcpServers: { plain: { command: 'node', args: [plain] } } }),
    '.mcp.json': '{ "mcpServers": { ',
  })
  const { code, out } = await it.run(['doctor'])
  expect(code).toBe(1)
  expect(out).toMatch(/^project \.mcp\.json\n +✗ config +line 1: The file is not valid JSON/m)
  expect(out).toMatch(/^cursor \.cursor\/mcp\.json\n +✓ plain/m)
  // The folder is the home as well: one file is looked at once.
  expect(out.match(/^cursor/gm)).toHaveLength(1)
  const empty = await trial({})
  expect((await empty.run(['doctor'])).err).toContain('No config file of an MCP client on this machine lists servers')
})
