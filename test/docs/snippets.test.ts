import { execFile } from 'node:child_process'
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, describe, expect, it } from 'vitest'

const root = join(import.meta.dirname, '../..')
// Inside the package, so that its own name resolves to what was built.
const scratch = join(root, '.cache', `snippets-${process.pid}`)

async function program(page: string): Promise<string> {
  const markdown = await readFile(join(root, page), 'utf8')
  return [...markdown.matchAll(/^```ts\n(.*?)^```$/gms)].map(([, code]) => code).join('\n')
}

describe('the programs in the documentation', () => {
  afterAll(() => rm(scratch, { recursive: true, force: true }))

  it.each(['README.md', 'docs/server.md', 'docs/client.md', 'docs/testing.md', 'docs/logging.md'])(
    '%s runs to its end as one program',
    async page => {
      await mkdir(scratch, { recursive: true })
      const file = join(scratch, `${page.replaceAll(/\W/g, '-')}.ts`)
      await writeFile(file, await program(page))
      const { stderr } = await promisify(execFile)(process.execPath, ['--disable-warning=ExperimentalWarning', file], {
        timeout: 30_000,
      })
      expect(stderr).not.toMatch(/Error/)
    },
  )
})
