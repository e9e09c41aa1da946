/** `vivarium inspect TARGET --web` and `vivarium test TARGET --web`: a link, a call, results, and nothing that a page could start. */
import { expect, test } from 'vitest'
import { trial } from '../../../test/cli/trial.ts'
import { signIn } from '../../../test/cli/web-sign-in.ts'

test('inspect --web serves a playground for a program until it is interrupted, and says its standard error in the log', {
  timeout: 120_000,
}, async () => {
  const it = await trial()
  const started = it.start(['inspect', './server.ts', '--web', '--port', '0'])
  const [, link = ''] = await started.until(/console {2}(http:\/\/127\.0\.0\.1:\d+\/#k=[\w-]{43}) {2}\(once, 10 min\)/, 'err')
  const { send } = await signIn(link)
  expect(await send('GET', '/self')).toMatchObject({
    kind: 'playground',
    name: './server.ts',
    screens: ['playground', 'traffic', 'conformance', 'approvals', 'logs'],
    target: { again: './server.ts' },
  })
  const revisions = ['2026-07-28', '2025-06-18']
  const { id } = await send('POST', '/calls', { tool: 'add', arguments: { a: 2, b: 3 }, revisions })
  await expect.poll(async () => (await send('GET', `/calls/${String(id)}`))['state']).toBe('done')
  const { runs } = (await send('GET', `/calls/${String(id)}`)) as { runs: unknown[] }
  const result = expect.objectContaining({ structuredContent: { sum: 5 } })
  expect(runs).toEqual(revisions.map(revision => expect.objectContaining({ revision, state: 'done', result })))
  expect(await send('POST', '/calls', { command: 'rm', tool: 'add' })).toMatchObject({ code: 'INVALID_INPUT' })
  started.child.kill('SIGINT')
  await started.ended
})

test('test --web opens at conformance and runs what the command line names', { timeout: 120_000 }, async () => {
  const it = await trial()
  const revision = ['--revision', '2025-06-18']
  const { until } = it.start(['test', './server.ts', '--web', '--port', '0', '--no-open', ...revision])
  const [, link = ''] = await until(/console {2}(http\S+) {2}\(once/, 'err')
  const { send } = await signIn(link)
  expect((await send('GET', '/self'))['screens']).toMatchObject({ 0: 'conformance' })
  await expect
    .poll(async () => (await send('GET', '/conformance'))['wish'])
    .toEqual({ allowWrites: false, revisions: ['2025-06-18'] })
  await expect.poll(async () => ((await send('GET', '/conformance'))['summary'] as { passed: number }).passed).toBeGreaterThan(0)
  const refused = await it.run(['test', './server.ts', '--web', '--junit', 'a.xml'])
  expect([refused.code, refused.err]).toEqual([1, expect.stringContaining('--web and --junit cannot be used together')])
})
