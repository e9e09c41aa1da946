/** The guide as its reader would run it: the built package, a process of its own, and a browser that follows redirects. */
import { execFile } from 'node:child_process'
import { chmod, mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { describe, expect, it, onTestFinished } from 'vitest'
import { startWorld } from './world.ts'

const root = join(import.meta.dirname, '../..')
const run = promisify(execFile)

async function scratch(): Promise<string> {
  // Inside the package, so that its own name resolves to what was built.
  const folder = join(root, '.cache', `guide-${process.pid}`)
  await mkdir(folder, { recursive: true })
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  return folder
}

/** A browser by the names that the systems' own have. */
async function installBrowser(folder: string): Promise<void> {
  for (const name of ['xdg-open', 'open']) {
    await writeFile(join(folder, name), `#!${process.execPath}\nfetch(process.argv[2])\n`)
    await chmod(join(folder, name), 0o755)
  }
}

describe.skipIf(process.platform === 'win32')('docs/guide/client-authorization.md', () => {
  it('runs to its end as one program', async () => {
    const folder = await scratch()
    await installBrowser(folder)
    const world = await startWorld({
      metadata: all => ({ ...all, token_endpoint_auth_methods_supported: ['none', 'client_secret_basic'] }),
      token: all => ({ ...all, issued_token_type: 'urn:ietf:params:oauth:token-type:id-jag' }),
    })
    world.tokens.set('mine', { value: 'mine', scope: '' })
    const markdown = await readFile(join(root, 'docs/guide/client-authorization.md'), 'utf8')
    const file = join(folder, 'guide.ts')
    await writeFile(file, [...markdown.matchAll(/^```ts\n(.*?)^```$/gms)].map(([, code]) => code).join('\n'))
    const env = {
      ...process.env,
      PATH: `${folder}:${process.env['PATH']}`,
      MCP_URL: world.url,
      IDP_TOKEN_URL: `${world.issuer}/token`,
      MCP_TOKEN: 'mine',
    }
    const { stderr } = await run(process.execPath, ['--disable-warning=ExperimentalWarning', file], {
      cwd: folder,
      env,
      timeout: 30_000,
    })
    expect(stderr).toMatch(/hello/)
    expect(stderr).toMatch(/refused-again The server refuses the token/)
    // By cli() once for the first program and once for the file, then by the browser of one's own.
    expect(world.at('/authorize')).toHaveLength(3)
  })
})

it('importing vivarium/client loads nothing of OAuth', async () => {
  const hook = `import { registerHooks } from 'node:module'
    const seen = []
    registerHooks({ resolve: (name, context, next) => (seen.push(name), next(name, context)) })
    await import(${JSON.stringify(join(root, 'dist/client.js'))})
    console.log(JSON.stringify(seen))`
  const { stdout } = await run(process.execPath, ['--input-type=module', '-e', hook])
  const seen: string[] = JSON.parse(stdout)
  expect(seen.length).toBeGreaterThan(1)
  expect(
    seen.filter(name => /oauth4webapi|jose|\/ways-|loopback|file-storage|node:(http|crypto|child_process)/.test(name)),
  ).toEqual([])
})
