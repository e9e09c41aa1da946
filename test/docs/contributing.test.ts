import { execFile } from 'node:child_process'
import { cp, mkdir, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'

const root = join(import.meta.dirname, '../..')
const copy = join(root, '.cache', `contributing-${process.pid}`)
const folder = 'src/features/reliability/labels'
const page = join(root, 'docs/guide/contributing-a-feature.md')

interface Block {
  readonly language: string
  readonly path: string
  readonly text: string
}

describe('the guide to contributing a feature, applied to a copy of the source', () => {
  let blocks: Block[] = []

  beforeAll(async () => {
    blocks = blocksOf(await readFile(page, 'utf8'))
    for (const part of ['src', 'scripts', 'package.json', 'tsconfig.json'])
      await cp(join(root, part), join(copy, part), { recursive: true })
    // What a server is made of, instead of everything there is: quicker, and all that the feature can break.
    await writeFile(
      join(copy, 'labels.json'),
      `{ "extends": "./tsconfig.json", "include": ["src/server/index.ts", "${folder}"] }`,
    )
    await writeFile(join(copy, 'vitest.config.ts'), 'export default {}')
    await symlink(join(root, 'node_modules'), join(copy, 'node_modules'))
    for (const block of blocks) await apply(block)
  })
  afterAll(() => rm(copy, { recursive: true, force: true }))

  it('touches only its own folder, the list of its role, the API types and a transcript', () => {
    const outside = new Set(blocks.map(({ path }) => path).filter(path => !path.startsWith(folder)))
    expect([...outside].sort()).toEqual(['src/server/api.ts', 'src/server/features.ts', 'test/transcripts/labels.txt'])
  })

  it('takes at most 150 lines', () => {
    const added = blocks.flatMap(({ language, text }) =>
      language === 'diff' ? text.split('\n').filter(line => line.startsWith('+')) : text.trimEnd().split('\n'),
    )
    expect(added.length).toBeLessThanOrEqual(150)
  })

  it('passes the check of types and of rooms', async () => {
    await run('node_modules/typescript/bin/tsc', '-p', 'labels.json', '--pretty', 'false')
    await run('scripts/check-rooms.ts')
  })

  it('passes its own test, which plays its transcript', async () => {
    const { stdout } = await run('node_modules/vitest/vitest.mjs', 'run', folder)
    expect(stdout).toMatch(/2 passed/)
  })
})

async function run(...args: string[]): Promise<{ stdout: string }> {
  const running = promisify(execFile)(process.execPath, args, { cwd: copy, env: { ...process.env, NO_COLOR: '1' } })
  return running.catch(({ message, stdout }) => expect.unreachable(`${message}\n${stdout}`))
}

/** Code blocks that name their file: ```ts [src/file.ts] */
function blocksOf(markdown: string): Block[] {
  return [...markdown.matchAll(/^```(\w+) \[(\S+)\]\n(.*?)^```$/gms)].map(([, language = '', path = '', text = '']) => ({
    language,
    path,
    text,
  }))
}

async function apply({ language, path, text }: Block): Promise<void> {
  const file = join(copy, path)
  if (language !== 'diff') {
    await mkdir(dirname(file), { recursive: true })
    return writeFile(file, text)
  }
  const lines = text.trimEnd().split('\n')
  const side = (sign: string) => lines.filter(line => !line.startsWith(sign)).map(line => `${line.slice(1)}\n`)
  const before = side('+').join('')
  const source = await readFile(file, 'utf8')
  expect(source.split(before).length, `${path} has once: ${before}`).toBe(2)
  await writeFile(
    file,
    source.replace(before, () => side('-').join('')),
  )
}
