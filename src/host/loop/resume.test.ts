import { afterEach, describe, expect, test } from 'vitest'
import { openWorld, type World } from '../../../test/hosting/loop-world.ts'
import { createServer, type Server } from '../../server/index.ts'
import { memoryStore } from '../../stores/memory.ts'
import { scripted } from '../models/scripted.ts'
import type { TurnCall } from './turn.ts'

const worlds: World[] = []
afterEach(async () => {
  for (const world of worlds.splice(0)) await world.close()
})

interface Slow {
  readonly server: Server
  /** How often the effect was had. */
  count: number
  readonly begun: Promise<void>
}

/** A server with a tool that, the first time it is called, has its effect and does not come back. */
function slow(kind: 'plain' | 'readOnly' | 'idempotent' | 'undoable'): Slow {
  const begun = Promise.withResolvers<void>()
  const server = createServer({
    name: 'slow',
    version: '1.0.0',
    log: 'silent',
    ...(kind === 'undoable' ? { store: 'memory:' } : {}),
  })
  const world: Slow = { server, count: 0, begun: begun.promise }
  const once = new Set<string>()
  server.tool(
    'work',
    {
      annotations: { readOnlyHint: kind === 'readOnly', idempotentHint: kind === 'idempotent' },
      ...(kind === 'undoable' && { undo: { tool: 'unwork', arguments: () => ({}) } }),
    },
    async (_, ctx) => {
      world.count++
      if (once.has(kind)) return 'Worked'
      once.add(kind)
      begun.resolve()
      return new Promise<string>((_, reject) =>
        ctx.signal.addEventListener('abort', () => reject(ctx.signal.reason), { once: true }),
      )
    },
  )
  server.tool('unwork', { idempotent: true }, () => {
    world.count--
    return 'Unworked'
  })
  return world
}

/** Cuts a turn off amid its call, then goes on with it as another host would. */
async function cutOff(world: Slow): Promise<TurnCall | undefined> {
  const store = memoryStore()
  const first = await openWorld({ store, model: scripted([{ calls: [{ name: 'work' }] }]), servers: { slow: world.server } })
  const turn = await first.loop.conversation('c').send('Work')
  await world.begun
  await first.close()
  await turn.done.catch(() => undefined)
  const second = await openWorld({ store, model: scripted(['Done.']), servers: { slow: world.server } })
  worlds.push(second)
  const resumed = await second.loop.conversation('c').resume()
  await resumed?.done
  return resumed?.calls[0]
}

describe('a call that was under way when the host was stopped', () => {
  test('is made again where it only reads', async () => {
    const world = slow('readOnly')
    expect((await cutOff(world))?.outcome).toMatchObject({ status: 'done' })
    expect(world.count).toBe(2)
  })

  test('is made again where that does no harm', async () => {
    expect((await cutOff(slow('idempotent')))?.outcome).toMatchObject({ status: 'done' })
  })

  test('is told as unknown where nobody can say, and is not made again', async () => {
    const world = slow('plain')
    expect((await cutOff(world))?.outcome).toMatchObject({ status: 'unknown' })
    expect(world.count).toBe(1)
  })

  test('that its server has taken back is told as not done', async () => {
    const world = slow('undoable')
    expect((await cutOff(world))?.outcome).toMatchObject({ status: 'failed', rolledBack: true })
    expect(world.count).toBe(0)
  })
})
