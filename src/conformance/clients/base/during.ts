/** While a call runs: progress, and letting go of it. */
import { type Play, said } from '../play.ts'
import { ALL, type ClientScenario, EVERY, scenario } from '../scenario.ts'
import { argumentsOf } from '../seen.ts'
import { metaIn, paramsOf } from '../stage/book.ts'
import { type Call, isStateless, silence } from '../stage/script.ts'

function tell(call: Call, progress: number): void {
  const { progressToken } = call.meta
  if (call.revision === 's3') call.tell('progress', { id: call.id, percent: progress * 10, message: `step ${progress}` })
  else if (progressToken !== undefined) call.tell('notifications/progress', { progressToken, progress, total: 10 })
}

const progress: Play = {
  name: 'progress',
  report: true,
  // A client that is busy with something else still comes to the ping.
  patienceMs: 10_000,
  steps: [
    { do: 'list', what: 'tools' },
    {
      do: 'together',
      steps: [
        { do: 'call', tool: 'test-tool', arguments: { n: 1 }, progress: true, as: 'first' },
        { do: 'call', tool: 'test-tool', arguments: { n: 2 }, progress: true, as: 'second' },
      ],
    },
  ],
  on: () => ({
    'tools/call': async call => {
      const steps = (call.params['arguments'] as { n?: unknown } | undefined)?.n === 1 ? [2, 5, 9] : [1]
      for (const step of steps) tell(call, step)
      // Whoever handles notifications beside answers shall have the time: a ping comes back when they are through.
      if (isStateless(call.revision)) await call.book.until(() => undefined, 200)
      else await call.ask('ping', undefined)
      return said('done')
    },
  }),
}

const cancel: Play = {
  name: 'cancel',
  report: true,
  steps: [
    { do: 'list', what: 'tools' },
    { do: 'call', tool: 'test-tool', arguments: { slow: true }, progress: true, cancel: 300, as: 'slow' },
    { do: 'call', tool: 'test-tool', arguments: { slow: false }, as: 'after' },
  ],
  on: stage => {
    const invoked = async (call: Call) => {
      if ((call.params['arguments'] as { slow?: unknown } | undefined)?.slow !== true) return done(call)
      tell(call, 1)
      await call.book.until(() => wordOf(call, call.id) ?? leftOn(call, call.way.line), 3_000)
      // Too late: nobody may be confused by it.
      if (stage.carrier !== 'http') call.way.write(JSON.stringify({ jsonrpc: '2.0', id: call.id, result: done(call) }))
      else call.way.finish(JSON.stringify({ jsonrpc: '2.0', id: call.id, result: done(call) }))
      return silence
    }
    return { 'tools/call': invoked, 'tools/invoke': stage.revision === 's3' ? invoked : undefined }
  },
}

function done({ revision }: Call): unknown {
  return revision === 's3' ? { status: 'success', output: 'late' } : { resultType: 'complete', ...said('late') }
}

function wordOf({ book, revision }: Pick<Call, 'book' | 'revision'>, id: unknown): 'told' | undefined {
  const word = revision === 's3' ? 'cancel' : 'notifications/cancelled'
  const member = revision === 's3' ? 'id' : 'requestId'
  return book.of(word).some(notice => paramsOf(notice)[member] === id) ? 'told' : undefined
}

function leftOn({ book }: Pick<Call, 'book'>, on: number): 'left' | undefined {
  return book.hungUp.some(({ line }) => line === on) ? 'left' : undefined
}

export const during: readonly ClientScenario[] = [
  scenario('client/progress/token', 'Who wants progress names a token of its own for each call', progress, {
    proves: ['MCP basic/utilities/progress'],
    revisions: EVERY,
    check: (seen, { expect, skip }) => {
      const calls = seen.calls('test-tool')
      const tokens = calls.map(call => metaIn(call)['progressToken']).filter(token => token !== undefined)
      if (tokens.length === 0) skip('the client does not ask for progress')
      expect(
        tokens.every(token => typeof token === 'string' || Number.isInteger(token)),
        'A token is a string or an integer',
        calls,
      )
      expect(new Set(tokens.map(token => JSON.stringify(token))).size === tokens.length, 'Two calls have the same token', calls)
    },
  }),
  scenario('client/progress/heard', 'Progress comes to the call that it belongs to', progress, {
    proves: ['MCP basic/utilities/progress'],
    revisions: EVERY,
    check: (seen, { expect, skip, warn }) => {
      const first = seen.reported.get('first')
      if (first?.progress === undefined) return skip('the client does not report progress')
      // Where no ping can tell that all was heard, an answer may overtake what was told before it.
      const second = seen.reported.get('second')?.progress ?? 0
      if (seen.stateless && first.progress <= 3 && second <= 1 && first.progress + second < 4)
        return warn(`The calls were told of 3 and 1 steps and heard ${first.progress} and ${second}`)
      expect(first.progress === 3, `The first call was told of 3 steps and heard ${first.progress}`, seen.calls())
      expect(second === 1, `The second call was told of 1 step and heard ${second}`, seen.calls())
    },
  }),
  scenario('client/cancel/said', 'A call that is given up is cancelled as the wire and the carrier say', cancel, {
    proves: ['MCP basic/utilities/cancellation', 'MCP basic/transports#sending-messages-to-the-server'],
    revisions: ALL,
    check: (seen, { expect, skip }) => {
      const slow = seen.calls('test-tool').find(call => argumentsOf(call)['slow'] === true)
      if (slow === undefined) return skip('the client did not make the call that it was to give up')
      const how = wordOf(seen, slow.frame?.['id']) ?? leftOn(seen, slow.line)
      const byLeaving = seen.stateless && seen.carrier === 'http'
      expect(how !== undefined, 'The client neither cancelled the call nor let go of it', [slow])
      expect(
        (how === 'left') === byLeaving,
        byLeaving ? 'Over HTTP a call is cancelled by closing its stream' : 'The server was not told',
        [slow],
      )
      const told = seen.notices('notifications/cancelled')
      expect(!byLeaving || told.length === 0, 'Over HTTP there is no such notification', told)
      expect(
        told.every(notice => paramsOf(notice)['requestId'] !== undefined || seen.revision === '2025-11-25'),
        'requestId is missing',
        told,
      )
    },
  }),
  scenario('client/cancel/late', 'An answer that comes after the cancel confuses nobody', cancel, {
    proves: ['MCP basic/utilities/cancellation#behavior-requirements'],
    revisions: ALL,
    check: (seen, { expect, skip }) => {
      const calls = seen.calls('test-tool')
      if (calls.length === 0 || argumentsOf(calls[0])['slow'] !== true)
        skip('the client did not make the call that it was to give up')
      expect(calls.length > 1, 'The client did not go on after a late answer', calls)
      const entry = seen.reported.get('after')
      expect(entry === undefined || entry.ok, `The call after it failed: ${entry?.message ?? ''}`, calls)
      const slow = seen.reported.get('slow')
      expect(slow === undefined || !slow.ok, 'The call that was given up is reported as done', calls)
    },
  }),
]
