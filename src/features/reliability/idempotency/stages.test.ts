import { afterEach, describe, expect, it } from 'vitest'
import { call, codeOf, replayOf, revisions } from '../../../../test/reliability/keyed-world.ts'
import { speak, textOf } from '../../../../test/spec/wire.ts'
import { realClock } from '../../../core/clock.ts'
import { createSeal } from '../../../core/handle.ts'
import { createJournal } from '../../../core/journal/journal.ts'
import { problem, problemOf } from '../../../core/problem.ts'
import { Engine } from '../../../engine/engine.ts'
import { serverLimits } from '../../../engine/limits.ts'
import { createPaging } from '../../../engine/paging.ts'
import { type Port, Ports } from '../../../engine/ports.ts'
import type { Stage } from '../../../engine/stages.ts'
import { SupportedRevisions } from '../../../revisions/index.ts'
import { memoryStore } from '../../../stores/index.ts'
import { lifecycleServer } from '../../mcp/lifecycle/server.ts'
import { toolsPort } from '../../mcp/tools/messages.ts'
import { toolsServer } from '../../mcp/tools/server.ts'
import { problemPort } from '../problem/messages.ts'
import { problemMeta, problemServer } from '../problem/server.ts'
import { idempotencyServer } from './server.ts'

const engines: Engine[] = []
afterEach(() => Promise.all(engines.splice(0).map(engine => engine.close())))

/** A server with a tool that counts its runs, and a layer on each stage that is told of every call and may refuse it. */
function serve() {
  const passed: Stage[] = []
  const refusing = new Map<Stage, () => unknown>()
  const layers = (['decide', 'oblige', 'budget', 'record'] as const).map(stage => ({
    stage,
    methods: ['tools/call'],
    run: (_: unknown, next: () => unknown) => {
      passed.push(stage)
      return refusing.get(stage)?.() ?? next()
    },
  }))
  const cache = { ttlMs: 0, cacheScope: 'private' as const }
  const paging = createPaging({ seal: createSeal({ clock: realClock }), pageSize: 10, cache, cursorMs: 1, now: Date.now })
  const tools = toolsServer({ paging, context: () => ({}), failed: () => {} })
  tools.extend({ explain: problemMeta })
  let runs = 0
  tools.catalog.add(tools.compile('act', {}, () => `run ${++runs}`))
  const ports = new Ports()
  ports.provide(toolsPort as Port<unknown>, { facts: () => undefined })
  ports.provide(problemPort, { meta: problemMeta, of: problemOf })
  const journal = createJournal({ store: memoryStore(), clock: realClock })
  const idempotency = idempotencyServer({
    journal: async () => journal,
    shared: true,
    clock: realClock,
    trace: () => {},
    askMs: 60_000,
    port: ports.get.bind(ports),
  })
  const engine = new Engine({
    role: 'server',
    info: { name: 'stages', version: '1' },
    spoken: new SupportedRevisions(),
    limits: serverLimits,
    sides: [lifecycleServer({ cache }), tools.side, problemServer(), idempotency, { layers }],
  })
  engines.push(engine)
  return { acceptor: engine, passed, refusing, runs: () => runs }
}

const capabilities = { extensions: { 'dev.vivarium/idempotency': {}, 'dev.vivarium/problem': {} } }
const refuse = (code: string) => () => {
  throw problem(code, 'No')
}

describe.each(revisions)('the order of the stages at %s', revision => {
  it('X1, E5-10: a replay is decided upon, but not confirmed, paid for or enrolled again', async () => {
    const server = serve()
    const wire = await speak(server, revision, { capabilities })
    await wire.ask('tools/call', call('act', 'k'))
    expect(server.passed.splice(0)).toEqual(['decide', 'oblige', 'budget', 'record'])
    expect(replayOf(await wire.ask('tools/call', call('act', 'k')))['was_replay']).toBe(true)
    expect(server.passed).toEqual(['decide'])
  })

  it('E5-9, X1: who may not do it any more gets no replay', async () => {
    const server = serve()
    const wire = await speak(server, revision, { capabilities })
    await wire.ask('tools/call', call('act', 'k'))
    server.refusing.set('decide', refuse('PERMISSION_DENIED'))
    expect(codeOf(await wire.ask('tools/call', call('act', 'k')))).toBe('PERMISSION_DENIED')
  })

  it.each(['oblige', 'budget', 'record'] as const)(
    'E5-5: what is refused at %s was not done, and can be done later',
    async stage => {
      const server = serve()
      const wire = await speak(server, revision, { capabilities })
      // A permanent refusal: it is the stage that counts, not the category.
      server.refusing.set(stage, refuse('CONFIRMATION_DECLINED'))
      expect(codeOf(await wire.ask('tools/call', call('act', 'k')))).toBe('CONFIRMATION_DECLINED')
      server.refusing.set(stage, () => ({ content: [], isError: true }))
      await wire.ask('tools/call', call('act', 'k'))
      server.refusing.clear()
      expect(textOf(await wire.ask('tools/call', call('act', 'k')))).toBe('run 1')
      expect(server.runs()).toBe(1)
    },
  )
})
