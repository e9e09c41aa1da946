/** The verbs that look at a server and use it: the built command against real servers. */
import { readFileSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { trial } from '../../../test/cli/trial.ts'

const root = join(import.meta.dirname, '../../..')
const everything = [process.execPath, join(root, 'node_modules/@modelcontextprotocol/server-everything/dist/index.js'), 'stdio']

describe('list', () => {
  test('shows what a file offers, as signatures', async () => {
    const { run } = await trial()
    const { code, out, err } = await run(['list', 'server.ts'])
    expect([code, err]).toEqual([0, ''])
    expect(out).toContain('Tools (6)\n  add(a: number, b?: number = 1) → { sum: number }  · read-only\n    Adds numbers\n')
    expect(out).toContain('Resources (1)\n  note://today  today, text/plain\n')
    expect(out).toContain('Prompts (1)\n  sum(style)\n    Sums up\n')
    expect(out).not.toContain('\u001b')
  })

  test('one kind alone, for a program that was typed, at an old revision', async () => {
    const { run } = await trial()
    const { code, out } = await run(['list', 'prompts', '--format', 'json', '--', ...everything])
    expect(code).toBe(0)
    expect(JSON.parse(out)).toMatchObject({
      prompts: expect.arrayContaining([expect.objectContaining({ name: 'simple-prompt' })]),
    })
  })

  test('a package that is installed, and says which', async () => {
    const { run, write } = await trial({})
    write(
      'node_modules/@some/server/package.json',
      JSON.stringify({ name: '@some/server', version: '2.0.0', bin: { server: 'run.js' } }),
    )
    write('node_modules/@some/server/run.js', readFileSync(join(root, 'test/cli/plain-server.mjs'), 'utf8'))
    const { code, out, err } = await run(['list', '@some/server', 'tools'])
    expect(err).toMatch(/^vivarium: @some\/server 2\.0\.0, installed in /)
    expect([code, out]).toEqual([0, '  ping()\n    Answers\n'])
    expect((await run(['list', 'never-installed'])).err).toContain('For the npm package of that name, write npm:never-installed')
  })

  test('a file that exports no server is told so', async () => {
    const { run, write } = await trial({})
    write('none.ts', 'export const x = 1')
    const { code, err } = await run(['list', './none.ts'])
    expect(code).toBe(4)
    expect(err).toContain('A file must export its server: export const server = createServer(')
  })

  test('a kind that nobody knows, a file that is not there, and no target at all are usage', async () => {
    const { run } = await trial()
    for (const args of [
      ['list', 'server.ts', 'tolls'],
      ['list', 'nothing.ts'],
      ['list'],
      ['list', 'localhost:3000'],
      ['list', '--'],
    ])
      expect([args, (await run(args)).code]).toEqual([args, 1])
    expect((await run(['list', 'localhost:3000'])).err).toContain('→ Write http://localhost:3000')
    expect((await run(['list', 'server.ts', 'tolls'])).err).toContain('→ Did you mean tools?')
    expect((await run(['list', './servr.ts'])).err).toContain('→ Did you mean server.ts?')
  })
})

describe('call', () => {
  test('gives numbers where the schema wants them, and the result alone on standard output', async () => {
    const { run } = await trial()
    const { code, out } = await run(['call', 'server.ts', 'add', 'a=2', 'b=3'])
    expect([code, JSON.parse(out)]).toEqual([0, { sum: 5 }])
    expect(JSON.parse((await run(['call', 'server.ts', 'add', '--json', '{"a": 4}', 'b=1'])).out)).toEqual({ sum: 5 })
    expect(JSON.parse((await run(['call', 'server.ts', 'add', '-'], { input: '{"a": 9}' })).out)).toEqual({ sum: 10 })
    const json = JSON.parse((await run(['call', 'server.ts', 'add', 'a=1', '--format', 'json'])).out) as unknown
    expect(json).toMatchObject({ isError: false, structured: { sum: 2 } })
  })

  test('E2-8: what a server suggests is shown as its words, beside the result', async () => {
    const { run } = await trial({
      'tracker.ts': `
import { createServer } from 'vivarium/server'
const reason = 'It gives all <b>at once</b>\\n\\u202e [now](x)'
export const server = createServer({ name: 'tracker', version: '1.0.0', intent: { suggest: () => ({ tool: 'find', reason }) } })
server.tool('open', { description: 'Opens one' }, () => 'opened')
server.tool('find', { description: 'Finds all' }, () => 'found')
`,
    })
    const { code, out, err } = await run(['call', 'tracker.ts', 'open', '--intent', 'see all'])
    expect([code, out]).toEqual([0, 'opened\n'])
    expect(err).toContain('tracker suggests find: "It gives all ‹b›at once‹/b›')
    expect(err).not.toMatch(/[\u202e\][<>]/)
    const plain = await run(['call', 'tracker.ts', 'open'])
    expect([plain.out, plain.err.includes('suggests')]).toEqual(['opened\n', false])
  })

  test('arguments from a file, and bytes into one', async () => {
    const { run, folder, write } = await trial()
    write('args.json', '{"a": 40, "b": 2}')
    expect(JSON.parse((await run(['call', 'server.ts', 'add', '@args.json'])).out)).toEqual({ sum: 42 })
    const { code, out, err } = await run(['call', 'server.ts', 'pixel', '--output', 'pixel.png'])
    expect([code, out]).toEqual([0, ''])
    expect(err).toContain('Saved pixel.png, 4 B')
    expect([...readFileSync(join(folder, 'pixel.png'))]).toEqual([137, 80, 78, 71])
  })

  test('what is missing or misspelt is told with the signature or the nearest name', async () => {
    const { run } = await trial()
    expect(await run(['call', 'server.ts', 'add'])).toEqual({
      code: 1,
      out: '',
      err: 'vivarium: add requires the argument a\n  → add(a: number, b?: number = 1)\n',
    })
    expect((await run(['call', 'server.ts', 'ad', 'a=1'])).err).toBe(
      'vivarium: The server has no tool ad\n  → Did you mean add?\n',
    )
    expect((await run(['call', 'server.ts', 'add', 'a=x'])).err).toContain('a: "x" is not of type number')
    expect(await run(['call', 'server.ts', 'add', 'a=1', 'nope=3'])).toEqual({
      code: 1,
      out: '',
      err: 'vivarium: add has no argument nope\n  → Its arguments are a, b\n',
    })
    expect((await run(['prompt', 'server.ts', 'sum', 'stile=short'])).err).toBe(
      'vivarium: sum has no argument stile\n  → Did you mean style?\n',
    )
    expect((await run(['call', 'server.ts'])).err).toContain('→ Run vivarium list server.ts tools to see the tools')
  })

  test('a server without prompts or resources is said to have none', async () => {
    const { run } = await trial({
      'odd.ts': `import { createServer } from 'vivarium/server'\nexport const server = createServer({ name: 'odd', version: '1.0.0' })\nserver.tool('x', {}, () => 'x')\n`,
    })
    expect((await run(['prompt', 'odd.ts', 'nope'])).err).toBe('vivarium: odd.ts has no prompts\n')
    expect((await run(['prompt', 'odd.ts', 'nope', 'a=1'])).err).toBe('vivarium: odd.ts has no prompts\n')
    expect((await run(['read', 'odd.ts', 'x://y'])).err).toBe('vivarium: odd.ts has no resources\n')
  })

  test('a tool that reports an error ends with 5, its words and its suggestion', async () => {
    const { run } = await trial()
    expect(await run(['call', 'server.ts', 'fail'])).toEqual({
      code: 5,
      out: '',
      err: 'vivarium: fail failed: Too often\n  → Wait\n',
    })
    const { code, out, err } = await run(['call', 'server.ts', 'fail', '--format', 'json'])
    expect([code, JSON.parse(out), JSON.parse(err)]).toMatchObject([
      5,
      { isError: true },
      { error: { code: 'tool_error', exit: 5, fix: 'Wait' } },
    ])
  })

  test('without a terminal a question is declined by name, with the option that answers it', async () => {
    const { run } = await trial()
    const declined = await run(['call', 'server.ts', 'name'])
    expect([declined.code, declined.out]).toEqual([0, 'decline\n'])
    expect(declined.err).toContain(
      'Declined: the server asks: Who are you? → Run the command in a terminal, or pass --answer name=…',
    )
    expect((await run(['call', 'server.ts', 'name', '--answer', 'name=Kim'])).out).toBe('Hello Kim\n')
    expect((await run(['call', 'server.ts', 'name', '--answer', 'name=Kim', '--revision', '2025-11-25'])).out).toBe('Hello Kim\n')
  })

  test('progress goes to standard error', async () => {
    const { run } = await trial()
    const { out, err } = await run(['call', 'server.ts', 'slow'])
    expect(out).toBe('done\n')
    expect(err).toContain('33 % step 1')
  })
})

test('read prints a resource or saves it, and prompt fills one in', async () => {
  const { run, folder } = await trial()
  expect((await run(['read', 'server.ts', 'note://today'])).out).toBe('buy milk\n')
  await run(['read', 'server.ts', 'note://today', '--output', 'note.txt'])
  expect(readFileSync(join(folder, 'note.txt'), 'utf8')).toBe('buy milk')
  expect((await run(['read', 'server.ts', 'note://never'])).code).toBe(1)
  expect((await run(['prompt', 'server.ts', 'sum', 'style=short'])).out).toBe('user: Sum up, short\n')
  expect((await run(['prompt', 'server.ts', 'sum'])).err).toContain('needs the argument style')
})

test('a resource, a prompt and a folder that are not there are told with what may be meant', async () => {
  const { run, write } = await trial()
  write('.mcp.json', JSON.stringify({ mcpServers: { notes: { command: 'node' } } }))
  expect((await run(['read', 'server.ts', 'note://todai'])).err).toBe(
    'vivarium: The server has no resource note://todai\n  → Did you mean note://today?\n',
  )
  expect((await run(['prompt', 'server.ts', 'summ'])).err).toBe(
    'vivarium: The server has no prompt summ\n  → Did you mean sum?\n',
  )
  expect((await run(['list', 'server.ts', '--cwd', 'nowhere'])).err).toContain('--cwd: the folder nowhere does not exist')
  expect((await run(['call'])).err).toContain('Configured servers: notes')
})

test('Ctrl-C and SIGTERM in the middle of a call end it, and all that was started for it', async () => {
  const it = await trial({
    'long.ts': `import { createServer } from 'vivarium/server'
      export const server = createServer({ name: 'long', version: '1.0.0' })
      server.tool('wait', {}, (_, ctx) => new Promise(() => { console.error('pid ' + process.pid); ctx.progress(1, { total: 2 }) }))`,
  })
  for (const [signal, exit] of [
    ['SIGINT', 130],
    ['SIGTERM', 143],
  ] as const) {
    const { child, ended, until } = it.start(['call', 'long.ts', 'wait', '--verbose'])
    const [, pid = ''] = await until(/pid (\d+)/, 'err')
    await until(/50 %/, 'err')
    child.kill(signal)
    expect(await ended).toBe(exit)
    expect(() => process.kill(Number(pid), 0)).toThrow('ESRCH')
  }
})

test('whoever reads only the beginning of much ends it in good order', async () => {
  const it = await trial({
    'much.ts': `import { createServer } from 'vivarium/server'
      export const server = createServer({ name: 'much', version: '1.0.0' })
      server.tool('lines', {}, () => 'a line\\n'.repeat(400_000))`,
  })
  const { child, ended, err, until } = it.start(['call', 'much.ts', 'lines'])
  await until(/a line/)
  child.stdout?.destroy()
  expect([await ended, err()]).toEqual([0, expect.not.stringContaining('EPIPE')])
})

describe('inspect', () => {
  test('says what a server speaks and offers, at every revision that both know', async () => {
    const { run } = await trial()
    const { out } = await run(['inspect', 'server.ts'])
    expect(out).toMatch(/^trial 1\.2\.3\n {2}target +server\.ts\n {2}revision +2026-07-28/)
    expect(out).toMatch(/transport +stdio\n {2}opened in +\d/)
    expect(out).toMatch(/round trip +\d+\.\d ms\n/)
    expect(out).toContain('6 tools, 1 resource, 0 templates, 1 prompt')
    expect(out).toContain('    │ Be kind\n')
    for (const revision of ['2024-11-05', '2025-06-18']) {
      const json = JSON.parse((await run(['inspect', 'server.ts', '--revision', revision, '--format', 'json'])).out) as unknown
      expect(json).toMatchObject({
        revision,
        era: 'session',
        server: { name: 'trial' },
        carrier: 'stdio',
        manifest: { tools: expect.any(Array) },
      })
    }
  })

  test('a server of MCP Live with its feature sets', async () => {
    const { run, folder } = await trial({})
    const { code, out } = await run(['inspect', join(root, 'examples/memory/server.ts')], { env: { VIVARIUM_DATA: folder } })
    expect(code).toBe(0)
    expect(out).toMatch(/live +MCP Live 0\.2/)
    expect(out).toContain('memory.proactive pushEvents, tools')
  })
})

/** An HTTP server that gives one answer to everything. */
async function answering(
  status: number,
  headers: Readonly<Record<string, string>> = {},
  body = '',
): Promise<{ url: string; server: Server }> {
  const server = createServer((_, res) => res.writeHead(status, headers).end(body))
  await new Promise<void>(done => server.listen(0, '127.0.0.1', done))
  onTestFinished(() => void server.close())
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`, server }
}

test('exit codes: 3 where one must sign in, 4 where nobody answers', async () => {
  const { run } = await trial()
  const { url } = await answering(401, { 'www-authenticate': 'Bearer realm="x"' })
  const refused = await run(['list', url])
  expect([refused.code, refused.err]).toEqual([3, expect.stringContaining('--bearer-env')])
  expect((await run(['list', url, '--no-auth'])).code).toBe(3)
  expect((await run(['list', 'http://127.0.0.1:9/mcp'])).code).toBe(4)
  expect((await run(['list', '--', 'node', '-e', 'console.error("no luck"); process.exit(2)'])).err).toContain('no luck')
})

test('a token comes from a variable by its name, headers too, and neither stands in the error', async () => {
  const { run, write } = await trial({})
  const seen: unknown[] = []
  const server = createServer((req, res) => {
    seen.push([req.headers.authorization, req.headers['x-key']])
    res.writeHead(500).end()
  })
  await new Promise<void>(done => server.listen(0, '127.0.0.1', done))
  onTestFinished(() => void server.close())
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`
  const { err } = await run(['list', url, '--bearer-env', 'TOKEN', '--header', `X-Key: \${KEY}`], {
    env: { TOKEN: 'tokentoken', KEY: 'keykey' },
  })
  expect(seen[0]).toEqual(['Bearer tokentoken', 'keykey'])
  expect(err).not.toMatch(/tokentoken|keykey/)
  expect((await run(['list', url, '--bearer-env', 'NOT_SET'])).err).toContain('the variable NOT_SET is not set')
  write('.mcp.json', JSON.stringify({ mcpServers: { web: { url, headers: { 'X-Key': 'configured' } } } }))
  await run(['list', 'web', '--trust'])
  expect(seen.at(-1)).toEqual([undefined, 'configured'])
})

test('what a server says cannot command a terminal, in text or JSON, on either output', async () => {
  const evil = String.raw`\u001b[2J\u009b31m\u202e`
  const { run } = await trial({
    'server.ts': `
import { createServer } from 'vivarium/server'
export const server = createServer({ name: 'evil${evil}', version: '1.0.0', instructions: '${evil}' })
server.tool('evil', { description: '${evil}' }, () => '${evil}')
server.tool('fails', { description: 'x' }, () => { throw new Error('${evil}') })
`,
  })
  for (const args of [['list'], ['inspect'], ['call', 'evil'], ['call', 'fails'], ['doctor']]) {
    const [verb = '', ...rest] = args
    for (const format of ['text', 'json']) {
      const { out, err } = await run([verb, 'server.ts', ...rest, '--format', format])
      expect([args, format, /[\u001b\u009b\u202e]/.test(out + err)]).toEqual([args, format, false])
    }
  }
})

test('inspect names every tool before a call, where something is said of one', async () => {
  const { run } = await trial({
    'notes.ts': `import { createServer } from 'vivarium/server'
export const server = createServer({ name: 'notes', version: '1.0.0' })
server.tool('add_note', { annotations: { readOnlyHint: false, destructiveHint: false } }, () => 'x')
server.tool('delete_note', { annotations: { destructiveHint: true } }, () => 'x')
`,
  })
  const { out } = await run(['inspect', 'notes.ts'])
  expect(out).toMatch(/\nTools\n[\s\S]*add_note {5}\S.*\n[\s\S]*delete_note {2}\S/)
})

test('a word that names nothing is told what may be meant', async () => {
  const { run } = await trial({ '.mcp.json': JSON.stringify({ mcpServers: { good: { command: 'node' } } }) })
  expect((await run(['list', 'goood'])).err).toBe('vivarium: There is no server goood\n  → Did you mean good?\n')
  expect((await run(['list', 'goood', '--config', '.mcp.json'])).err).toContain('→ Did you mean good?')
  expect((await run(['list', '127.0.0.1:3917/mcp'])).err).toContain('→ Write http://127.0.0.1:3917/mcp')
  expect((await run(['list', 'good', '--timeout', 'soon'])).err).toContain(
    '"soon" is not a time. Write 500ms, 30s, 5m, or a number of seconds',
  )
})

test('a failure names the target as it would be typed again', async () => {
  const { run, write } = await trial({})
  write('.mcp.json', JSON.stringify({ mcpServers: { broken: { command: 'node', args: ['-e', 'process.exit(1)'] } } }))
  expect((await run(['list', 'broken', '--trust'])).err).toContain('→ Run vivarium doctor broken to see why')
  expect((await run(['list', '--', 'node', '-e', 'process.exit(1)'])).err).toContain(
    `→ Run vivarium doctor -- node -e 'process.exit(1)' to see why`,
  )
})

test('listen tells of changed lists and updated resources, a line each', async () => {
  const { start, run } = await trial()
  const served = start(['serve', 'server.ts', '--port', '0', '--format', 'json'])
  const [, url = ''] = await served.until(/"url":"([^"]+)"/)
  for (const revision of ['2026-07-28', '2025-11-25']) {
    const listening = start(['listen', url, '--count', '1', '--revision', revision, '--format', 'json'])
    const text = start(['listen', url, '--revision', revision, '--for', '20s', '--resource', 'note://today'])
    await text.until(/Listening to note:/, 'err')
    // Another one is ready a moment later; the server tells whoever listens then.
    await expect
      .poll(async () => {
        await run(['call', url, 'grow', '--format', 'json'])
        return text.out()
      })
      .toMatch(/↻ updated note:\/\/today/)
    expect(await listening.ended).toBe(0)
    expect(JSON.parse(listening.out())).toMatchObject({ kind: expect.stringMatching(/list|updated/), at: expect.any(String) })
    text.child.kill('SIGINT')
    expect(await text.ended).toBe(0)
  }
}, 120_000)

test('listen tells of events and of the pushes of MCP Live, and only of what is named', async () => {
  const { run } = await trial({
    'server.ts': `
import { createServer } from 'vivarium/server'
import { z } from 'zod'
export const server = createServer({ name: 'bell', version: '1.0.0', manifest: {} })
const rung = server.event('rung', { description: 'Rang', payload: z.object({ times: z.number() }) })
const bell = server.featureSet('door.bell', { description: 'Rings', uses: ['pushEvents'] })
let times = 0
setInterval(() => { rung.emit({ times: ++times }); bell.push({ content: 'Somebody rang', origin: { door: 'front' } }).catch(() => {}) }, 100).unref()
`,
  })
  const all = await run(['listen', 'server.ts', '--count', '40'])
  expect(all.code).toBe(0)
  expect(all.out).toMatch(/◆ event rung \{"times":\d+\}\n/)
  expect(all.out).toMatch(/▶ push door\.bell Somebody rang\n/)
  const named = await run(['listen', 'server.ts', '--event', 'rung', '--count', '3', '--format', 'json'])
  const kinds = named.out
    .trim()
    .split('\n')
    .map(line => (JSON.parse(line) as { kind: string }).kind)
  expect(kinds).toEqual(['event', 'event', 'event'])
  expect((await run(['inspect', 'server.ts'])).out).toMatch(/events +rung Rang\n/)
  const line = '  rung { times: number }\n    Rang\n'
  expect((await run(['list', 'server.ts'])).out).toContain(`Events (1)\n${line}`)
  expect((await run(['list', 'server.ts', 'events'])).out).toBe(line)
  for (const verb of ['list', 'inspect'])
    expect(JSON.parse((await run([verb, 'server.ts', '--format', 'json'])).out)).toMatchObject({
      events: [{ name: 'rung', description: 'Rang' }],
    })
})

test('a server that names nothing to listen to is refused by name', async () => {
  const { run, folder } = await trial({})
  writeFileSync(join(folder, 'plain.mjs'), readFileSync(join(root, 'test/cli/plain-server.mjs'), 'utf8'))
  const { code, err } = await run(['listen', '--', 'node', 'plain.mjs'])
  expect([code, err]).toEqual([1, expect.stringContaining('announces no events, updates or list changes')])
})
