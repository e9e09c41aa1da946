/** `serve` as an author has it: a file, a change, and clients that go on. */
import { readFileSync, writeFileSync } from 'node:fs'
import { request } from 'node:http'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { serverFile, trial } from '../../../test/cli/trial.ts'
import { connect } from '../../client/index.ts'
import { gather } from '../lists.ts'
import { addressesAt } from '../serving/http.ts'

function change(folder: string, from: string, to: string): void {
  const file = join(folder, 'server.ts')
  writeFileSync(file, readFileSync(file, 'utf8').replace(from, to))
}

test('over HTTP a change is served at the same port, and a call that runs is finished', async () => {
  const it = await trial({
    'server.ts': serverFile.replace("return 'done'", "await new Promise(done => setTimeout(done, 1500)); return 'done'"),
  })
  const served = it.start(['serve', 'server.ts', '--port', '0', '--watch'])
  const [, url = ''] = await served.until(/Serving server\.ts at (\S+)/)
  for (const revision of ['2026-07-28', '2025-11-25'] as const) {
    const mcp = await connect(url, { revisions: [revision] })
    onTestFinished(() => mcp.close())
    const before = served.err().match(/reloaded/g)?.length ?? 0
    const running = mcp.callTool('slow')
    change(
      it.folder,
      /'Adds [^']*'/.exec(readFileSync(join(it.folder, 'server.ts'), 'utf8'))?.[0] ?? '',
      `'Adds for ${revision}'`,
    )
    await expect.poll(() => served.err().match(/server\.ts changed: reloaded in/g)?.length ?? 0).toBe(before + 1)
    expect((await running).text).toBe('done')
    const fresh = await connect(url)
    expect((await gather(fresh.tools())).map(({ description }) => description)).toContain(`Adds for ${revision}`)
    await fresh.close()
    // The same client, whose session of before nobody knows any more.
    expect((await mcp.callTool('add', { a: 1 })).structured).toEqual({ sum: 2 })
  }
  served.child.kill('SIGTERM')
  expect(await served.ended).toBe(0)
})

test('a change that does not start is told, and the server before it goes on', async () => {
  const it = await trial()
  const served = it.start(['serve', 'server.ts', '--port', '0', '--watch'])
  const [, url = ''] = await served.until(/Serving server\.ts at (\S+)/)
  change(it.folder, 'console.log', 'this is no code; console.log')
  await served.until(/cannot be loaded[\s\S]*does not start, so the previous one keeps serving/, 'err')
  const mcp = await connect(url)
  expect((await mcp.callTool('add', { a: 1 })).structured).toEqual({ sum: 2 })
  await mcp.close()
})

test('over stdio the session goes on, and hears that the lists have changed', async () => {
  const it = await trial()
  const errors: string[] = []
  const mcp = await connect(
    {
      command: process.execPath,
      args: [join(import.meta.dirname, '../../../bin/vivarium.mjs'), 'serve', 'server.ts', '--stdio', '--watch'],
      cwd: it.folder,
      stderr: line => errors.push(line),
    },
    { revisions: ['2025-06-18'] },
  )
  onTestFinished(() => mcp.close())
  expect((await gather(mcp.tools())).length).toBe(6)
  const changes = mcp.changes('tools')
  const changed = changes.next()
  change(it.folder, "server.tool('pixel'", "server.tool('added', { description: 'Is new' }, () => 'new')\nserver.tool('pixel'")
  await changed
  expect((await gather(mcp.tools())).map(({ name }) => name)).toContain('added')
  expect((await mcp.callTool('added')).text).toBe('new')
  await changes.return(undefined)
})

test('what a file writes while it is loaded does not reach the protocol', async () => {
  const it = await trial()
  const { out, err } = await it.run(['serve', 'server.ts', '--stdio'], { input: '{"jsonrpc":"2.0","id":1,"method":"ping"}\n' })
  expect(out.split('\n').filter(line => line !== '' && !line.startsWith('{'))).toEqual([])
  expect(err).toContain('loading')
})

test('what cannot be served is told with the remedy', async () => {
  const it = await trial({
    'none.ts': 'export const x = 1',
    'needs.ts': "import 'not-a-package'",
    'wrong.ts': 'const a = 1\nconst b = = 2',
    'wrong.mjs': '\n\nconst b = = 2',
    'x.json': '{}',
    'server.ts': serverFile,
  })
  const said = async (...args: readonly string[]): Promise<string> => (await it.run(['serve', ...args])).err
  expect(await said('nothing.ts')).toContain('The file nothing.ts does not exist')
  expect(await said('none.ts')).toContain('does not export a server\n  → Write export const server = createServer')
  expect(await said('needs.ts')).toContain('→ Run npm install not-a-package')
  expect(await said('wrong.ts')).toContain('wrong.ts cannot be loaded: wrong.ts, line 2: ')
  expect(await said('wrong.mjs')).toContain('wrong.mjs cannot be loaded: wrong.mjs, line 3: ')
  expect(await said('x.json')).toContain('x.json is not a .ts or .js file\n  → Pass the file that exports the server')
  expect(await said('server.ts', '--stdio', '--port', '1')).toContain('--stdio and --port cannot be used together')
  expect(await said('server.ts', '--host', '0.0.0.0', '--port', '0')).toContain(
    '→ Remove --host, or pass --issuer and --resource, or pass --unprotected',
  )
  expect(await said('server.ts', '--resource', 'https://x.example')).toContain('→ Add --issuer URL')
  expect(await said('server.ts', '--issuer', 'login')).toContain('→ Correct --issuer')
  const served = it.start(['serve', 'server.ts', '--port', '0', '--format', 'json'])
  const [, port = ''] = await served.until(/"port":(\d+)/)
  expect(await said('server.ts', '--port', port)).toContain(`Port ${port} on 127.0.0.1 is already in use`)
})

test('--issuer lets in only who has a token of it, and says where to get one', async () => {
  const it = await trial()
  const served = it.start(['serve', 'server.ts', '--port', '0', '--issuer', 'https://login.example', '--scope', 'notes'])
  const [, url = ''] = await served.until(/Serving server\.ts at (\S+)/)
  const answer = await fetch(url, { method: 'POST', body: '{}' })
  expect([answer.status, answer.headers.get('www-authenticate')]).toEqual([401, expect.stringContaining('resource_metadata=')])
  const [, metadata = ''] = /resource_metadata="([^"]+)"/.exec(answer.headers.get('www-authenticate') ?? '') ?? []
  expect(await (await fetch(metadata)).json()).toMatchObject({
    authorization_servers: ['https://login.example'],
    scopes_supported: ['notes'],
  })
  expect((await it.run(['list', url])).code).toBe(3)
})

test('a file that exports auth is served with it', async () => {
  const it = await trial({
    'server.ts': `${serverFile}
import { oauth } from 'vivarium/server'
export const auth = oauth({ issuer: 'https://login.example', verify: token => token === 'good' ? { subject: 'ann' } : undefined })
`,
  })
  const served = it.start(['serve', 'server.ts', '--port', '0'])
  const [, url = ''] = await served.until(/Serving server\.ts at (\S+)/)
  const listed = (token: string) => it.run(['list', url, '--bearer-env', 'TOKEN'], { env: { TOKEN: token } })
  expect((await listed('bad')).code).toBe(3)
  expect(await listed('good')).toMatchObject({ code: 0, out: expect.stringContaining('add(a: number') })
})

test('where it listens everywhere it answers to the addresses of this machine and to names that are given, and to no others', async () => {
  const it = await trial()
  const served = it.start(['serve', 'server.ts', '--port', '0', '--host', '0.0.0.0', '--unprotected', '--hosts', 'notes.example'])
  const [, port = ''] = await served.until(/Serving server\.ts at \S+:(\d+)\/mcp/)
  const names = [...addressesAt('0.0.0.0'), 'notes.example', 'evil.example']
  expect(await Promise.all(names.map(host => statusFor(host, Number(port))))).toEqual([
    ...names.slice(0, -1).map(() => 'taken'),
    'refused',
  ])
  const wrong = `http://127.0.0.2:${port}/mcp`
  for (const [verb, exit] of [
    ['list', 1],
    ['doctor', 4],
  ] as const) {
    const { code, out, err } = await it.run([verb, wrong])
    expect([verb, code, out + err]).toEqual([
      verb,
      exit,
      expect.stringMatching(/Host 127\.0\.0\.2\S* is not allowed[\s\S]*--hosts\)/),
    ])
  }
  for (const address of addressesAt('0.0.0.0')) await served.until(new RegExp(`and at http://${address}:${port}/mcp`), 'err')
})

function statusFor(host: string, port: number): Promise<'taken' | 'refused'> {
  return new Promise((done, failed) => {
    const asked = request(
      { host: '127.0.0.1', port, path: '/mcp', method: 'POST', headers: { host: `${host}:${port}` } },
      answer => {
        answer.resume()
        done(answer.statusCode === 403 ? 'refused' : 'taken')
      },
    )
    asked.on('error', failed).end('{}')
  })
}
