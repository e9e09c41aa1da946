/**
 * One Postgres for all test files of a run, started when the first of them asks for it. The process that runs the tests waits on a
 * port; whoever connects is told the address of the database.
 */
import { connect, createServer } from 'node:net'
import { text } from 'node:stream/consumers'
import { inject } from 'vitest'
import type { TestProject } from 'vitest/node'
import { startPostgres, type TestPostgres } from './real-postgres.ts'

declare module 'vitest' {
  interface ProvidedContext {
    /** The port on which the address is told. */
    postgresPort: number
  }
}

/** Runs once, before all tests; gives what is to be done after them. */
export async function setup({ provide }: TestProject): Promise<() => Promise<void>> {
  let starting: Promise<TestPostgres> | undefined
  const door = createServer(socket => {
    socket.on('error', () => {})
    starting ??= startPostgres()
    starting.then(
      ({ url }) => socket.end(url),
      error => socket.end(`failed: ${error}`),
    )
  })
  await new Promise<void>(resolve => door.listen(0, '127.0.0.1', resolve))
  const address = door.address()
  provide('postgresPort', typeof address === 'object' && address !== null ? address.port : 0)
  return async () => {
    door.close()
    const database = await starting?.catch(() => undefined)
    await database?.stop()
  }
}

/** The address of the database; many schemas lie in it, so take one of your own. */
export async function sharedPostgres(): Promise<string> {
  const said = await text(connect(inject('postgresPort'), '127.0.0.1'))
  if (said.startsWith('failed')) throw new Error(`The tests have no Postgres: ${said}`)
  return said
}
