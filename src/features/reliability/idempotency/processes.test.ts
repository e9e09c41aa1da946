import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { revisions } from '../../../../test/reliability/keyed-world.ts'
import { killProcess, writtenLines } from '../../../../test/reliability/other-process.ts'
import { sharedPostgres } from '../../../../test/shared-postgres.ts'
import { type Client, connect } from '../../../client/index.ts'
import type { RevisionId } from '../../../revisions/index.ts'

const script = join(import.meta.dirname, '../../../../test/reliability/keyed-process.ts')
let postgres: string
let folder: string
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'vivarium-processes-'))
  postgres = await sharedPostgres()
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

let worlds = 0

/** Two processes on one database. */
async function two(revision: RevisionId) {
  const schema = `keys_${++worlds}`
  const file = join(folder, schema)
  const start = (): Promise<Client> =>
    connect(
      {
        command: process.execPath,
        args: ['--disable-warning=ExperimentalWarning', script, `${postgres}?schema=${schema}`, file],
      },
      { revisions: [revision], retry: false },
    )
  const { lines: effects, line } = writtenLines(file)
  const began = (count: number): Promise<string> => line((_, index) => index === count - 1)
  const clients = await Promise.all([start(), start()])
  const close = (): Promise<unknown> => Promise.all(clients.map(client => client.close()))
  return { one: clients[0] as Client, two: clients[1] as Client, effects, began, close }
}

describe.each(revisions)('two processes on one Postgres at %s', revision => {
  it('E5-2: what one has done, the other gives again', async () => {
    const { one, two: other, effects, close } = await two(revision)
    const outs = [
      await one.callTool('once', {}, { idempotencyKey: 'k' }),
      await other.callTool('once', {}, { idempotencyKey: 'k' }),
    ]
    expect(outs[1]?.text).toBe(outs[0]?.text)
    expect(effects()).toHaveLength(1)
    await close()
  })

  it('E5-4: of many calls to both at once one is done, and all get its result', async () => {
    const { one, two: other, effects, close } = await two(revision)
    const calls = Array.from({ length: 20 }, (_, i) => (i % 2 === 0 ? one : other).callTool('once', {}, { idempotencyKey: 'k' }))
    const outs = await Promise.all(calls)
    expect(new Set(outs.map(({ text }) => text)).size).toBe(1)
    expect(effects()).toHaveLength(1)
    await close()
  })

  it('E5-6: what a killed process began is unknown, or made again where its tool is idempotent', async () => {
    const { one, two: other, effects, began, close } = await two(revision)
    const lost = [
      one.callTool('hang', {}, { idempotencyKey: 'a' }).catch(() => 'lost'),
      one.callTool('again', {}, { idempotencyKey: 'b', meta: { 'example.com/hang': true } }).catch(() => 'lost'),
    ]
    killProcess(await began(2))
    expect(await Promise.all(lost)).toEqual(['lost', 'lost'])
    const [unknown, again] = await Promise.all([
      other.callTool('hang', {}, { idempotencyKey: 'a' }),
      other.callTool('again', {}, { idempotencyKey: 'b' }),
    ])
    expect(unknown.problem?.code).toBe('OUTCOME_UNKNOWN')
    expect(again.isError).toBe(false)
    expect(effects()).toHaveLength(3)
    await close()
  })
})
