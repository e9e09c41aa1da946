/** What happens while a request is worked on: progress, log messages, and letting go of it. */
import { isRecord } from '../../jsonrpc/message.ts'
import { capability, codeIn, duplex, official, resultIn, scenario, sessions, tool } from '../define.ts'
import type { Bench, Frame, Json, Scenario } from '../scenario.ts'
import { isStateless, keys } from '../wire/envelope.ts'
import type { RawPeer } from '../wire/raw-peer.ts'

const progressing = ['MCP basic/utilities/progress']
const cancelling = ['MCP basic/utilities/cancellation']
const logging = ['MCP server/utilities/logging']

export function paramsOf(frame: Frame): Json {
  return isRecord(frame.value) && isRecord(frame.value['params']) ? frame.value['params'] : {}
}

async function progressOf(bench: Bench, meta: Json): Promise<{ peer: RawPeer; steps: readonly Frame[] }> {
  const peer = await bench.open()
  const answer = await peer.request('tools/call', { name: 'test_tool_with_progress' }, { meta })
  bench.expect(answer.result !== undefined, 'the call must be answered with a result', [answer.frame])
  return { peer, steps: peer.heard('notifications/progress') }
}

function tokenScenario(id: string, token: string | number, what: string): Scenario {
  return scenario(`base/progress/${id}`, {
    title: `progress comes with the token of the request, ${what}, and only rises`,
    proves: progressing,
    revisions: official,
    needs: [capability('tools'), tool('test_tool_with_progress')],
    async run(bench) {
      const { peer, steps } = await progressOf(bench, { progressToken: token })
      bench.expect(steps.length > 0, 'there must be progress before the answer', peer.frames.slice(-3))
      let last = Number.NEGATIVE_INFINITY
      for (const step of steps) {
        const { progressToken, progress, total } = paramsOf(step)
        bench.expect(progressToken === token, 'progressToken must be that of the request, type included', [step])
        bench.expect(typeof progress === 'number', 'progress must be a number', [step])
        bench.expect(Number(progress) > last, 'progress must rise', steps)
        bench.expect(total === undefined || typeof total === 'number', 'total must be a number', [step])
        last = Number(progress)
      }
    },
  })
}

export const progressScenarios: readonly Scenario[] = [
  tokenScenario('string-token', 'vivarium-7', 'a string'),
  tokenScenario('integer-token', 4711, 'an integer'),
  scenario('base/progress/unasked', {
    title: 'without a token there is no progress',
    proves: progressing,
    revisions: official,
    needs: [capability('tools'), tool('test_tool_with_progress')],
    async run(bench) {
      const { steps } = await progressOf(bench, {})
      bench.expect(steps.length === 0, 'progress must not be sent without a token', steps)
    },
  }),
  scenario('base/progress/over', {
    title: 'after the answer there is no more progress',
    proves: progressing,
    revisions: official,
    needs: [capability('tools'), tool('test_tool_with_progress')],
    async run(bench) {
      const { peer, steps } = await progressOf(bench, { progressToken: 'over' })
      await peer.settled()
      await peer.hears(() => false, 150)
      const late = peer.heard('notifications/progress').slice(steps.length)
      bench.expect(late.length === 0, 'progress must stop with the answer', late)
    },
  }),
]

const slow = { name: 'slow_compute', arguments: { seconds: 20 } }
const needsSlow = [
  capability('tools'),
  tool('slow_compute'),
  (peer: Bench['peer']) => (peer.mayCall('slow_compute') ? undefined : 'slow_compute may not be called'),
]

export const cancellationScenarios: readonly Scenario[] = [
  scenario('base/cancellation/no-answer', {
    title: 'a cancelled request is not answered, and the connection goes on',
    proves: cancelling,
    revisions: official,
    carriers: [...duplex, 'sse'],
    needs: needsSlow,
    async run(bench) {
      const peer = await bench.open()
      const begun = peer.begin('tools/call', slow, { ms: 15_000 })
      await peer.settled()
      await peer.notify('notifications/cancelled', { requestId: begun.id, reason: 'no longer needed' })
      await peer.settled()
      const came = await peer.hears(message => message['id'] === begun.id && message['method'] === undefined, 300)
      bench.expect(!came, 'a cancelled request must not be answered')
      begun.abort()
    },
  }),
  scenario('base/cancellation/over-http', {
    title: 'a cancelled request lets go of its exchange, and the session goes on',
    proves: cancelling,
    revisions: sessions,
    carriers: ['http'],
    needs: needsSlow,
    async run(bench) {
      const peer = await bench.open()
      const begun = peer.begin('tools/call', slow, { ms: 15_000 })
      await peer.settled()
      const { status } = await peer.notify('notifications/cancelled', { requestId: begun.id })
      bench.expect(status === 202, `the notification must be answered with HTTP status 202, not ${status}`)
      await peer.settled()
      const came = await peer.hears(message => message['id'] === begun.id && message['method'] === undefined, 300)
      bench.expect(!came, 'a cancelled request must not be answered')
      begun.abort()
    },
  }),
  scenario('base/cancellation/hang-up', {
    title: 'hanging up on a request does no harm to the next',
    proves: ['MCP basic/transports#disconnection'],
    revisions: official,
    carriers: ['http'],
    needs: needsSlow,
    async run(bench) {
      const peer = await bench.open()
      const begun = peer.begin('tools/call', slow, { ms: 15_000 })
      await peer.settled()
      begun.abort()
      await peer.settled()
    },
  }),
  scenario('base/cancellation/unknown', {
    title: 'cancelling a request that does not exist is ignored',
    proves: cancelling,
    revisions: official,
    async run(bench) {
      if (bench.carrier === 'http' && isStateless(bench.revision)) bench.leave('over HTTP hanging up is the cancellation')
      const peer = await bench.open()
      await peer.notify('notifications/cancelled', { requestId: 'vivarium-never-asked' })
      await peer.settled()
    },
  }),
  scenario('base/cancellation/late', {
    title: 'cancelling a request that was answered is ignored',
    proves: cancelling,
    revisions: official,
    async run(bench) {
      if (bench.carrier === 'http' && isStateless(bench.revision)) bench.leave('over HTTP hanging up is the cancellation')
      const peer = await bench.open()
      const { id } = await peer.request(isStateless(bench.revision) ? 'server/discover' : 'ping')
      await peer.notify('notifications/cancelled', { requestId: id })
      await peer.settled()
    },
  }),
]

const levels = ['debug', 'info', 'notice', 'warning', 'error', 'critical', 'alert', 'emergency']

async function loggedWith(bench: Bench, fixture: string, level: string | undefined, meta: Json = {}): Promise<readonly Frame[]> {
  const peer = await bench.open({ fresh: true })
  if (level !== undefined) await peer.request('logging/setLevel', { level })
  await peer.request('tools/call', { name: fixture }, { meta })
  await peer.settled()
  return peer.heard('notifications/message')
}

function expectMessages(bench: Bench, messages: readonly Frame[]): void {
  bench.expect(messages.length > 0, 'there must be log messages')
  for (const message of messages) {
    const { level, data, logger } = paramsOf(message)
    bench.expect(levels.includes(String(level)), 'the level of a log message must be one of the eight', [message])
    bench.expect(data !== undefined, 'a log message must have data', [message])
    bench.expect(logger === undefined || typeof logger === 'string', 'logger must be a string', [message])
  }
}

export const loggingScenarios: readonly Scenario[] = [
  ...levels.map(level =>
    scenario(`base/logging/level-${level}`, {
      title: `the level ${level} can be set`,
      proves: logging,
      revisions: sessions,
      needs: [capability('logging')],
      async run(bench) {
        const peer = await bench.open({ capabilities: {}, fresh: level === 'emergency' })
        const answer = await peer.request('logging/setLevel', { level })
        bench.expect(isRecord(answer.result), 'logging/setLevel must be answered with a result', [answer.frame])
        const members = Object.keys(resultIn(answer)).filter(name => name !== '_meta')
        bench.expect(members.length === 0, 'the result must be empty', [answer.frame])
      },
    }),
  ),
  scenario('base/logging/unknown-level', {
    title: 'a level that does not exist is refused',
    proves: ['MCP server/utilities/logging#error-handling'],
    revisions: sessions,
    needs: [capability('logging')],
    async run(bench) {
      const peer = await bench.open()
      const answer = await peer.request('logging/setLevel', { level: 'loud' })
      bench.expect(answer.error !== undefined, 'an unknown level must be refused', [answer.frame])
      if (codeIn(answer) !== -32602) bench.warn('an unknown level should be refused with error -32602')
    },
  }),
  scenario('base/logging/messages', {
    title: 'log messages have a level and data',
    proves: logging,
    revisions: sessions,
    needs: [capability('logging'), tool('test_tool_with_logging')],
    run: async bench => expectMessages(bench, await loggedWith(bench, 'test_tool_with_logging', 'debug')),
  }),
  scenario('base/logging/below-level', {
    title: 'messages below the level that was set are not sent',
    proves: logging,
    revisions: sessions,
    needs: [capability('logging'), tool('test_tool_with_logging')],
    async run(bench) {
      const low = (await loggedWith(bench, 'test_tool_with_logging', 'error')).filter(
        message => levels.indexOf(String(paramsOf(message)['level'])) < levels.indexOf('error'),
      )
      bench.expect(low.length === 0, 'messages below the level must not be sent', low)
    },
  }),
  scenario('base/logging/request-level', {
    title: 'a request that names a level gets log messages on its own stream',
    proves: ['MCP 2026-07-28 server/utilities/logging'],
    revisions: ['2026-07-28', 'draft-2026-v1'],
    needs: [tool('test_logging_tool')],
    run: async bench =>
      expectMessages(bench, await loggedWith(bench, 'test_logging_tool', undefined, { [keys.logLevel]: 'debug' })),
  }),
  scenario('base/logging/request-without-level', {
    title: 'a request that names no level gets no log messages',
    proves: ['MCP 2026-07-28 server/utilities/logging'],
    revisions: ['2026-07-28', 'draft-2026-v1'],
    needs: [tool('test_logging_tool')],
    async run(bench) {
      const messages = await loggedWith(bench, 'test_logging_tool', undefined)
      bench.expect(messages.length === 0, 'no log message must be sent to who asked for none', messages)
    },
  }),
  scenario('base/logging/request-high-level', {
    title: 'a request gets no log messages below the level it named',
    proves: ['MCP 2026-07-28 server/utilities/logging'],
    revisions: ['2026-07-28', 'draft-2026-v1'],
    needs: [tool('test_logging_tool')],
    async run(bench) {
      const messages = await loggedWith(bench, 'test_logging_tool', undefined, { [keys.logLevel]: 'emergency' })
      bench.expect(messages.length === 0, 'no log message below the level must be sent', messages)
    },
  }),
  scenario('base/logging/request-unknown-level', {
    title: 'a request that names a level that does not exist is refused',
    proves: ['MCP 2026-07-28 server/utilities/logging'],
    revisions: ['2026-07-28', 'draft-2026-v1'],
    async run(bench) {
      const peer = await bench.open()
      const answer = await peer.request('server/discover', {}, { meta: { [keys.logLevel]: 'loud' } })
      bench.expect(codeIn(answer) === -32602, 'an unknown level must be refused with error -32602', [answer.frame])
    },
  }),
]
