import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer as createHttp } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { text } from 'node:stream/consumers'
import { afterAll, describe, expect, it, onTestFinished } from 'vitest'
import { createServer } from '../../server/index.ts'
import { nodeHandler } from '../../server/node-handler.ts'
import type { CliError, Io } from '../io.ts'
import { run } from '../program.ts'

const folder = mkdtempSync(join(tmpdir(), 'vivarium-test-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

async function vivarium(...args: readonly string[]): Promise<{ code: number; output: string; aside: string }> {
  const [input, output, errors] = [new PassThrough(), new PassThrough(), new PassThrough().setEncoding('utf8')]
  let aside = ''
  errors.on('data', (said: string) => {
    aside += said
  })
  const io: Io = {
    input,
    output,
    errors,
    env: { ...process.env, HOME: folder, XDG_CONFIG_HOME: folder, XDG_DATA_HOME: folder },
    interactive: false,
    colour: false,
    signal: new AbortController().signal,
  }
  const said = text(output)
  try {
    const code = await run(args, io, '0.0.0')
    output.end()
    return { code, output: await said, aside }
  } finally {
    output.end()
  }
}

async function serving(): Promise<string> {
  const server = createServer({ name: 'judged', version: '1.2.3' })
  server.tool('look', { description: 'Looks', annotations: { readOnlyHint: true } }, () => 'Seen')
  onTestFinished(() => server.close())
  return String((await server.listen()).url)
}

describe('vivarium test', () => {
  it('prints the table and ends with 0 where nothing failed', async () => {
    const { code, output, aside } = await vivarium('test', await serving(), '--revision', '2026-07-28', '--only', 'base/tools')
    expect(code).toBe(0)
    // How far it is is nothing for a log.
    expect(aside).toBe('')
    expect(output).toContain('judged 1.2.3')
    expect(output).toMatch(/\d+ passed, 0 failed, \d+ skipped, 0 errors\n/)
  })

  it.each([[[]], [['--allow-writes']]])('fails no server for scopes that whoever starts it holds anyway: %j', async more => {
    const file = join(folder, 'scoped.ts')
    writeFileSync(
      file,
      `import { createServer } from '${new URL('../../server/index.ts', import.meta.url).href}'
      const server = createServer({ name: 'scoped', version: '1.0.0' })
      const output = { type: 'object', properties: { seen: { type: 'boolean' } }, required: ['seen'] }
      server.tool('look', { description: 'Looks', scopes: ['a:read'], output, annotations: { readOnlyHint: true } }, () => ({ seen: true }))
      server.tool('close', { description: 'Closes', scopes: ['a:read', 'a:write'] }, () => 'closed')
      await server.stdio()\n`,
    )
    const words = ['--only', 'E4|base/tools', '--skipped', ...more]
    const { code, output } = await vivarium('test', ...words, '--', process.execPath, file)
    expect([code, output]).toEqual([0, expect.stringContaining('The kit may already call look; test the server over HTTP')])
  })

  it('writes the report, the results for a build and the badge, and prints the report as JSON', async () => {
    const files = ['report.json', 'deep/results.xml', 'badge.json'].map(name => join(folder, name))
    const [report = '', junit = '', badge = ''] = files
    const only = ['--revision', '2025-11-25', '--only', 'base/lifecycle']
    const { code, output } = await vivarium(
      ...['test', await serving(), ...only, '--format', 'json'],
      ...['--report', report, '--junit', junit, '--badge', badge],
    )
    expect(code).toBe(0)
    expect(JSON.parse(output)).toEqual(JSON.parse(readFileSync(report, 'utf8')))
    expect(readFileSync(junit, 'utf8')).toContain('<testsuite name="judged 2025-11-25 over http"')
    expect(JSON.parse(readFileSync(badge, 'utf8'))).toMatchObject({ color: 'brightgreen' })
  })

  it('ends with 4 where nobody is there, and says what to do', async () => {
    const refused = vivarium('test', 'http://127.0.0.1:1/mcp', '--revision', '2025-11-25')
    await expect(refused).rejects.toMatchObject({
      exit: 4,
      fix: 'Run vivarium doctor http://127.0.0.1:1/mcp to see why',
    } satisfies Partial<CliError>)
  })

  describe('a server that wants credentials', () => {
    /** Guards itself rightly, or without a challenge; the one token that it takes is `good`. */
    async function guarded(challenges: boolean): Promise<string> {
      const inside = createServer({ name: 'guarded', version: '1.0.0' })
      inside.tool('look', { description: 'Looks', annotations: { readOnlyHint: true } }, () => 'Seen')
      const handle = nodeHandler(inside)
      let origin = ''
      const http = createHttp((request, response) => {
        const metadata = '/.well-known/oauth-protected-resource/mcp'
        if (request.url === metadata) {
          const told = { resource: `${origin}/mcp`, authorization_servers: ['https://login.example'] }
          return void response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(told))
        }
        if (request.headers.authorization === 'Bearer good') return void handle(request, response)
        request.resume()
        const challenge = { 'www-authenticate': `Bearer resource_metadata="${origin}${metadata}"` }
        response.writeHead(401, challenges ? challenge : {}).end()
      })
      onTestFinished(async () => {
        http.closeAllConnections()
        http.close()
        await inside.close()
      })
      http.listen(0, '127.0.0.1')
      await once(http, 'listening')
      origin = `http://127.0.0.1:${(http.address() as { port: number }).port}`
      return `${origin}/mcp`
    }

    it('is judged by what a stranger sees; the rest is skipped with the way in, and the end is 3', async () => {
      const files = ['guarded.json', 'guarded.xml', 'guarded-badge.json'].map(name => join(folder, name))
      const [report = '', junit = '', badge = ''] = files
      const url = await guarded(true)
      const { code, output } = await vivarium(
        'test',
        url,
        '--revision',
        '2025-11-25',
        '--report',
        report,
        '--junit',
        junit,
        '--badge',
        badge,
      )
      expect(code).toBe(3)
      expect(output).toMatch(/2025-11-25 +http +[5-9] +0 +\d+ +0/)
      expect(output).toContain('LOCKED  Only requests without credentials were tested')
      expect(output).toMatch(/HTTP status 401.*--bearer-env NAME or --header.*\(\d+ scenarios were not run\)/)
      const results = JSON.parse(readFileSync(report, 'utf8')).results as { test_id: string; status: string; fault?: string }[]
      expect(results.filter(({ status }) => status === 'passed').map(({ test_id }) => test_id)).toContain('auth/metadata')
      expect(results.at(-1)).toMatchObject({ status: 'skipped', fault: 'guarded' })
      expect(readFileSync(junit, 'utf8')).toMatch(/<skipped message="The server requires credentials.*--bearer-env/)
      expect(JSON.parse(readFileSync(badge, 'utf8'))).toMatchObject({ message: 'credentials needed', color: 'lightgrey' })
    })

    it('that guards itself wrongly has failed, also without a token', async () => {
      const { code, output } = await vivarium('test', await guarded(false), '--revision', '2025-11-25')
      expect(code).toBe(1)
      expect(output).toContain('FAILED  auth/challenge')
    })

    it('is judged whole with a token', async () => {
      process.env['VIVARIUM_TEST_TOKEN'] = 'good'
      onTestFinished(() => void delete process.env['VIVARIUM_TEST_TOKEN'])
      const only = ['--revision', '2025-11-25', '--only', 'base/tools|auth/challenge']
      const { code, output } = await vivarium('test', await guarded(true), ...only, '--bearer-env', 'VIVARIUM_TEST_TOKEN')
      expect(code).toBe(0)
      expect(output).toContain('guarded 1.0.0')
      expect(output).not.toContain('LOCKED')
    })
  })

  it('refuses words that are no revision, no carrier and no pattern', async () => {
    for (const words of [
      ['--revision', '1999'],
      ['--carrier', 'pigeon'],
      ['--only', '('],
    ])
      await expect(vivarium('test', 'http://127.0.0.1:1/mcp', ...words)).rejects.toMatchObject({ exit: 1 })
  })
})
