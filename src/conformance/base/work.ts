/** What happens while a request is worked on: progress, log messages, and letting go of it. */
import { hasCode, isEmpty, isFault, isResult, isServed } from '../calls.ts'
import { duplex, official, sessions, stateless, table } from '../define.ts'
import { type Expectations, firstFault, fitsPattern, is, objectIn, should } from '../expectations.ts'
import { callableFixture, capability, tool } from '../needs.ts'
import type { Frame, Json, Scenario } from '../scenario.ts'
import { type ScenarioContext, send, settle, step } from '../steps.ts'
import { isStateless, keys } from '../wire/envelope.ts'

/** The parameters of a notification. */
export function paramsOf(frame: Frame | undefined): Json {
  return objectIn(frame?.value, 'params')
}

const progress = table('base/progress/', {
  proves: ['MCP basic/utilities/progress'],
  revisions: official,
  needs: [capability('tools'), tool('test_tool_with_progress')],
})

async function progressOf(x: ScenarioContext, meta: Json): Promise<readonly Frame[]> {
  x.hold(await x.call('test_tool_with_progress', { meta }), { 'the call must be answered with a result': isServed })
  return x.peer.heard('notifications/progress')
}

const tokens = [
  ['string-token', 'vivarium-7', 'a string'],
  ['integer-token', 4711, 'an integer'],
] as const

/** Progress of a request. */
export const progressScenarios: readonly Scenario[] = [
  ...tokens.map(([id, token, what]) =>
    progress(id, `progress comes with the token of the request, ${what}, and only increases`).by(async x => {
      const steps = await progressOf(x, { progressToken: token })
      x.expect(steps.length > 0, 'there must be progress before the answer', x.peer.frames.slice(-3))
      let last = Number.NEGATIVE_INFINITY
      for (const one of steps) {
        const { progressToken, progress: now, total } = paramsOf(one)
        x.expect(progressToken === token, 'progressToken must be that of the request, type included', [one])
        x.expect(is.number(now), 'progress must be a number', [one])
        x.expect(Number(now) > last, 'progress must increase', steps)
        x.expect(is.optional(is.number)(total), 'total must be a number', [one])
        last = Number(now)
      }
    }),
  ),
  progress('unasked', 'without a token there is no progress').by(async x => {
    const steps = await progressOf(x, {})
    x.expect(steps.length === 0, 'progress must not be sent without a token', steps)
  }),
  progress('over', 'after the answer there is no more progress').by(async x => {
    const steps = await progressOf(x, { progressToken: 'over' })
    await x.peer.settled()
    await x.peer.hears(() => false, 150)
    const late = x.peer.heard('notifications/progress').slice(steps.length)
    x.expect(late.length === 0, 'progress must stop with the answer', late)
  }),
]

const cancelling = table('base/cancellation/', { proves: ['MCP basic/utilities/cancellation'], revisions: official })
const needs = [capability('tools'), ...callableFixture('slow_compute')]

/** Begins a call that takes long, does something about it, and waits whether it is answered all the same. */
async function letGoOf({ peer, begin, expect }: ScenarioContext, letGo: (requestId: unknown) => Promise<unknown>): Promise<void> {
  const begun = begin('slow_compute', { args: { seconds: 20 }, ms: 15_000 })
  await peer.settled()
  await letGo(begun.id)
  await peer.settled()
  const came = await peer.hears(message => message.id === begun.id && message.method === undefined, 300)
  expect(!came, 'a cancelled request must not be answered', [])
  begun.abort()
}

/** Cancels a request that is not there: over stateless HTTP there is no message for that. */
const cancels = (requestId: (x: ScenarioContext) => unknown) => [
  step(x => x.peer.notify('notifications/cancelled', { requestId: requestId(x) })),
  settle,
]
const canBeSaid = step(({ carrier, revision, leave }) =>
  carrier === 'http' && isStateless(revision) ? leave('over HTTP, closing the connection is the cancellation') : undefined,
)

/** Requests that are cancelled, or hung up on. */
export const cancellationScenarios: readonly Scenario[] = [
  cancelling('no-answer', 'a cancelled request is not answered, and the connection stays open').by(
    { carriers: [...duplex, 'sse'], needs },
    x => letGoOf(x, requestId => x.peer.notify('notifications/cancelled', { requestId, reason: 'no longer needed' })),
  ),
  cancelling('over-http', 'a cancelled request ends its exchange, and the session stays open').by(
    { revisions: sessions, carriers: ['http'], needs },
    x =>
      letGoOf(x, async requestId => {
        const { status } = await x.peer.notify('notifications/cancelled', { requestId })
        x.expect(status === 202, `the notification must be answered with HTTP status 202, not ${status}`)
      }),
  ),
  cancelling('hang-up MCP basic/transports#disconnection', 'closing the connection of one request does not affect the next').by(
    { carriers: ['http'], needs },
    async x => {
      const begun = x.begin('slow_compute', { args: { seconds: 20 }, ms: 15_000 })
      await x.peer.settled()
      begun.abort()
      await x.peer.settled()
    },
  ),
  cancelling('unknown', 'cancelling a request that does not exist is ignored').by([
    canBeSaid,
    ...cancels(() => 'vivarium-never-asked'),
  ]),
  cancelling('late', 'cancelling a request that was answered is ignored').by([
    canBeSaid,
    step(x => x.ask(isStateless(x.revision) ? 'server/discover' : 'ping')),
    ...cancels(x => x.was(-1).answer.id),
  ]),
]

const levels = ['debug', 'info', 'notice', 'warning', 'error', 'critical', 'alert', 'emergency']
const logging = table('base/logging/', {
  proves: ['MCP server/utilities/logging'],
  revisions: sessions,
  needs: [capability('logging')],
})
const requestLogging = table('base/logging/', {
  proves: ['MCP 2026-07-28 server/utilities/logging'],
  revisions: stateless.toReversed(),
})

/** Calls a tool that logs, with what says how much is wanted, and gives the messages. */
const loggedBy = (name: string, level?: string, meta: Json = {}) =>
  step(async ({ ask, call, peer }) => {
    if (level !== undefined) await ask('logging/setLevel', { level })
    await call(name, { meta })
    await peer.settled()
    return peer.heard('notifications/message')
  }, tool(name))
const logged = (level?: string) => loggedBy('test_tool_with_logging', level)
const loggedAt = (level?: string) =>
  loggedBy('test_logging_tool', undefined, level === undefined ? {} : { [keys.logLevel]: level })

const areMessages: Expectations<readonly Frame[]> = {
  'there must be log messages': messages => messages.length > 0,
  'every log message must be complete': messages =>
    firstFault(messages.map(paramsOf), params => {
      if (!fitsPattern({ level: is.oneOf(...levels) }, params)) return 'the level of a log message must be one of the eight'
      if (params.data === undefined) return 'a log message must have data'
      return !is.optional(is.string)(params.logger) && 'logger must be a string'
    }),
}
const isLow = (message: Frame): boolean => levels.indexOf(String(paramsOf(message).level)) < levels.indexOf('error')
const fresh = { open: { fresh: true } }

/** Log messages, by session and by request. */
export const loggingScenarios: readonly Scenario[] = [
  ...levels.map(level =>
    logging(`level-${level}`, `the level ${level} can be set`).by({ open: { fresh: level === 'emergency' } }, [
      send('logging/setLevel', { level }).expect({
        'logging/setLevel must be answered with a result': isResult,
        'the result must be empty': isEmpty,
      }),
    ]),
  ),
  logging('unknown-level MCP server/utilities/logging#error-handling', 'a level that does not exist is refused').by([
    send('logging/setLevel', { level: 'loud' }).expect({
      'an unknown level must be refused': isFault,
      'an unknown level should be refused with error -32602': should(hasCode(-32602)),
    }),
  ]),
  logging('messages', 'log messages have a level and data').by(fresh, [logged('debug').expect(areMessages)]),
  logging('below-level', 'messages below the level that was set are not sent').by(fresh, [
    logged('error').expect({ 'messages below the level must not be sent': messages => !messages.some(isLow) }),
  ]),
  requestLogging('request-level', 'a request that names a level gets log messages on its own stream').by(fresh, [
    loggedAt('debug').expect(areMessages),
  ]),
  requestLogging('request-without-level', 'a request that names no level gets no log messages').by(fresh, [
    loggedAt().expect({ 'no log message must be sent to a client that requested none': messages => messages.length === 0 }),
  ]),
  requestLogging('request-high-level', 'a request gets no log messages below the level it named').by(fresh, [
    loggedAt('emergency').expect({ 'no log message below the level must be sent': messages => messages.length === 0 }),
  ]),
  requestLogging('request-unknown-level', 'a request that names a level that does not exist is refused').by([
    send('server/discover', {}, { meta: { [keys.logLevel]: 'loud' } }).expect({
      'an unknown level must be refused with error -32602': hasCode(-32602),
    }),
  ]),
]
