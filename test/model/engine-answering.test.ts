/** The engine that answers, against a model: ids may be in flight twice, cancels hit what they name, limits hold, and each request is answered once. */
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { preloadEngine } from '../../src/core/schema/engine.ts'
import { createServer, jsonSchema } from '../../src/server/index.ts'
import { type FakeClock, fakeClock } from '../../src/testing/index.ts'
import { memoryPair } from '../../src/transports/memory.ts'
import { helloParams } from '../spec/wire.ts'
import { command, modelRuns, modelTimeoutMs, playModel, turn } from './runs.ts'

// Loaded by the first check otherwise, which would then take longer than all others.
await preloadEngine()

const most = 4

interface Job {
  readonly job: number
  readonly id: string | number
  readonly token: string | number | undefined
  progress: number
  running: boolean
}

class Model {
  open = true
  readonly jobs: Job[] = []
  /** What the client must have heard, in order. */
  readonly heard: string[] = []
  readonly aborted = new Set<number>()

  get running(): Job[] {
    return this.jobs.filter(({ running }) => running)
  }
}

interface Real {
  readonly clock: FakeClock
  readonly heard: string[]
  readonly jobs: Map<number, { resolve(text: string): void; reject(error: Error): void; report(value: number): void }>
  readonly aborted: Set<number>
  say(frame: object): void
  hangUp(): Promise<void>
}

async function start(): Promise<{ model: Model; real: Real; end: () => Promise<void> }> {
  const clock = fakeClock()
  const real: Real = { clock, heard: [], jobs: new Map(), aborted: new Set(), say: () => {}, hangUp: async () => {} }
  const server = createServer({
    name: 's',
    version: '1',
    clock,
    limits: { callsPerConversation: most, rates: false },
    onTrace: () => {},
  })
  server.tool('job', { input: jsonSchema<{ job: number }>({ type: 'object' }) }, ({ job }, ctx) => {
    const { promise, resolve, reject } = Promise.withResolvers<string>()
    ctx.signal.addEventListener('abort', () => real.aborted.add(job))
    real.jobs.set(job, { resolve, reject, report: value => ctx.progress(value) })
    return promise
  })
  const [near, far] = memoryPair({ clock })
  server.acceptor.accept(far)
  const say = (frame: object): void => {
    Promise.resolve(near.send(JSON.stringify({ jsonrpc: '2.0', ...frame }))).catch(() => {})
  }
  await near.start({ frame: text => real.heard.push(told(JSON.parse(text))), fault: () => {}, closed: () => {} })
  say({ id: 'hello', method: 'initialize', params: helloParams('2025-11-25') })
  say({ method: 'notifications/initialized' })
  await turn()
  real.heard.length = 0
  Object.assign(real, { say, hangUp: () => near.close() })
  return { model: new Model(), real, end: () => server.close() }
}

/** A frame in few words. */
function told(frame: Record<string, unknown>): string {
  const { id, method, params, result, error } = frame as {
    id?: unknown
    method?: string
    params?: Record<string, unknown>
    result?: { content?: { text: string }[]; isError?: boolean }
    error?: { code: number }
  }
  if (method !== undefined) return `${method} ${JSON.stringify(params?.['progressToken'])} ${String(params?.['progress'])}`
  if (error !== undefined) return `${JSON.stringify(id) ?? 'nobody'} error`
  return `${JSON.stringify(id)} ${result?.content?.[0]?.text ?? 'ok'}`
}

async function compare(model: Model, real: Real): Promise<void> {
  await turn()
  await turn()
  expect(real.heard).toEqual(model.heard)
  expect([...real.aborted].sort()).toEqual([...model.aborted].sort())
}

type Command = fc.AsyncCommand<Model, Real>
/** Few, so that they meet; a number and its text are two ids. */
const ids = fc.constantFrom<string | number>(1, 2, '1', '', -3)
const which = fc.nat({ max: 4 })
const jobAt = (model: Model, back: number): Job | undefined => model.jobs.at(-1 - back)

const ask = fc.tuple(ids, fc.option(ids, { nil: undefined })).map<Command>(([id, token]) =>
  command(`ask ${JSON.stringify(id)} ${JSON.stringify(token)}`, async (model, real) => {
    const job = model.jobs.length
    const admitted = model.open && model.running.length < most
    model.jobs.push({ job, id, token, progress: Number.NEGATIVE_INFINITY, running: admitted })
    if (model.open && !admitted) model.heard.push(`${JSON.stringify(id)} error`)
    const meta = token === undefined ? {} : { _meta: { progressToken: token } }
    real.say({ id, method: 'tools/call', params: { name: 'job', arguments: { job }, ...meta } })
    await compare(model, real)
    expect(real.jobs.has(job)).toBe(admitted)
  }),
)

const finish = fc.tuple(which, fc.boolean()).map<Command>(([back, well]) =>
  command(`${well ? 'finish' : 'fail'} ${back}`, async (model, real) => {
    const job = jobAt(model, back)
    if (job?.running === true) model.heard.push(`${JSON.stringify(job.id)} ${well ? `did ${job.job}` : `failed ${job.job}`}`)
    if (job !== undefined) job.running = false
    const made = real.jobs.get(job?.job ?? -1)
    if (well) made?.resolve(`did ${job?.job}`)
    else made?.reject(new Error(`failed ${job?.job}`))
    await compare(model, real)
  }),
)

const report = fc.tuple(which, fc.integer({ min: 0, max: 5 })).map<Command>(([back, value]) =>
  command(`report ${back} ${value}`, async (model, real) => {
    const job = jobAt(model, back)
    if (job?.running === true && value > job.progress) {
      job.progress = value
      if (job.token !== undefined) model.heard.push(`notifications/progress ${JSON.stringify(job.token)} ${value}`)
    }
    real.jobs.get(job?.job ?? -1)?.report(value)
    // Progress may be held back to be merged with what follows; its time comes.
    real.clock.advance(1_000)
    await compare(model, real)
  }),
)

const cancel = ids.map<Command>(id =>
  command(
    `cancel ${JSON.stringify(id)}`,
    async (model, real) => {
      for (const job of model.running) {
        if (job.id !== id) continue
        job.running = false
        model.aborted.add(job.job)
      }
      real.say({ method: 'notifications/cancelled', params: { requestId: id } })
      await compare(model, real)
    },
    model => model.open,
  ),
)

const ping = ids.map<Command>(id =>
  command(`ping ${JSON.stringify(id)}`, async (model, real) => {
    if (model.open) model.heard.push(`${JSON.stringify(id)} ok`)
    real.say({ id, method: 'ping' })
    await compare(model, real)
  }),
)

const nonsense = fc
  .constantFrom<object>({ id: {}, method: 'ping' }, { id: null, method: 'ping' }, { id: 1.5, method: 'x' })
  .map<Command>(frame =>
    command(`say ${JSON.stringify(frame)}`, async (model, real) => {
      if (model.open) model.heard.push('nobody error')
      real.say(frame)
      await compare(model, real)
    }),
  )

const answerToNothing = ids.map<Command>(id =>
  command(`answer ${JSON.stringify(id)}`, async (model, real) => {
    real.say({ id, result: {} })
    await compare(model, real)
  }),
)

const hangUp = fc.constant<Command>(
  command(
    'hang up',
    async (model, real) => {
      for (const job of model.running) {
        job.running = false
        model.aborted.add(job.job)
      }
      model.open = false
      await real.hangUp()
      await compare(model, real)
    },
    // Not at once, or most plays would be over before they began.
    model => model.jobs.length > 5,
  ),
)

it(`holds in ${modelRuns} plays`, { timeout: modelTimeoutMs }, () =>
  playModel<Model, Real>([ask, ask, ask, finish, finish, report, report, cancel, ping, nonsense, answerToNothing, hangUp], start),
)
