/** Servers of which only a part can be had, and those that never answer: what is shown, and for how long one waits. */
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { trial } from '../../../test/cli/trial.ts'
import { type Duration, toMilliseconds } from '../../core/clock.ts'
import { waitMs } from '../connecting.ts'
import type { ResolvedTarget } from '../target.ts'

const plain = join(import.meta.dirname, '../../../test/cli/plain-server.mjs')

describe('a server that declares resources it does not know, and whose prompts fail', () => {
  test('is listed as far as it goes, and what failed is named', async () => {
    const { run } = await trial({})
    const { code, out, err } = await run(['list', '--', 'node', plain, 'half'])
    expect(out).toContain('Tools (1)\n  ping()')
    expect(err).toContain('! resources: The server declares resources but does not implement resources/list')
    expect(err).toContain('! prompts: The server refused the request: The database is down (-32603)')
    expect(code).toBe(1)
    const json = await run(['list', '--format', 'json', '--', 'node', plain, 'half'])
    expect(JSON.parse(json.out)).toMatchObject({
      tools: [{ name: 'ping' }],
      failed: [
        { kind: 'resources', unknown: true },
        { kind: 'prompts', unknown: false, message: expect.stringContaining('The database is down') },
      ],
    })
  })

  test('is listed without a failure where it only declares more than it knows', async () => {
    const { run } = await trial({})
    const { code, out } = await run(['list', 'resources', '--', 'node', plain, 'half'])
    expect([code, out]).toEqual([0, 'None.\n'])
  })

  test('is a failure where the one list that was asked for fails', async () => {
    const { run } = await trial({})
    const { code, err } = await run(['list', 'prompts', '--', 'node', plain, 'half'])
    expect([code, err]).toEqual([1, 'vivarium: The server refused the request: The database is down (-32603)\n'])
  })

  test('is inspected and examined as far as it goes', async () => {
    const { run } = await trial({})
    const inspected = await run(['inspect', '--', 'node', plain, 'half'])
    expect([inspected.code, inspected.out]).toEqual([1, expect.stringMatching(/offers +1 tool, 0 resources/)])
    expect(inspected.err).toContain('! prompts: The server refused the request: The database is down (-32603)')
    const examined = await run(['doctor', '--', 'node', plain, 'half'])
    expect(examined.code).toBe(1)
    expect(examined.out).toContain('! list     The server declares resources but does not implement resources/list')
    expect(examined.out).toContain(
      '✗ list     The server does not list its prompts: The server refused the request: The database is down',
    )
    expect(examined.out).toContain('2025-06-18 · 1 tool')
  })
})

test('a program whose tool has null for a description is listed all the same: of what was typed nothing is kept', async () => {
  const { run } = await trial({})
  const { code, out, err } = await run(['list', 'tools', '--format', 'json', '--', 'node', plain, 'odd'])
  expect([code, err]).toEqual([0, ''])
  expect(JSON.parse(out)).toMatchObject({ tools: [{ name: 'ping', description: null }] })
})

test('a server that refuses its list of prompts is asked for it once', async () => {
  const { run } = await trial({})
  const { code, err } = await run(['prompt', 'sum', 'style=short', '--verbose', '--', 'node', plain, 'refusing'])
  expect([code, err.match(/asked for a list/g)]).toEqual([1, ['asked for a list']])
  expect(err).toContain('vivarium: The server refused the request: Not with this list (-32602)')
})

describe('a server that declares events', () => {
  test('and cannot say which is listed and inspected as far as it goes, and the failure is named', async () => {
    const { run } = await trial({})
    const { code, out, err } = await run(['list', '--', 'node', plain, 'events-down'])
    expect([code, out]).toEqual([1, expect.stringContaining('Tools (1)\n  ping()')])
    expect(err).toContain('! events: The server refused the request: The database is down (-32603)')
    const json = await run(['list', '--format', 'json', '--', 'node', plain, 'events-down'])
    const failed = [{ kind: 'events', unknown: false, message: expect.stringContaining('The database is down') }]
    expect(JSON.parse(json.out)).toMatchObject({ tools: [{ name: 'ping' }], failed })
    const inspected = await run(['inspect', '--', 'node', plain, 'events-down'])
    expect([inspected.code, inspected.err]).toEqual([
      1,
      expect.stringContaining('! events: The server refused the request: The database'),
    ])
    const alone = await run(['list', 'events', '--', 'node', plain, 'events-down'])
    expect([alone.code, alone.err]).toEqual([1, 'vivarium: The server refused the request: The database is down (-32603)\n'])
  })

  test('and does not know their list has none, and is told so', async () => {
    const { run } = await trial({})
    const { code, out, err } = await run(['list', '--', 'node', plain, 'events-unknown'])
    expect([code, out]).toEqual([0, expect.stringContaining('Tools (1)\n  ping()')])
    expect(err).toContain('! events: The server declares events but does not implement event/list')
  })
})

test('a schema beyond the limits is a warning of the doctor: the server works', async () => {
  const { run } = await trial({})
  const { code, out } = await run(['doctor', '--', 'node', plain, 'large'])
  expect(out).toContain("! schema   the output of big: The peer's schema is larger than 65536 bytes")
  expect(code).toBe(0)
})

describe('a program that never answers', () => {
  test('and says that it serves HTTP is told so long before the time is over', async () => {
    const { run } = await trial({})
    const { code, err } = await run(['list', '--timeout', '10m', '--', 'node', plain, 'http'])
    expect([code, err]).toEqual([
      4,
      `vivarium: node ${plain} http serves HTTP at http://localhost:8931 and writes nothing to standard output\n` +
        '  → Start it separately and use its address, or start it with the argument that makes it speak over stdio\n',
    ])
  })

  test('is waited for as long as the help says', async () => {
    const { run } = await trial({})
    const { out } = await run(['list', '--help'])
    const [, usual, fetched] = /default: (\w+); (\w+) to\s+open/.exec(out.replace(/\s+/g, ' ')) ?? []
    const waits = (command: string) => waitMs({ target: { command } } as ResolvedTarget, {})
    expect([usual, fetched].map(text => toMilliseconds(text as Duration, 'help'))).toEqual([waits('node'), waits('npx')])
    expect(waitMs({ target: { command: 'npx' } } as ResolvedTarget, { timeout: 3_000 })).toBe(3_000)
  })
})

test('a terminal shows what is waited for while a resource, a prompt or a task takes long', async () => {
  const it = await trial({
    'slow.ts': `import { createServer } from 'vivarium/server'
export const server = createServer({ name: 'slow', version: '1.0.0' })
const never = () => new Promise(() => {})
server.resource('slow://one', { name: 'one' }, never)
server.prompt('long', { description: 'Long' }, never)
server.tool('bake', { description: 'Bakes', task: 'required' }, async (_, ctx) => { ctx.progress(1, { total: 4, message: 'kneading' }); return never() })
`,
  })
  for (const [args, shown] of [
    [['read', 'slow.ts', 'slow://one'], /reading slow:\/\/one/],
    [['prompt', 'slow.ts', 'long'], /getting long/],
    [['call', 'slow.ts', 'bake', '--task'], /25 % kneading/],
    [['call', 'slow.ts', 'bake', '--task', '--revision', '2025-11-25'], /25 % kneading/],
  ] as const) {
    const { until, child, ended } = it.terminal(args)
    await until(shown, 'err')
    child.kill('SIGKILL')
    await ended
  }
})
