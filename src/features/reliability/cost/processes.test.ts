import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { killProcess, writtenLines } from '../../../../test/reliability/other-process.ts'
import { sharedPostgres } from '../../../../test/shared-postgres.ts'
import { eras } from '../../../../test/spec/consent.ts'
import { type Client, connect } from '../../../client/index.ts'
import type { RevisionId } from '../../../revisions/index.ts'

const script = join(import.meta.dirname, '../../../../test/reliability/priced-process.ts')
let postgres: string
let folder: string
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'vivarium-priced-'))
  postgres = await sharedPostgres()
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

let worlds = 0

/** Two processes on one database. */
async function two(revision: RevisionId): Promise<{ one: Client; other: Client; hanging: () => Promise<string> }> {
  const schema = `priced_${++worlds}`
  const file = join(folder, schema)
  const args = ['--disable-warning=ExperimentalWarning', script, `${postgres}?schema=${schema}`, file]
  const start = (): Promise<Client> => connect({ command: process.execPath, args }, { revisions: [revision], retry: false })
  const [one, other] = await Promise.all([start(), start()])
  const hanging = (): Promise<string> => writtenLines(file).line(() => true)
  return { one, other, hanging }
}

describe.each(eras)('two processes on one Postgres at %s', revision => {
  it('E3-4: share one quota, and calls at once never take more than there is', async () => {
    const { one, other } = await two(revision)
    const calls = Array.from({ length: 8 }, (_, i) => (i % 2 === 0 ? one : other).callTool('small'))
    const outs = await Promise.all(calls)
    expect(outs.filter(({ isError }) => !isError)).toHaveLength(5)
    const refused = outs.find(({ isError }) => isError)
    expect(refused?.problem).toMatchObject({ code: 'QUOTA_EXHAUSTED', retryable: true })
    await Promise.all([one.close(), other.close()])
  })

  it('X9: what a process had reserved when it was killed is there for the other again', async () => {
    const { one, other, hanging } = await two(revision)
    const lost = one.callTool('hang').catch(() => 'lost')
    const pid = await hanging()
    expect((await other.callTool('large')).problem?.code).toBe('QUOTA_EXHAUSTED')
    killProcess(pid)
    expect(await lost).toBe('lost')
    await expect.poll(async () => (await other.callTool('large')).isError, { interval: 250 }).toBe(false)
    await Promise.all([one.close(), other.close()])
  })
})
