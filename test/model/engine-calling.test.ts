/** The engine that asks, against a model: whatever the order of answers, progress, cancels, deadlines and the end, each call ends once, and rightly. */
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { type Client, connect } from '../../src/client/index.ts'
import { isRecord } from '../../src/jsonrpc/message.ts'
import { type FakeClock, fakeClock } from '../../src/testing/index.ts'
import { memoryPair } from '../../src/transports/memory.ts'
import { command, modelRuns, modelTimeoutMs, playModel, turn } from './runs.ts'

/** Deadlines fall on half seconds, steps of time on whole ones: how late a sweep may be does not show. */
const timeoutMs = 4_500
const totalMs = 9_500

interface Call {
  readonly id: number
  state: string
  deadline: number
  readonly latest: number
  readonly progress: number[]
  cancelTold: boolean
}

class Model {
  now = 0
  open = true
  readonly calls: Call[] = []

  get waiting(): Call[] {
    return this.calls.filter(call => call.state === 'waiting')
  }

  pass(ms: number): void {
    this.now += ms
    for (const call of this.waiting) {
      if (call.deadline > this.now) continue
      call.state = 'timeout'
      call.cancelTold = true
    }
  }
}

interface Made {
  state: string
  readonly progress: number[]
  readonly abort: AbortController
}

interface Real {
  readonly client: Client
  readonly clock: FakeClock
  readonly calls: Made[]
  readonly heard: Record<string, unknown>[]
  /** Ids of the requests that the server has heard of these calls. */
  readonly ids: number[]
  say(frame: object): void
  hangUp(): Promise<void>
}

async function start(): Promise<{ model: Model; real: Real; end: () => Promise<void> }> {
  const clock = fakeClock()
  const [near, far] = memoryPair({ clock })
  const heard: Record<string, unknown>[] = []
  const ids: number[] = []
  const say = (frame: object): void => {
    Promise.resolve(far.send(JSON.stringify({ jsonrpc: '2.0', ...frame }))).catch(() => {})
  }
  await far.start({
    frame: text => {
      const frame = JSON.parse(text) as Record<string, unknown>
      if (frame['method'] === 'initialize') {
        const result = { protocolVersion: '2025-11-25', capabilities: { tools: {} }, serverInfo: { name: 's', version: '1' } }
        say({ id: frame['id'], result })
      } else if (frame['method'] === 'tools/call') ids.push(frame['id'] as number)
      heard.push(frame)
    },
    fault: () => {},
    closed: () => {},
  })
  const limits = { callTotalMs: totalMs }
  const client = await connect(near, { clock, revisions: ['2025-11-25'], timeout: timeoutMs, limits })
  const real = { client, clock, heard, ids, calls: [], say, hangUp: () => far.close() }
  return { model: new Model(), real, end: () => client.close() }
}

function outcomeOf(error: unknown): string {
  if (!(error instanceof Error)) return 'aborted'
  if (error.name === 'ConnectionError') return 'lost'
  const { kind, code } = error as { kind?: string; code?: number }
  return kind === 'timeout' ? 'timeout' : kind === 'remote' ? `error ${code}` : `${error.name} ${kind ?? error.message}`
}

/** All that can be seen must be as the model has it. */
async function compare(model: Model, real: Real): Promise<void> {
  await turn()
  await turn()
  expect(real.calls.map(({ state, progress }) => ({ state, progress }))).toEqual(
    model.calls.map(({ state, progress }) => ({ state, progress })),
  )
  const cancelled = real.heard
    .filter(frame => frame['method'] === 'notifications/cancelled')
    .map(({ params }) => (isRecord(params) ? params['requestId'] : undefined))
  expect(cancelled.sort()).toEqual(
    model.calls
      .filter(call => call.cancelTold)
      .map(call => call.id)
      .sort(),
  )
}

type Command = fc.AsyncCommand<Model, Real>
const which = fc.nat({ max: 3 })

const ask = fc.constant<Command>(
  command('ask', async (model, real) => {
    const made: Made = { state: 'waiting', progress: [], abort: new AbortController() }
    real.calls.push(made)
    const options = {
      signal: made.abort.signal,
      onProgress: ({ progress }: { progress: number }) => made.progress.push(progress),
    }
    real.client.callTool('t', {}, options).then(
      out => {
        made.state = made.state === 'waiting' ? `result ${out.text}` : `${made.state}, then a result`
      },
      error => {
        made.state = made.state === 'waiting' ? outcomeOf(error) : `${made.state}, then a failure`
      },
    )
    await turn()
    const id = model.open ? (real.ids.at(-1) as number) : -1
    if (model.open) expect(real.ids.length).toBe(model.calls.filter(call => call.id !== -1).length + 1)
    model.calls.push({
      id,
      state: model.open ? 'waiting' : 'lost',
      deadline: model.now + timeoutMs,
      latest: model.now + totalMs,
      progress: [],
      cancelTold: false,
    })
    await compare(model, real)
  }),
)

/** The call so many ago, whether it still waits or not: an answer may come late, twice, or to nobody. */
const callAt = (model: Model, back: number): Call | undefined => model.calls.at(-1 - back)

const answer = which.map<Command>(back =>
  command(`answer ${back}`, async (model, real) => {
    const call = callAt(model, back)
    if (call?.state === 'waiting') call.state = `result of ${call.id}`
    real.say({ id: call?.id ?? 4_711, result: { content: [{ type: 'text', text: `of ${call?.id}` }] } })
    await compare(model, real)
  }),
)

const refuse = which.map<Command>(back =>
  command(`refuse ${back}`, async (model, real) => {
    const call = callAt(model, back)
    if (call?.state === 'waiting') call.state = 'error 7'
    real.say({ id: call?.id ?? 4_711, error: { code: 7, message: 'no' } })
    await compare(model, real)
  }),
)

/** Under an id that is nearly the right one: it is no answer. */
const misanswer = fc
  .tuple(
    which,
    fc.constantFrom<(id: number) => unknown>(
      String,
      id => id + 0.5,
      () => null,
      id => [id],
      id => id + 1_000,
    ),
  )
  .map<Command>(([back, bend]) =>
    command(`misanswer ${back}`, async (model, real) => {
      real.say({ id: bend(callAt(model, back)?.id ?? 1), result: { content: [] } })
      await compare(model, real)
    }),
  )

const progress = fc.tuple(which, fc.integer({ min: 0, max: 3 })).map<Command>(([back, value]) =>
  command(`progress ${back} ${value}`, async (model, real) => {
    const call = callAt(model, back)
    if (model.open && call?.state === 'waiting' && value > (call.progress.at(-1) ?? Number.NEGATIVE_INFINITY)) {
      call.progress.push(value)
      call.deadline = Math.min(model.now + timeoutMs, call.latest)
    }
    real.say({ method: 'notifications/progress', params: { progressToken: call?.id ?? 4_711, progress: value } })
    await compare(model, real)
  }),
)

const abort = which.map<Command>(back =>
  command(`abort ${back}`, async (model, real) => {
    const call = callAt(model, back)
    if (call?.state === 'waiting') {
      call.state = 'aborted'
      call.cancelTold = true
    }
    real.calls.at(-1 - back)?.abort.abort('enough')
    await compare(model, real)
  }),
)

const pass = fc.integer({ min: 1, max: 4 }).map<Command>(seconds =>
  command(`pass ${seconds} s`, async (model, real) => {
    // Second by second: progress between two steps would otherwise come late.
    for (let second = 0; second < seconds; second++) {
      model.pass(1_000)
      real.clock.advance(1_000)
    }
    await compare(model, real)
  }),
)

const hangUp = fc.constant<Command>(
  command(
    'hang up',
    async (model, real) => {
      model.open = false
      for (const call of model.waiting) call.state = 'lost'
      await real.hangUp()
      await compare(model, real)
    },
    // Not at once, or most plays would be over before they began.
    model => model.calls.length > 5,
  ),
)

/** Signs of life keep a call going, but not beyond its total. */
const climb = fc.tuple(which, fc.integer({ min: 1, max: 4 })).map<Command>(([back, seconds]) =>
  command(`climb ${back}, then ${seconds} s`, async (model, real) => {
    const call = callAt(model, back)
    const value = (call?.progress.at(-1) ?? 0) + 1
    if (model.open && call?.state === 'waiting') {
      call.progress.push(value)
      call.deadline = Math.min(model.now + timeoutMs, call.latest)
    }
    real.say({ method: 'notifications/progress', params: { progressToken: call?.id ?? 4_711, progress: value } })
    await turn()
    model.pass(1_000 * seconds)
    real.clock.advance(1_000 * seconds)
    await compare(model, real)
  }),
)

it(`holds in ${modelRuns} plays`, { timeout: modelTimeoutMs }, () =>
  playModel<Model, Real>(
    [ask, ask, ask, answer, answer, refuse, misanswer, progress, climb, climb, climb, abort, pass, hangUp],
    start,
  ),
)
