import { execFile } from 'node:child_process'
import { globSync, readFileSync } from 'node:fs'
import { rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, describe, expect, it } from 'vitest'
import { scratch, snippets, writeProgram, writeTyped } from './program.ts'

const root = join(import.meta.dirname, '../..')
/** Pages with programs that other tests run, or that belong to another runtime: what they need is not here. */
const ELSEWHERE = new Set([
  'docs/guide/authorization.md',
  'docs/guide/client-authorization.md',
  'docs/guide/live-client.md',
  'docs/guide/runtimes.md',
])
const pages = ['README.md', ...globSync('docs/**/*.md', { cwd: root })].filter(
  page => !ELSEWHERE.has(page) && snippets(readFileSync(join(root, page), 'utf8')).length > 0,
)

/** On the page about runtimes each program is for another one. What it has from there, or from pages before: */
const around = `
import type { ElicitResult } from 'vivarium/client'
import { createServer as make } from 'vivarium/server'
declare const Bun: { serve(options: { fetch: (request: Request) => Promise<Response>; idleTimeout: number }): unknown }
declare const Deno: { serve(handler: (request: Request) => Promise<Response>): unknown }
interface DurableObjectNamespace {
  idFromName(name: string): object
  get(id: object): { fetch(request: Request): Promise<Response> }
}
declare const secret: string
declare const showForm: (question: unknown) => Promise<ElicitResult>
declare const makeServer: () => ReturnType<typeof make>
`
const made = 'declare const server: ReturnType<typeof make>\n'

describe('the programs in the documentation', () => {
  afterAll(() => rm(scratch, { recursive: true, force: true }))

  it.each(pages)('%s runs to its end as one program', async page => {
    const file = await writeProgram(page)
    const { stderr } = await promisify(execFile)(process.execPath, ['--disable-warning=ExperimentalWarning', file], {
      timeout: 30_000,
    })
    expect(stderr).not.toMatch(/Error/)
  })

  it('have the types of the sources: an option that does not exist is no option in the documentation', async () => {
    const typed = ['README.md', ...globSync('docs/**/*.md', { cwd: root })].filter(
      page => page !== 'docs/guide/runtimes.md' && snippets(readFileSync(join(root, page), 'utf8')).length > 0,
    )
    expect(await typeErrors(await writeTyped('typed', typed))).toBe('')
  })

  it('for other runtimes have the types of the sources, each alone', async () => {
    const folder = await writeTyped('runtimes', [])
    const programs = snippets(readFileSync(join(root, 'docs/guide/runtimes.md'), 'utf8'))
    for (const [at, code] of programs.entries())
      await writeFile(join(folder, `${at}.ts`), `${around}${/const server =/.test(code) ? '' : made}${code}\nexport {}\n`)
    expect(await typeErrors(folder)).toBe('')
  })
})

async function typeErrors(folder: string): Promise<string> {
  const compiler = join(root, 'node_modules', 'typescript', 'bin', 'tsc')
  const { stdout } = await promisify(execFile)(process.execPath, [compiler, '-p', folder, '--pretty', 'false']).catch(
    (error: { readonly stdout: string }) => error,
  )
  return stdout
}
