/** The command line itself, as it is built. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { trial } from '../../test/cli/trial.ts'
import { verbs } from './program.ts'

const packageJson = JSON.parse(readFileSync(join(import.meta.dirname, '../../package.json'), 'utf8')) as { version: string }

test('the version is that of the package, and costs no engine', async () => {
  const { run, folder } = await trial({})
  const { code, out } = await run(['--version'], { env: { NODE_V8_COVERAGE: join(folder, 'loaded') } })
  expect([code, out]).toEqual([0, `${packageJson.version}\n`])
  const loaded = readdirSync(join(folder, 'loaded')).map(file => readFileSync(join(folder, 'loaded', file), 'utf8'))
  const chunks = loaded.flatMap(text => [...text.matchAll(/dist\/([\w/.-]+\.js)/g)].map(([, file]) => file))
  expect(chunks).toContain('cli/main.js')
  expect(chunks.filter(file => /chunks\/(common|stdio|http)/.test(file ?? ''))).toEqual([])
})

test('without a word it says what there is', async () => {
  const { run } = await trial({})
  const { code, out } = await run([])
  expect(code).toBe(0)
  for (const { name } of verbs) expect(out).toMatch(new RegExp(`^  ${name}\\b`, 'm'))
  expect(out).toMatch(/^Exit codes:\n {2}0 {2}success$/m)
})

test.each(verbs.map(({ name }) => name))('the help of %s begins with how it is written, and has examples', async name => {
  const { run } = await trial({})
  const { code, out } = await run([name, '--help'])
  expect(code).toBe(0)
  expect(out).toMatch(new RegExp(`^Usage: vivarium ${name}`))
  expect(out).toMatch(/\nExamples:\n {2}# .+\n {2}.*vivarium /)
  expect((await run(['help', name])).out).toBe(out)
})

test('a mistyped verb or option is answered with the nearest', async () => {
  const { run } = await trial({})
  expect(await run(['lsit', 'x'])).toEqual({
    code: 1,
    out: '',
    err: "vivarium: There is no verb 'lsit'. Did you mean list?\n  → Run vivarium --help\n",
  })
  expect((await run(['call', 'x', '--jsn', '{}'])).err).toBe(
    "vivarium: Unknown option '--jsn'. Did you mean --json?\n  → Run vivarium call --help\n",
  )
  expect((await run(['list', 'x', '--json'])).err).toBe(
    "vivarium: Unknown option '--json'. Did you mean --format json?\n  → Run vivarium list --help\n",
  )
  expect((await run(['help', 'cal'])).err).toBe("vivarium: There is no verb 'cal'. Did you mean call?\n  → Run vivarium --help\n")
  for (const words of [
    ['why', '--help'],
    ['-h', 'why'],
    ['help', 'why'],
  ])
    expect(await run(words)).toEqual({ code: 1, out: '', err: "vivarium: There is no verb 'why'\n  → Run vivarium --help\n" })
  expect((await run(['serve'])).err).toContain("Missing required argument 'file'")
  expect((await run(['serve', 'x.ts', '--port', 'many'])).err).toBe(
    'vivarium: --port: "many" is not a port. Write a number from 0 to 65535\n',
  )
})

test('with --format json a failure is one line of JSON', async () => {
  const { run } = await trial({})
  const { code, out, err } = await run(['list', 'nowhere', '--format', 'json'])
  expect([code, out]).toEqual([1, ''])
  expect(JSON.parse(err)).toMatchObject({ error: { code: 'failed', exit: 1, message: expect.stringContaining('nowhere') } })
  expect(JSON.parse((await run(['lsit', '--format=json'])).err)).toMatchObject({ error: { exit: 1 } })
})
