import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { text } from 'node:stream/consumers'
import { afterAll, describe, expect, it, onTestFinished } from 'vitest'
import { createServer } from '../../server/index.ts'
import type { CliError } from '../exit.ts'
import type { Io } from '../io.ts'
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
    env: process.env,
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
    expect(output).toMatch(/\d+ passed, 0 failed, \d+ skipped, 0 errors of the kit/)
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
      fix: 'vivarium doctor http://127.0.0.1:1/mcp',
    } satisfies Partial<CliError>)
  })

  it('ends with 3 where the server wants credentials', async () => {
    const { createServer: createHttp } = await import('node:http')
    const guarded = createHttp((_, response) => response.writeHead(401).end())
    onTestFinished(() => void guarded.close())
    const url = await new Promise<string>(resolve => {
      guarded.listen(0, '127.0.0.1', () => {
        const address = guarded.address()
        resolve(`http://127.0.0.1:${typeof address === 'object' ? address?.port : 0}/mcp`)
      })
    })
    await expect(vivarium('test', url, '--revision', '2025-11-25')).rejects.toMatchObject({ exit: 3 })
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
