/** The table of sessions, against a model: who may use what, what expires and what must not, and how many there may be. */
import fc from 'fast-check'
import { expect, it } from 'vitest'
import type { Caller, Lane, SendHints } from '../../src/jsonrpc/connection.ts'
import { createServer, type Server } from '../../src/server/index.ts'
import { type FakeClock, fakeClock } from '../../src/testing/index.ts'
import { helloParams } from '../spec/wire.ts'
import { command, modelRuns, modelTimeoutMs, playModel, turn } from './runs.ts'

const idleMs = 20_000
/** Between two sweeps. What was held open may be let go by so much sooner, what is idle later. */
const sweepMs = 2_000
const most = 4
const mostEach = 2

interface Session {
  readonly owner: string
  /** Undefined: it has ended, or was never opened. */
  readonly id: string
  /** When it was last used, or held open. */
  seen: number
  /** How exactly that is known. */
  slack: number
  calls: number
  listens: boolean
  ended: boolean
  /** Used since it was opened. */
  spoke: boolean
}

class Model {
  now = 0
  readonly sessions: Session[] = []

  held(session: Session): boolean {
    return session.calls > 0 || session.listens
  }

  /** No right to be gone. */
  mustLive(session: Session): boolean {
    return !session.ended && (this.held(session) || this.now - session.seen <= idleMs - session.slack)
  }

  /** No right to be there once somebody wants its place. */
  mayLive(session: Session): boolean {
    return !session.ended && (this.held(session) || this.now - session.seen <= idleMs)
  }

  /** Gives way to a new one of this owner where there is no room: `count` says how many an owner has. */
  yields(session: Session, owner: string, count: (owner: string) => number): boolean {
    if (!this.mayLive(session) || this.held(session)) return false
    if (session.owner === owner || (!session.spoke && session.owner === '')) return !session.spoke
    if ((session.owner === '') !== (owner === '')) return session.owner === ''
    return count(session.owner) > count(owner) + 1
  }

  /** Long enough for a sweep to have come by. */
  mustBeGone(session: Session): boolean {
    return session.ended || (!this.held(session) && this.now - session.seen > idleMs + sweepMs)
  }
}

interface Answer {
  readonly status: number
  readonly session: string | undefined
}

interface Real {
  readonly server: Server
  readonly clock: FakeClock
  readonly ended: Set<string>
  readonly jobs: Map<Session, (() => void)[]>
  readonly streams: Map<Session, { closed: boolean }>
}

async function start(): Promise<{ model: Model; real: Real; end: () => Promise<void> }> {
  const clock = fakeClock()
  const limits = { sessions: most, sessionsPerPrincipal: mostEach, sessionIdleMs: idleMs, rates: false as const }
  const server = createServer({ name: 's', version: '1', clock, limits, onTrace: () => {} })
  const waiting: (() => void)[] = []
  server.tool('job', {}, () => new Promise<string>(resolve => waiting.push(() => resolve('done'))))
  const ended = new Set<string>()
  server.engine.onSessionEnd(id => ended.add(id))
  const real: Real = { server, clock, ended, jobs: new Map(), streams: new Map() }
  jobsOf.set(server, waiting)
  return { model: new Model(), real, end: () => server.close() }
}

/** The calls that have begun and not ended, by their server. */
const jobsOf = new WeakMap<Server, (() => void)[]>()

function callerOf(owner: string, session?: string): Caller {
  const principal = owner === '' ? undefined : { id: owner }
  return { carrier: 'http', connection: {}, principal, header: name => (name === 'mcp-session-id' ? session : undefined) }
}

function lane(settle: (answer: Answer) => void): Lane & { closed: boolean } {
  const answer = (hints: SendHints | undefined, standard: number): void =>
    settle({ status: hints?.status ?? standard, session: hints?.headers?.['mcp-session-id'] })
  return { send: (_, hints) => answer(hints, 200), end: hints => answer(hints, 202), closed: false, onClose: () => {} }
}

function post({ server }: Real, caller: Caller, frame: object): Promise<Answer> {
  return new Promise(resolve =>
    server.acceptor.deliver(JSON.stringify({ jsonrpc: '2.0', id: 1, ...frame }), caller, lane(resolve)),
  )
}

/** What is left of each session must be within what the model allows. */
function compare(model: Model, real: Real): void {
  const live = new Set([...real.server.engine.sessions.all()].map(({ session }) => session))
  expect(live.size).toBeLessThanOrEqual(most)
  for (const session of model.sessions) {
    const lives = live.has(session.id)
    if (model.mustLive(session) && !lives) expect(session).toBe('alive')
    if (model.mustBeGone(session) && lives) expect(session).toBe('gone')
    // An end is told once it is one, and never before.
    if (real.ended.has(session.id) === lives) expect(session).toBe(lives ? 'told of while it lives' : 'told of')
    if (!lives) session.ended = true
  }
}

const fresh = { slack: 0, calls: 0, listens: false, ended: false, spoke: false }

type Command = fc.AsyncCommand<Model, Real>
const owners = fc.constantFrom('', 'ann', 'bob')
const which = fc.nat({ max: 5 })
const sessionAt = (model: Model, back: number): Session | undefined => model.sessions.at(-1 - back)

const open = owners.map<Command>(owner =>
  command(`open for ${owner}`, async (model, real) => {
    const own = model.sessions.filter(session => owner !== '' && session.owner === owner)
    const count = (of: string): number => model.sessions.filter(each => each.owner === of && model.mayLive(each)).length
    const yielding = model.sessions.filter(each => model.yields(each, owner, count))
    const fullEach = own.filter(each => model.mustLive(each)).length >= mostEach
    const fullAll = model.sessions.filter(each => model.mustLive(each)).length >= most
    const full = fullEach || (fullAll && yielding.length === 0)
    const room =
      model.sessions.filter(each => model.mayLive(each)).length < most &&
      own.filter(each => model.mayLive(each)).length < mostEach
    const answer = await post(real, callerOf(owner), { method: 'initialize', params: helloParams('2025-11-25') })
    if (full) expect(answer).toEqual({ status: 503, session: undefined })
    if (room || (fullAll && !fullEach && yielding.length > 0)) expect(answer.status).toBe(200)
    // At most one made room, and only one that had to.
    const live = new Set([...real.server.engine.sessions.all()].map(({ session }) => session))
    const gone = model.sessions.filter(each => model.mustLive(each) && !live.has(each.id))
    expect(gone.length).toBeLessThanOrEqual(answer.status === 200 ? 1 : 0)
    for (const each of gone) {
      expect(yielding).toContain(each)
      each.ended = true
    }
    if (answer.session !== undefined) model.sessions.push({ ...fresh, owner, id: answer.session, seen: model.now })
    compare(model, real)
  }),
)

/** By whoever: only the owner is served, and only the owner's use counts as one. */
const use = fc.tuple(which, owners).map<Command>(([back, owner]) =>
  command(`use ${back} by ${owner}`, async (model, real) => {
    const session = sessionAt(model, back)
    const { status } = await post(real, callerOf(owner, session?.id ?? 'nothing'), { method: 'ping' })
    if (session === undefined || session.owner !== owner || model.mustBeGone(session)) expect(status).toBe(404)
    else if (model.mustLive(session)) expect(status).toBe(200)
    if (session !== undefined && status === 200) Object.assign(session, { seen: model.now, slack: 0, spoke: true })
    compare(model, real)
  }),
)

const leave = fc.tuple(which, owners).map<Command>(([back, owner]) =>
  command(`leave ${back} by ${owner}`, async (model, real) => {
    const session = sessionAt(model, back)
    const { status } = await new Promise<Answer>(resolve =>
      real.server.acceptor.leave(callerOf(owner, session?.id ?? 'nothing'), lane(resolve)),
    )
    if (session === undefined || session.owner !== owner || model.mustBeGone(session)) expect(status).toBe(404)
    else if (model.mustLive(session)) expect(status).toBe(200)
    if (session !== undefined && status === 200) Object.assign(session, { ended: true, calls: 0, listens: false })
    compare(model, real)
  }),
)

const begin = which.map<Command>(back =>
  command(`begin a call in ${back}`, async (model, real) => {
    const session = sessionAt(model, back)
    if (session === undefined || !model.mustLive(session)) return
    const waiting = jobsOf.get(real.server) ?? []
    void post(real, callerOf(session.owner, session.id), { method: 'tools/call', params: { name: 'job' } })
    await turn()
    const finish = waiting.pop()
    if (finish === undefined) throw new Error('The call did not begin')
    real.jobs.set(session, [...(real.jobs.get(session) ?? []), finish])
    Object.assign(session, { calls: session.calls + 1, seen: model.now, slack: 0, spoke: true })
    compare(model, real)
  }),
)

const finish = which.map<Command>(back =>
  command(`finish a call in ${back}`, async (model, real) => {
    const session = sessionAt(model, back)
    const done = session === undefined ? undefined : real.jobs.get(session)?.pop()
    if (session === undefined || done === undefined) return
    done()
    await turn()
    if (!session.ended) Object.assign(session, { calls: session.calls - 1, seen: model.now, slack: sweepMs })
    compare(model, real)
  }),
)

const listen = which.map<Command>(back =>
  command(`listen to ${back}`, async (model, real) => {
    const session = sessionAt(model, back)
    if (session === undefined || !model.mustLive(session)) return
    const stream = lane(() => {})
    real.server.acceptor.listen(callerOf(session.owner, session.id), stream)
    real.streams.set(session, stream)
    Object.assign(session, { listens: true, seen: model.now, slack: 0, spoke: true })
    compare(model, real)
  }),
)

const hangUp = which.map<Command>(back =>
  command(`hang up on ${back}`, async (model, real) => {
    const session = sessionAt(model, back)
    if (session === undefined || !session.listens) return
    const stream = real.streams.get(session)
    if (stream !== undefined) stream.closed = true
    if (!session.ended) Object.assign(session, { listens: false, seen: model.now, slack: sweepMs })
    compare(model, real)
  }),
)

const pass = fc.integer({ min: 1, max: 23 }).map<Command>(steps =>
  command(`pass ${steps} s`, async (model, real) => {
    for (let step = 0; step < steps; step++) {
      model.now += 1_000
      real.clock.advance(1_000)
      compare(model, real)
    }
  }),
)

/** When some are over their time, but no sweep may have come by. */
const passIdle = fc.constant<Command>(
  command('pass until the oldest is just too old', async (model, real) => {
    const idle = model.sessions.filter(session => model.mayLive(session) && !model.held(session))
    const oldest = Math.min(...idle.map(({ seen }) => seen))
    const ms = Number.isFinite(oldest) ? Math.max(0, oldest + idleMs + 1_000 - model.now) : 0
    model.now += ms
    real.clock.advance(ms)
    compare(model, real)
  }),
)

it(`holds in ${modelRuns} plays`, { timeout: modelTimeoutMs }, () =>
  playModel<Model, Real>([open, open, open, use, use, leave, begin, finish, listen, hangUp, pass, passIdle], start),
)
