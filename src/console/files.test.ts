/** The page: what is served of a folder, how, and what is not. */
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { PageFiles } from './files.ts'

async function folder(files: Readonly<Record<string, string>>): Promise<string> {
  const made = await mkdtemp(join(tmpdir(), 'console-'))
  onTestFinished(() => rm(made, { recursive: true }))
  await mkdir(join(made, 'assets'))
  for (const [name, text] of Object.entries(files)) await writeFile(join(made, name), text)
  return made
}

it('serves hashed files compressed as the client accepts it, and to be kept for good', async () => {
  const files = new PageFiles(
    await folder({
      'index.html': '',
      'assets/main-B4fzgk2x.js': 'plain',
      'assets/main-B4fzgk2x.js.br': 'brotli',
      'assets/main-B4fzgk2x.js.gz': 'gzip',
    }),
  )
  const get = async (accepts: string) => {
    const { headers = {}, body = '' } = (await files.answer('/assets/main-B4fzgk2x.js', accepts)) ?? {}
    return [String(body), headers['content-encoding'], headers['content-type'], headers['cache-control']]
  }
  const kept = ['text/javascript; charset=utf-8', 'public, max-age=31536000, immutable']
  expect(await get('gzip, br')).toEqual(['brotli', 'br', ...kept])
  expect(await get('gzip')).toEqual(['gzip', 'gzip', ...kept])
  expect(await get('')).toEqual(['plain', undefined, ...kept])
})

it('serves the page at the address of each screen, with a nonce of its own each time', async () => {
  const files = new PageFiles(await folder({ 'index.html': '<meta nonce="{{nonce}}">' }))
  const seen = new Set<string>()
  for (const path of ['/', '/overview', '/approvals/launch.shop.abc', '/audit']) {
    const { headers = {}, body = '' } = (await files.answer(path, 'br')) ?? {}
    const nonce = /nonce="([\w-]{22})"/.exec(String(body))?.[1] ?? ''
    expect(headers['content-security-policy']).toContain(`'nonce-${nonce}'`)
    expect(headers['cache-control']).toBe('no-store')
    seen.add(nonce)
  }
  expect(seen.size).toBe(4)
})

it.each(['/.digest', '/index.html.br', '/assets/none.js', '/secret.txt', '/overviewer', '/etc/passwd'])(
  'serves nothing at %s',
  async path => {
    const files = new PageFiles(await folder({ 'index.html': '', 'index.html.br': '', '.digest': 'x', 'secret.txt': 'x' }))
    expect(await files.answer(path, 'br')).toBeUndefined()
  },
)

it('says what to do where the page is not part of the installation', async () => {
  const answer = await new PageFiles('/none').answer('/', '')
  expect([answer?.status, String(answer?.body)]).toEqual([404, expect.stringContaining('npm run build')])
})
