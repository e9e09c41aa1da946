/** The kit is for servers that do not work: whatever one does at whatever moment, there is one result for each scenario and no crash. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Started, startReference } from '../../examples/reference/start.ts'
import { type JudgeOptions, type JudgeTarget, judge, type Report, type Scenario, scenarios } from '../../src/conformance/index.ts'
import { scenariosFor } from '../../src/conformance/scenario.ts'
import { seeded } from '../../src/core/clock.ts'
import { unrulyAcceptor, unrulyProgram, unrulyProxy } from './unruly.ts'

const SCENARIO_MS = 300
/** Not for the verdict, but against a hang: a run is some hundred scenarios of at most this long, and the survey. */
const BOUND_MS = 100_000

const unheard: unknown[] = []
const hear = (reason: unknown): void => void unheard.push(reason)
beforeAll(() => void process.on('unhandledRejection', hear).on('uncaughtException', hear))
afterAll(async () => {
  // What the last scenarios have left behind may still go wrong.
  await new Promise(resolve => setTimeout(resolve, 100))
  process.off('unhandledRejection', hear).off('uncaughtException', hear)
  expect(unheard).toEqual([])
})

/** What says that the server has gone, not that the kit is wrong. */
const gone = /ECONNREFUSED|could no longer be reached|could not be reached|cannot be judged|did not list what it offers in time/

function expectWhole(report: Report, chosen: readonly Scenario[], options: JudgeOptions): void {
  for (const revision of options.revisions ?? []) {
    const results = report.results.filter(one => one.revision === revision)
    const [carrier] = results.map(one => one.carrier)
    if (results.some(({ fault }) => fault !== undefined) || carrier === undefined) continue
    const planned = scenariosFor('server', { revision, carrier }, chosen).map(({ id }) => id)
    expect(results.map(({ test_id }) => test_id)).toEqual(planned)
  }
  const faults = report.results.filter(({ status, message }) => status === 'error' && !gone.test(message))
  expect(faults.map(({ test_id, message }) => [test_id, message])).toEqual([])
}

async function judged(target: JudgeTarget, chosen: readonly Scenario[], more: JudgeOptions = {}): Promise<Report> {
  const options: JudgeOptions = {
    scenarios: chosen,
    allowWrites: true,
    scenarioMs: SCENARIO_MS,
    revisions: ['2025-11-25', '2026-07-28'],
    ...more,
  }
  const report = await judge(target, options)
  expectWhole(report, chosen, options)
  return report
}

describe.concurrent('a server that is all right at first', () => {
  let started: Started
  beforeAll(async () => {
    started = await startReference()
  })
  afterAll(() => started.server.close())

  /** Each scenario in one of them. */
  const rounds = [1, 2, 3, 4]
  it.each(rounds)(
    'round %i: hangs, closes and garbles at random moments in memory, and the kit stands',
    { timeout: BOUND_MS },
    async seed => {
      const chosen = scenarios.filter((_, at) => at % rounds.length === seed - 1)
      const report = await judged({ acceptor: unrulyAcceptor(started.server.acceptor, seeded(seed), 2) }, chosen)
      expect(report.summary.failed, JSON.stringify(report.summary)).toBeGreaterThan(10)
    },
  )

  it.each([11, 12])(
    'seed %i: the same over HTTP, with answers cut off and what is no HTTP',
    { timeout: BOUND_MS },
    async seed => {
      const chosen = scenarios.filter((_, at) => at % 4 === seed % 4)
      await using proxy = await unrulyProxy(started.url, seeded(seed), 60)
      const report = await judged(proxy.url, chosen)
      expect(report.summary.failed).toBeGreaterThan(5)
    },
  )
})

describe.concurrent('a server as a process', () => {
  it.each([0, 1, 2, 3, 4, 5])(
    'fate %i: it dies, hangs or babbles after some messages, and the kit stands',
    { timeout: BOUND_MS },
    async seed => {
      const chosen = scenarios.filter(({ id }) => /^base\/(tools|lifecycle)/.test(id))
      const subject = { command: process.execPath, args: ['-e', unrulyProgram, String(seed)] }
      const report = await judged(subject, chosen, { revisions: ['2025-11-25'], scenarioMs: 600 })
      expect(report.summary.failed + report.summary.error).toBeGreaterThan(0)
    },
  )
})

describe('a server that has gone', () => {
  it('is not waited for by every scenario: after five that could not open a connection the others are errors at once', async () => {
    const { server } = await startReference()
    let opened = 0
    const acceptor = {
      ...server.acceptor,
      accept: (connection: Parameters<typeof server.acceptor.accept>[0]) => {
        if (opened++ === 0) server.acceptor.accept(connection)
        else void connection.start({ frame() {}, fault() {}, closed() {} })
      },
    }
    const chosen = scenarios.filter(({ id }) => id.startsWith('base/tools/'))
    const report = await judged({ acceptor }, chosen, { revisions: ['2025-11-25'] })
    await server.close()
    const late = report.results.filter(({ message }) => message.includes('could no longer be reached'))
    expect(late.length).toBeGreaterThan(3)
    expect(late.every(({ status }) => status === 'error')).toBe(true)
  })
})

describe('a mistake of the kit', () => {
  const own = (id: string, more: Partial<Scenario>): Scenario => ({
    id: `own/${id}`,
    role: 'server',
    title: id,
    proves: [],
    revisions: ['2025-11-25'],
    needs: () => undefined,
    run: async () => {},
    ...more,
  })
  const mistake = (): never => {
    throw new TypeError('a mistake of ours')
  }
  const wrong: readonly Scenario[] = [
    own('needs', { needs: mistake }),
    own('run', { run: mistake }),
    own('rejects', { run: () => Promise.reject(new TypeError('a mistake of ours')) }),
    own('closing', { run: async bench => bench.onClose(mistake) }),
    own('matching', {
      run: async bench => {
        const peer = await bench.open()
        const found = peer.next(mistake, 200)
        await peer.request('tools/list')
        await found
      },
    }),
    own('answering', {
      run: async bench => {
        const peer = await bench.open({ capabilities: { elicitation: {} } })
        peer.onRequest('elicitation/create', mistake)
        await peer.request('tools/call', { name: 'test_elicitation', arguments: { message: 'Who?' } })
      },
    }),
  ]

  it('is an error wherever it is made, and never a failure of the server or the end of the run', async () => {
    const { server } = await startReference()
    const fine = own('fine', { run: async bench => void (await bench.open()) })
    const report = await judge(server, { scenarios: [...wrong, fine], revisions: ['2025-11-25'], allowWrites: true })
    await server.close()
    expect(report.results.map(({ test_id, status, message }) => [test_id, status, message])).toEqual([
      ...wrong.map(({ id }) => [id, 'error', 'a mistake of ours']),
      ['own/fine', 'passed', ''],
    ])
  })

  it('what a scenario left under way may go wrong after it has failed', async () => {
    const { server } = await startReference()
    const left = own('left', {
      run: async bench => {
        const peer = await bench.open()
        void peer.next('never', 10)
        void peer.converse('no/such', {}, { ms: 10 })
        void peer.settled()
        void peer.request('tools/list', {}, { ms: 1 })
        bench.onClose(() => peer.close())
        bench.fail('it failed meanwhile')
      },
    })
    const report = await judge(server, { scenarios: [left], revisions: ['2025-11-25'] })
    await server.close()
    expect(report.results).toMatchObject([{ status: 'failed', message: 'it failed meanwhile' }])
  })

  it('a run that is stopped has a result for each scenario all the same', async () => {
    const { server } = await startReference()
    const stop = new AbortController()
    const stopping = own('stops', {
      run: () => {
        stop.abort()
        return new Promise<void>(() => {})
      },
    })
    const report = await judge(server, {
      scenarios: [own('first', {}), stopping, own('later', {})],
      revisions: ['2025-11-25'],
      signal: stop.signal,
    })
    await server.close()
    expect(report.results.map(({ status }) => status)).toEqual(['passed', 'skipped', 'skipped'])
  })
})
