/** For tests of streams: a server whose tools yield when they are let, and peers that read chunks. */
import { afterEach } from 'vitest'
import { z } from 'zod'
import { streamingExtension, type WireChunk } from '../../src/features/reliability/streaming/messages.ts'
import type { RevisionId } from '../../src/revisions/index.ts'
import { createServer, problem, type Server, type ServerOptions, text } from '../../src/server/index.ts'
import { expectFits } from '../extension-schemas.ts'
import { type Frame, type PeerOptions, speak, type Wire } from '../spec/wire.ts'

export const revisions: readonly RevisionId[] = ['2025-11-25', '2026-07-28']

export interface World {
  readonly server: Server
  /** What `steps` has done, in order. */
  readonly effects: string[]
  /** Why calls of `steps` were told to stop. */
  readonly stopped: string[]
  /** Lets every call of `steps` come so far. */
  allow(steps: number): void
  /** Resolves when `steps` has done so much in all. */
  done(effects: number): Promise<void>
  /** Resolves when a call of `steps` was told to stop. */
  stop(): Promise<void>
  /** A peer that knows streams. */
  speak(revision: RevisionId, options?: PeerOptions): Promise<Wire>
}

/** To be called once, at the top of a test file: what it gives makes worlds that end with their test. */
export function worldsPerTest(): (options?: Partial<ServerOptions>) => World {
  const worlds: World[] = []
  afterEach(async () => {
    for (const { server } of worlds.splice(0)) await server.close()
  })
  return options => {
    const made = world(options)
    worlds.push(made)
    return made
  }
}

export function world(options: Partial<ServerOptions> = {}): World {
  const server = createServer({
    name: 'streams',
    version: '1.0.0',
    log: 'silent',
    secret: 'an only secret of at least 32 characters',
    ...options,
  })
  const effects: string[] = []
  const stopped: string[] = []
  const news = signalOf()
  let allowed = 0
  server.tool('steps', { input: z.object({ of: z.string(), count: z.number() }) }, async function* ({ of, count }, ctx) {
    ctx.signal.addEventListener('abort', () => {
      stopped.push(String(ctx.signal.reason?.message))
      news.tell()
    })
    for (let step = 0; step < count; step++) {
      while (step >= allowed) await Promise.race([news.heard(), aborted(ctx.signal)])
      effects.push(`${of}${step}`)
      news.tell()
      yield `${of}${step};`
    }
  })
  server.tool('blocks', {}, async function* () {
    yield text('one')
    yield text('two')
  })
  server.tool('rows', { output: z.array(z.object({ row: z.number() })) }, async function* () {
    for (const row of [1, 2, 3]) yield { row }
  })
  server.tool('summed', { output: z.object({ sum: z.number() }) }, async function* () {
    yield 1
    yield 2
    return { sum: 3 }
  })
  server.tool('broken', {}, async function* () {
    yield 'so far'
    throw problem('RESOURCE_NOT_FOUND', 'There is no more')
  })
  server.tool('measured', {}, async function* (_, ctx) {
    ctx.progress(0.25, { total: 1, message: 'a quarter' })
    yield 'a'
    yield 'b'
    ctx.progress(0.5, { total: 1, remaining: '3s', partial: { found: 2 } })
    yield 'c'
  })
  server.tool('plain', {}, () => 'all at once')
  return {
    server,
    effects,
    stopped,
    allow: steps => {
      allowed = steps
      news.tell()
    },
    done: async count => {
      while (effects.length < count) await news.heard()
    },
    stop: async () => {
      while (stopped.length === 0) await news.heard()
    },
    speak: (revision, peer = {}) =>
      speak(server, revision, {
        ...peer,
        capabilities: { extensions: { [streamingExtension]: {}, 'dev.vivarium/problem': {} }, ...peer.capabilities },
      }),
  }
}

function signalOf() {
  let next = Promise.withResolvers<void>()
  return {
    heard: (): Promise<void> => next.promise,
    tell: (): void => {
      next.resolve()
      next = Promise.withResolvers()
    },
  }
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((_resolve, reject) => {
    if (signal.aborted) reject(signal.reason)
    signal.addEventListener('abort', () => reject(signal.reason), { once: true })
  })
}

export function call(name: string, args: Frame = {}, token: string | number | undefined = 'p', resume?: WireChunk): Frame {
  const meta = {
    ...(token === undefined ? {} : { progressToken: token }),
    ...(resume === undefined
      ? {}
      : {
          [streamingExtension]: {
            resume: { operation_id: resume.operation_id, checkpoint_token: resume.checkpoint_token },
          },
        }),
  }
  return { name, arguments: args, _meta: meta }
}

/** What a notification says of streams; undefined where it says nothing. */
export function streamingOf(frame: Frame): Frame | undefined {
  const { method, params } = frame as { method?: string; params?: Frame }
  if (method !== 'notifications/progress') return undefined
  return ((params?.['_meta'] ?? {}) as Frame)[streamingExtension] as Frame | undefined
}

export function chunkOf(frame: Frame): WireChunk | undefined {
  const said = streamingOf(frame)
  if (said?.['type'] !== 'stream_chunk') return undefined
  expectFits(said, 'streaming.schema.json', 'StreamChunk')
  return said as unknown as WireChunk
}

export function chunksOf(frames: readonly Frame[]): readonly WireChunk[] {
  return frames.flatMap(frame => chunkOf(frame) ?? [])
}

/** The next chunk on a wire. */
export async function nextChunk(wire: Wire): Promise<WireChunk> {
  return chunkOf(await wire.next(frame => chunkOf(frame) !== undefined)) as WireChunk
}

export function progressOf(frames: readonly Frame[]): readonly Frame[] {
  return frames.filter(({ method }) => method === 'notifications/progress').map(({ params }) => params as Frame)
}
