/** The fixture behind every carrier: what a client needs to reach it, and how it is put away again. */
import { mkdirSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { build } from 'esbuild'
import { root } from '../../scripts/lib/files.ts'
import { type Opener, openerOf, type Target } from '../../src/client/target.ts'
import { clientLimits } from '../../src/engine/limits.ts'
import type { RevisionId, Server, ServerOptions } from '../../src/server/index.ts'
import { memoryPair } from '../../src/transports/memory.ts'
import { compiledOnce } from '../compiled-once.ts'
import { createLively } from '../live/fixture.ts'
import { createFixture } from './fixture.ts'
import { createTrusted } from './fixture-trusted.ts'

export type CarrierName = 'memory' | 'stdio' | 'http' | 'sse' | 'websocket'

const modern = ['memory', 'stdio', 'http', 'websocket'] as const

/** The carriers that each revision has. The dialect's own push over HTTP is the old pair; its POSTs are answered as well. */
export const carriersOf: Readonly<Record<RevisionId, readonly CarrierName[]>> = {
  '2024-11-05': ['memory', 'stdio', 'sse', 'websocket'],
  '2025-03-26': modern,
  '2025-06-18': modern,
  '2025-11-25': modern,
  '2026-07-28': modern,
  'draft-2026-v1': modern,
  s3: ['memory', 'stdio', 'http', 'sse', 'websocket'],
}

export interface Reachable {
  readonly target: Target
  /** What a client needs beside the address: over `fetch` the server itself answers, without a socket. */
  readonly options?: { readonly fetch: typeof fetch }
  /** Where it runs in this process. */
  readonly server: Server | undefined
  close(): Promise<void>
}

/** The fixture behind its web-standard face. */
export function fetchFixture(): Reachable {
  const server = createFixture()
  const answer: typeof fetch = (input, init) => server.fetch(new Request(input, init))
  return { target: 'http://localhost/mcp', options: { fetch: answer }, server, close: () => server.close() }
}

/** Starts a fixture behind a carrier. */
export async function startFixture(
  carrier: CarrierName,
  revisions?: readonly RevisionId[],
  create: typeof createFixture = createFixture,
): Promise<Reachable> {
  if (carrier === 'stdio') {
    const other = create === createTrusted ? ['trusted'] : create === createLively ? ['live'] : []
    const args = [await fixtureFile(), ...other, ...(revisions ?? [])]
    // What fails there fails on purpose; on the other carriers its log is judged.
    const env = { ...compiledOnce, VIVARIUM_LOG: 'silent' }
    return { target: { command: process.execPath, args, env }, server: undefined, close: async () => {} }
  }
  const options: Partial<ServerOptions> = revisions === undefined ? {} : { revisions }
  const server = create(options)
  if (carrier === 'memory') {
    const [near, far] = memoryPair()
    server.acceptor.accept(far)
    return { target: near, server, close: () => server.close() }
  }
  const { port } = await server.listen({ ssePath: '/sse', wsPath: '/ws', closeMs: 1_000 })
  const address = {
    http: `http://127.0.0.1:${port}/mcp`,
    sse: `http://127.0.0.1:${port}/sse`,
    websocket: `ws://127.0.0.1:${port}/ws`,
  }
  return { target: address[carrier], server, close: () => server.close() }
}

/** How a bare connection to it is opened. */
export function openConnection(carrier: CarrierName, target: Target): ReturnType<Opener['open']> {
  const opener = openerOf(target, { limits: clientLimits })
  return carrier === 'sse' && opener.openOldPair !== undefined ? opener.openOldPair() : opener.open()
}

let bundled: Promise<string> | undefined

/** The fixture as one file of JavaScript: it starts in a quarter of the time that its sources take. */
export function fixtureFile(): Promise<string> {
  bundled ??= bundle()
  return bundled
}

async function bundle(): Promise<string> {
  const folder = join(root, '.cache', 'test')
  const file = join(folder, 'fixture.js')
  const entry = join(import.meta.dirname, 'fixture-stdio.ts')
  const { outputFiles } = await build({
    entryPoints: [entry],
    bundle: true,
    format: 'esm',
    platform: 'node',
    packages: 'external',
    target: 'node22',
    write: false,
  })
  mkdirSync(folder, { recursive: true })
  // Test files run beside each other: whoever starts the file must find it whole.
  const draft = `${file}.${process.pid}`
  writeFileSync(draft, outputFiles[0]?.contents ?? '')
  renameSync(draft, file)
  return file
}
