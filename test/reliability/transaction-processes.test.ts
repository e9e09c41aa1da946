import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { type Client, connect, type SagaReport, saga } from '../../src/client/index.ts'
import type { RevisionId } from '../../src/revisions/index.ts'
import { openStore } from '../../src/stores/index.ts'
import { startPostgres, type TestPostgres } from '../real-postgres.ts'
import { killProcess, writtenLines } from './other-process.ts'
import { things } from './saga-process.ts'

const tracker = join(import.meta.dirname, 'tracker-process.ts')
const sagas = join(import.meta.dirname, './saga-process.ts')
const quiet = '--disable-warning=ExperimentalWarning'
/** Told, and not judged, because how fast a machine is that runs other things too says nothing of the code. */
const told = (what: string, killed: number): void =>
  console.info(`${what} ${Date.now() - killed} ms after the kill (the lease of a process is 6000 ms)`)
let postgres: TestPostgres
let folder: string
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'vivarium-tx-processes-'))
  postgres = await startPostgres()
})
afterAll(async () => {
  await postgres?.stop()
  rmSync(folder, { recursive: true, force: true })
})

/** What processes have written that they did. */
function effectsIn(file: string) {
  const { lines, line: next } = writtenLines(file)
  const line = (start: string): Promise<string> => next(each => each.startsWith(start))
  return { lines, line, pidOf: async (start: string) => (await line(start)).split(' ').at(-1) ?? '' }
}

let worlds = 0
function world(): { readonly url: string; readonly file: string } {
  const schema = `tx_${++worlds}`
  return { url: `${postgres.url}?schema=${schema}`, file: join(folder, schema) }
}

describe.each<RevisionId>(['2025-11-25', '2026-07-28'])('two processes on one Postgres at %s', revision => {
  it('E5-19: a rollback whose process is killed in the midst of it is ended by the other', async () => {
    const { url, file } = world()
    const { lines, line, pidOf } = effectsIn(file)
    const start = (...more: string[]): Promise<Client> =>
      connect({ command: process.execPath, args: [quiet, tracker, url, file, ...more] }, { revisions: [revision], retry: false })
    await using other = await start()
    await using one = await start('2')
    const tx = await one.transaction({ id: 'tx-1' })
    for (const id of ['1', '2', '3']) await tx.callTool('make', { id })
    const lost = tx.rollback().catch(() => 'lost')
    const pid = await pidOf('hang 2')
    const killed = Date.now()
    killProcess(pid)
    expect(await lost).toBe('lost')
    await line('unmake 1')
    told('rolled back', killed)
    const undone = lines().filter(each => each.startsWith('unmake'))
    expect(undone.map(each => each.split(' ')[1])).toEqual(['3', '2', '1'])
    // Belongs to whoever began it, which on a pipe is whoever runs the process: the other one tells how it ended.
    const stray = { meta: { 'dev.vivarium/transactions': { transaction_id: 'tx-1' } } }
    expect(await other.callTool('make', { id: '4' }, stray)).toMatchObject({ problem: { code: 'TRANSACTION_CONFLICT' } })
  })

  it('E5-20: a saga whose process is killed is taken back by the other', async () => {
    const { url, file } = world()
    const { lines, pidOf } = effectsIn(file)
    const child = spawn(process.execPath, [quiet, sagas, url, file, revision], { stdio: ['ignore', 'inherit', 'inherit'] })
    onTestFinished(() => void child.kill('SIGKILL'))
    const pid = await pidOf('ready')
    expect(pid).toBe(String(child.pid))
    const store = await openStore(url)
    const clients = { one: await things('one', file, revision), two: await things('two', file, revision) }
    expect(await saga.resume({ store, clients })).toEqual([])
    const killed = Date.now()
    child.kill('SIGKILL')
    let reports: readonly SagaReport[] = []
    while (reports.length === 0) {
      await wait(200)
      reports = await saga.resume({ store, clients })
    }
    told('saga taken back', killed)
    expect(reports).toMatchObject([
      {
        status: 'rolled_back',
        steps: [
          { server: 'one', status: 'compensated' },
          { server: 'two', status: 'compensated' },
        ],
      },
    ])
    const undone = lines().filter(each => each.includes('unmake'))
    expect(undone).toEqual([`two unmake b ${process.pid}`, `one unmake a ${process.pid}`])
    await Promise.all([clients.one.close(), clients.two.close(), store.close()])
  })
})
