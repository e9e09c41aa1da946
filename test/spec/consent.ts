/** Where consent is tested: both eras, on a store in memory and one on disk, with a clock that can be put forward. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Clock, realClock } from '../../src/core/clock.ts'
import type { RevisionId } from '../../src/revisions/index.ts'
import { createServer, type Server, type ServerOptions } from '../../src/server/index.ts'
import type { Frame } from './wire.ts'

export const eras: readonly RevisionId[] = ['2025-11-25', '2026-07-28']
export const kinds = ['memory', 'sqlite'] as const
export const places = eras.flatMap(revision => kinds.map(kind => [revision, kind] as const))

export const confirmation = 'dev.vivarium/confirmation'
export const permissions = 'dev.vivarium/permissions'
export const problems = 'dev.vivarium/problem'

export interface ConsentWorld {
  readonly clock: Clock & { forward(ms: number): void }
  serve(kind: (typeof kinds)[number], options?: Partial<ServerOptions>): Server
  close(): Promise<void>
}

export function consentWorld(): ConsentWorld {
  let ahead = 0
  const servers: Server[] = []
  const folders: string[] = []
  const clock = {
    now: () => realClock.now() + ahead,
    setTimeout: realClock.setTimeout,
    forward: (ms: number) => {
      ahead += ms
    },
  }
  return {
    clock,
    serve: (kind, options = {}) => {
      const folder = mkdtempSync(join(tmpdir(), 'vivarium-consent-'))
      folders.push(folder)
      const store = kind === 'memory' ? 'memory:' : `sqlite:${join(folder, 'store.db')}`
      const server = createServer({ name: 'tracker', version: '1.0.0', store, clock, log: 'silent', ...options })
      servers.push(server)
      return server
    },
    close: async () => {
      for (const server of servers.splice(0)) await server.close()
      for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true })
    },
  }
}

/** A result's `_meta` under a key. */
export function metaIn(frame: Frame, key: string): Frame {
  const meta = (frame['result'] as Frame | undefined)?.['_meta'] as Frame | undefined
  return (meta?.[key] ?? {}) as Frame
}
