import { spawn } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { expect, onTestFinished, test } from 'vitest'
import { scaffold } from './new.ts'

const files = scaffold({ name: 'notes', vivarium: '^1.0.0', author: 'Kim' })
const packages = new Map([
  ['vivarium/server', new URL('../../server/index.ts', import.meta.url).href],
  ['vivarium/testing', new URL('../../testing/index.ts', import.meta.url).href],
  ['zod', import.meta.resolve('zod')],
])

/** Runs the tests of the scaffold as `npm test` does; nothing is installed, so packages are named by their files. */
async function tested(change: (code: string) => string): Promise<{ readonly code: number | null; readonly said: string }> {
  const folder = await mkdtemp(join(tmpdir(), 'scaffold-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  for (const path of ['server.ts', 'server.test.ts', 'package.json']) {
    let code = change(files.get(path) ?? '')
    for (const [name, url] of packages) code = code.replace(`from '${name}'`, `from '${url}'`)
    await writeFile(join(folder, path), code)
  }
  const child = spawn(process.execPath, ['--test'], { cwd: folder, stdio: ['ignore', 'pipe', 'inherit'], env: {} })
  const ended = new Promise<number | null>(done => child.once('exit', done))
  return { said: await text(child.stdout), code: await ended }
}

test('the tests of a new server pass', async () => {
  expect(await tested(code => code)).toMatchObject({ code: 0 })
})

test('the tests of a new server catch an id that is given twice', async () => {
  const { code, said } = await tested(text => text.replace('String(++lastId)', 'String(notes.size + 1)'))
  expect(code).toBe(1)
  expect(said).toContain('a new note never gets the id of another one')
})

test('what running leaves behind is not committed', () => {
  expect(files.get('.gitignore')?.split('\n')).toEqual(
    expect.arrayContaining(['node_modules', 'dist', '.vivarium', '*.tape', '*.db', '*.mcpb']),
  )
})
