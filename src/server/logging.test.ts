import { execFile } from 'node:child_process'
import diagnostics from 'node:diagnostics_channel'
import type { EventEmitter } from 'node:events'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { describe, expect, it, onTestFinished } from 'vitest'
import { z } from 'zod'
import { connectInMemory } from '../testing/index.ts'
import { createLog, createServer, type LogOptions, type ServerOptions } from './index.ts'

async function records(
  level: NonNullable<LogOptions['level']>,
  options: Partial<ServerOptions> = {},
): Promise<Record<string, unknown>[]> {
  const lines: string[] = []
  const log = createLog({ level, format: 'json', write: line => lines.push(line) })
  const server = createServer({ name: 'a', version: '1', log, ...options })
  server.tool('works', {}, () => 'x')
  server.tool('breaks', {}, () => {
    throw new Error('on the way')
  })
  const mcp = await connectInMemory(server, { revision: '2025-11-25' })
  await mcp.callTool('works')
  await mcp.callTool('breaks')
  await mcp.close()
  return lines.map(line => JSON.parse(line))
}

describe('the log of a server', () => {
  it('tells of every call at debug', async () => {
    const calls = (await records('debug')).filter(({ event }) => event === 'call')
    const common = {
      level: 'debug',
      server: 'a',
      method: 'tools/call',
      revision: '2025-11-25',
      carrier: 'memory',
      ms: expect.any(Number),
    }
    expect(calls).toEqual(expect.arrayContaining([expect.objectContaining({ ...common, name: 'works', failed: false })]))
  })

  it('tells mistakes of the author, with the frames of the stack, at error', async () => {
    expect(await records('error')).toMatchObject([
      {
        event: 'tool-failed',
        tool: 'breaks',
        error: { message: 'on the way', stack: expect.arrayContaining([expect.stringContaining('logging.test.ts')]) },
      },
    ])
  })

  it('and the raw trace are told the same', async () => {
    const raw: unknown[] = []
    const written = await records('error', { onTrace: (event, detail) => raw.push([event, detail]) })
    const told = { tool: 'breaks', error: new Error('on the way'), correlationId: expect.any(String) }
    expect(raw).toContainEqual(['tool-failed', told])
    expect(written).toHaveLength(1)
  })

  it('says so when VIVARIUM_LOG names no level, and goes on', async () => {
    const program = `import { createServer } from ${JSON.stringify(join(import.meta.dirname, 'index.ts'))}
      createServer({ name: 'a', version: '1' })`
    const args = ['--disable-warning=ExperimentalWarning', '--input-type=module', '-e', program]
    const { stderr, stdout } = await promisify(execFile)(process.execPath, args, {
      env: { ...process.env, VIVARIUM_LOG: 'loud' },
    })
    expect(stderr).toContain('log-level-unknown VIVARIUM_LOG=loud')
    expect(stdout).toBe('')
  })
})

/** What a handler does once its signal says that the call was cancelled. */
const ends = {
  'throws the reason': (signal: AbortSignal) => signal.throwIfAborted(),
  'throws what Node made of it': (signal: AbortSignal) => sleep(60_000, undefined, { signal }),
  'wraps the reason': (signal: AbortSignal) => {
    throw new Error('Could not fetch the weather', { cause: signal.reason })
  },
  breaks: () => {
    throw new Error('The cleaning up went wrong')
  },
} as const

/** The lines of a server whose handler ends like this after its call was cancelled, or its session ended. */
async function afterStop(
  how: keyof typeof ends,
  level: NonNullable<LogOptions['level']>,
  stop: 'cancel' | 'close',
  kind: 'tool' | 'resource',
) {
  const lines: string[] = []
  const log = createLog({ level, format: 'json', write: line => lines.push(line) })
  const server = createServer({ name: 'a', version: '1', log })
  const [begun, ended] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const work = async ({ signal }: { signal: AbortSignal }): Promise<string> => {
    const stopped = new Promise(resolve => signal.addEventListener('abort', resolve))
    begun.resolve()
    await stopped
    try {
      await ends[how](signal)
      return 'x'
    } finally {
      ended.resolve()
    }
  }
  server.tool('works', { input: z.object({}) }, (_, ctx) => work(ctx))
  server.resource('works://one', { name: 'one' }, (_, ctx) => work(ctx))
  const mcp = await connectInMemory(server, { revision: '2025-11-25' })
  const leave = new AbortController()
  const options = { signal: leave.signal }
  const called = kind === 'tool' ? mcp.callTool('works', {}, options) : mcp.readResource('works://one', options)
  const refused = expect(called).rejects.toThrow()
  await begun.promise
  if (stop === 'cancel') leave.abort()
  else await mcp.close()
  await Promise.all([refused, ended.promise])
  await mcp.close()
  await server.close()
  return lines.map((line): Record<string, unknown> => JSON.parse(line))
}

describe('a handler that rejects because its call was cancelled', () => {
  const quiet = ['throws the reason', 'throws what Node made of it', 'wraps the reason'] as const

  it.each(quiet)('is no mistake of the author where it %s', async how => {
    for (const stop of ['cancel', 'close'] as const)
      for (const kind of ['tool', 'resource'] as const) expect(await afterStop(how, 'error', stop, kind)).toEqual([])
  })

  it('is told at debug as a call that was cancelled', async () => {
    const told = await afterStop('throws the reason', 'debug', 'cancel', 'tool')
    expect(told).toContainEqual(expect.objectContaining({ level: 'debug', event: 'call', name: 'works', cancelled: true }))
    expect(told.filter(({ event }) => event === 'tool-failed')).toEqual([])
  })

  it('is told at error where it failed for a reason of its own', async () => {
    for (const stop of ['cancel', 'close'] as const)
      expect(await afterStop('breaks', 'error', stop, 'tool')).toMatchObject([
        { event: 'tool-failed', error: { message: 'The cleaning up went wrong' } },
      ])
  })
})

it('a failure that concerns no single request reaches onError', async () => {
  const sockets = diagnostics.channel('net.server.socket')
  const fail = (message: unknown): void => {
    const { server: listener } = (message as { socket: { server: EventEmitter } }).socket
    listener.emit('error', new Error('too many open files'))
  }
  sockets.subscribe(fail)
  onTestFinished(() => void sockets.unsubscribe(fail))
  const told: string[] = []
  const server = createServer({ name: 'a', version: '1', log: 'silent' })
  onTestFinished(() => server.close())
  const { url } = await server.listen({ onError: error => told.push(error.message) })
  await fetch(url)
  expect(told).toEqual(['too many open files'])
})
