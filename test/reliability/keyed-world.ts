/** For tests of idempotency: a server whose tools count what they do, and calls under keys. */
import { z } from 'zod'
import { idempotencyExtension } from '../../src/features/reliability/idempotency/messages.ts'
import type { RevisionId } from '../../src/revisions/index.ts'
import { createServer, problem, type Server, type ServerOptions } from '../../src/server/index.ts'
import { expectFits } from '../extension-schemas.ts'
import { type Frame, type PeerOptions, resultOf, speak, type Wire } from '../spec/wire.ts'

export const revisions: readonly RevisionId[] = ['2025-11-25', '2026-07-28']

export interface World {
  readonly server: Server
  /** How often each tool ran. */
  readonly runs: Map<string, number>
  /** Lets the calls of `gate` go on. */
  open(): void
  /** Resolves when so many calls stand at the gate. */
  waiting(count: number): Promise<void>
  speak(revision: RevisionId, options?: PeerOptions): Promise<Wire>
}

export function world(options: Partial<ServerOptions> = {}): World {
  const server = createServer({
    name: 'keys',
    version: '1.0.0',
    log: 'silent',
    secret: 'an only secret of at least 32 characters',
    ...options,
  })
  const runs = new Map<string, number>()
  const ran = (tool: string): number => {
    const count = (runs.get(tool) ?? 0) + 1
    runs.set(tool, count)
    return count
  }
  const gate = gateOf()
  server.tool('create', { input: z.object({ title: z.string() }) }, ({ title }) => ({ title, number: ran('create') }))
  server.tool('say', {}, () => `said ${ran('say')}`)
  server.tool('find', { output: { anyOf: [{ type: 'object' }, { type: 'null' }] } }, () => ({ found: ran('find') }))
  server.tool('gate', {}, async () => {
    const count = ran('gate')
    await gate.pass()
    return `passed ${count}`
  })
  server.tool('fail', { input: z.object({ code: z.string(), category: z.string().optional() }) }, ({ code, category }) => {
    ran('fail')
    throw problem(code, 'It failed', { category: category as 'permanent', suggestion: 'Do not' })
  })
  server.tool('break', {}, () => {
    throw new Error(`broken ${ran('break')}`)
  })
  server.tool('ask', {}, async (_, ctx) => {
    const yes = await ctx.confirm('Sure?')
    return `${yes} ${ran('ask')}`
  })
  server.tool('late', { timeout: '20ms' }, (_, ctx) => {
    ran('late')
    return new Promise<string>((_resolve, reject) => ctx.signal.addEventListener('abort', () => reject(ctx.signal.reason)))
  })
  server.tool('again', { timeout: '20ms', idempotent: true }, (_, ctx) => {
    if (ran('again') > 1) return 'done at last'
    return new Promise<string>((_resolve, reject) => ctx.signal.addEventListener('abort', () => reject(ctx.signal.reason)))
  })
  return {
    server,
    runs,
    open: gate.open,
    waiting: gate.waiting,
    speak: (revision, peer = {}) =>
      speak(server, revision, {
        ...peer,
        capabilities: {
          elicitation: {},
          ...peer.capabilities,
          extensions: { [idempotencyExtension]: {}, 'dev.vivarium/problem': {} },
        },
      }),
  }
}

function gateOf() {
  const standing: (() => void)[] = []
  const watchers: (() => void)[] = []
  let opened = false
  return {
    pass: (): Promise<void> =>
      new Promise(resolve => {
        if (opened) return resolve()
        standing.push(resolve)
        for (const look of watchers) look()
      }),
    open: (): void => {
      opened = true
      for (const go of standing.splice(0)) go()
    },
    waiting: (count: number): Promise<void> =>
      new Promise(resolve => {
        const look = (): void => {
          if (standing.length >= count) resolve()
        }
        watchers.push(look)
        look()
      }),
  }
}

export function call(name: string, key: string | undefined, args: Frame = {}, more: Frame = {}): Frame {
  const meta = key === undefined ? {} : { _meta: { [idempotencyExtension]: { idempotency_key: key, ...more } } }
  return { name, arguments: args, ...meta }
}

/** What a result says of its key. */
export function replayOf(frame: Frame): Frame {
  const found = (resultOf(frame)['_meta'] as Frame)[idempotencyExtension] as Frame
  expectFits(found, 'transactions.schema.json', 'IdempotencyResponse')
  return found
}

/** The code of the problem that a result tells of. */
export function codeOf(frame: Frame): unknown {
  const meta = resultOf(frame)['_meta'] as Frame
  return (meta['dev.vivarium/problem'] as Frame | undefined)?.['code']
}

/** The result without what differs between the first and later answers. */
export function bodyOf(frame: Frame): Frame {
  const { _meta, ...rest } = resultOf(frame)
  return rest
}
