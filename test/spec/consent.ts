/** Where consent is tested: both eras, on every kind of store, with a clock that can be put forward. */
import { type Clock, realClock } from '../../src/core/clock.ts'
import type { RevisionId } from '../../src/revisions/index.ts'
import { createServer, type Server, type ServerOptions } from '../../src/server/index.ts'
import { type StoreKind, storeKinds, storesUnderTest } from '../stores-under-test.ts'
import type { Frame } from './wire.ts'

export const eras: readonly RevisionId[] = ['2025-11-25', '2026-07-28']
export const places = eras.flatMap(revision => storeKinds.map(kind => [revision, kind] as const))

export const confirmation = 'dev.vivarium/confirmation'
export const permissions = 'dev.vivarium/permissions'
export const problems = 'dev.vivarium/problem'

export interface ConsentWorld {
  readonly clock: Clock & { forward(ms: number): Promise<void> }
  serve(kind: StoreKind, options?: Partial<ServerOptions>): Server
  close(): Promise<void>
}

/** To be called once, at the top of a test file. */
export function consentWorld(): ConsentWorld {
  let ahead = 0
  const servers: Server[] = []
  const stores = storesUnderTest()
  const urls: string[] = []
  const clock = {
    now: () => realClock.now() + ahead,
    setTimeout: realClock.setTimeout,
    forward: async (ms: number) => {
      // A record must not be gone for the database before it is over for the server: it would seem to be taken away.
      ahead += ms
      for (const url of urls) await stores.forward(url, ms)
    },
  }
  return {
    clock,
    serve: (kind, options = {}) => {
      const store = stores.url(kind)
      urls.push(store)
      const server = createServer({ name: 'tracker', version: '1.0.0', store, clock, log: 'silent', ...options })
      servers.push(server)
      return server
    },
    close: async () => {
      for (const server of servers.splice(0)) await server.close()
      urls.length = 0
    },
  }
}

/** A result's `_meta` under a key. */
export function metaIn(frame: Frame, key: string): Frame {
  const meta = (frame['result'] as Frame | undefined)?.['_meta'] as Frame | undefined
  return (meta?.[key] ?? {}) as Frame
}
