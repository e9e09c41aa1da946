/** E5, first half: a call under a key is made once, and its result given again. */

import { setTimeout as wait } from 'node:timers/promises'
import { isRecord } from '../../jsonrpc/message.ts'
import {
  alike,
  hasCode,
  hasMeta,
  hasProblem,
  hasResult,
  isFailure,
  isFirst,
  isMade,
  isRefusedBy,
  isReplay,
  type PeerAnswer,
  type Saying,
  showsAs,
  showsOtherThan,
} from '../calls.ts'
import { extensionTable } from '../define.ts'
import { allOf, type Expectation, fitsPattern, is, listIn, objectIn, objectsIn, orSkip, sameJson } from '../expectations.ts'
import { brings, costOf, isPlain, needsConfirmation, otherArguments, saidOf, scopesOf } from '../said.ts'
import type { Json, Scenario } from '../scenario.ts'
import {
  callTool,
  keyed,
  keyedAnew,
  newKey,
  rest,
  type ScenarioContext,
  type SentStep,
  send,
  step,
  type TableStep,
} from '../steps.ts'
import { bringing, callable, counting, type Finder, toolThat, undoable } from '../tools.ts'
import { agreed } from './confirmation.ts'
import { onState, stateTokenIn } from './ongoing.ts'
import { asksFor, holding, tokenIn } from './permissions.ts'

const row = extensionTable('idempotency')

const counts = (tool: Json): boolean => isPlain(tool) && brings(tool, 'counts')
const takes = (tool: Json): boolean => listIn(tool, 'inputSchema', 'required').length > 0
const slow = toolThat(
  'runs slowly and returns a different result each time ("counts" and "slow")',
  tool => counts(tool) && brings(tool, 'slow'),
)
const priced = toolThat('is metered', tool => isPlain(tool) && costOf(tool).category === 'metered')
const confirmed = toolThat(
  'requires confirmation and returns a different result each time ("counts")',
  tool => needsConfirmation(tool) && brings(tool, 'counts'),
)
const scoped = toolThat('needs a scope', tool => scopesOf(tool).length === 1 && !needsConfirmation(tool))
const checked = toolThat(
  'requires an argument and returns a different result each time ("counts")',
  tool => counts(tool) && takes(tool),
)
const other = toolThat(
  'is another one',
  (tool, peer) => isPlain(tool) && tool.name !== callable.find(peer)?.name && peer.mayCall(String(tool.name)),
)
const told = toolThat(
  'returns a different result each time ("counts") and accepts a text',
  tool => counts(tool) && !brings(tool, 'slow') && takes(tool),
)
const permanent = bringing('failure:permanent')
const transient = bringing('failure:transient')
const briefly = (x: ScenarioContext) => keyed(x, { idempotency: { idempotency_key: x.key(), idempotency_ttl_seconds: 1 } })

/** E5: calls under a key. */
export const idempotency: readonly Scenario[] = [
  row('E5-1', 'A key that was used for one tool is refused for another one').by([
    callTool(callable, keyed).expect({ 'A call under a fresh key': isMade }),
    callTool(other, keyed).expect({ 'The same key on another tool': isRefusedBy('IDEMPOTENCY_CONFLICT') }),
  ]),
  row('E5-2', 'A repeated call returns the stored result, is marked as a replay, and does not run again').by([
    callTool(callable, keyed).expect({
      'A call under a fresh key': isMade,
      'The first answer does not name its key with was_replay: false': (it, { key }) =>
        it.member('idempotency').idempotency_key === key() && it.member('idempotency').was_replay === false,
      'The first answer has no original_timestamp': hasMeta('idempotency', { original_timestamp: is.time }),
    }),
    callTool(callable, keyed).expect({
      'The repetition': isMade,
      'The repetition is not marked was_replay: true': isReplay,
      'The repetition has another original_timestamp': (it, { was }) =>
        it.member('idempotency').original_timestamp === was(0).member('idempotency').original_timestamp,
      'The repetition has another result: the tool ran again': showsAs(0),
    }),
  ]),
  row('E5-2b E5-2', 'Without a key every call runs, and the results name no key').by([
    callTool(counting),
    callTool(counting).expect({
      'A call without a key': (_, x, says) => isMade(x.was(0), x, says),
      'A second call without a key': isMade,
      'A call without a key is answered with one': (_, { was }) => was(0).said('idempotency') === undefined,
      'Two calls without a key have the same result': showsOtherThan(0),
    }),
  ]),
  row('E5-3', 'The same key with other arguments is refused, and nothing runs').by([
    callTool(told, keyed).expect({ 'A call under a fresh key': isMade }),
    callTool(told, x => ({ ...keyed(x), args: otherArguments(x.tool(told).args) })).expect({
      'The same key with other arguments': isRefusedBy('IDEMPOTENCY_CONFLICT'),
      'The conflict is not of the category invalid_input': hasProblem({ category: 'invalid_input' }),
    }),
    callTool(told, keyed).expect({
      'After the conflict the first result is no longer replayed': allOf(isReplay, showsAs(0)),
    }),
  ]),
  row('E5-4', 'A duplicate of a running call joins it: the tool runs once').by(slow, async x => {
    const [first, second] = await Promise.all([x.call(slow, keyed(x)), x.call(slow, keyed(x))])
    const frames = [...first.frames, ...second.frames]
    x.made(first, 'The first of two calls at once')
    if (second.problem.code === 'IDEMPOTENCY_IN_PROGRESS')
      return x.hold(second, {
        'IDEMPOTENCY_IN_PROGRESS is not transient with retry_after_seconds': hasProblem({
          category: 'transient',
          retry_after_seconds: is.number,
        }),
      })
    x.made(second, 'The second of two calls at once')
    x.expect(alike(first, second), 'Two calls at once under one key have two results: both ran', frames)
    const replays = [first, second].filter(one => one.member('idempotency').was_replay === true).length
    x.expect(replays === 1, `Of two calls at once ${replays} are marked as replays, not one`, frames)
  }),
  row('E5-5', 'A permanent failure is stored under its key; a refused argument is not').by([
    callTool(permanent, keyed),
    callTool(permanent, keyed).expect({
      'A tool that fails permanently did not fail': (it, { was }) => was(0).isError && it.isError,
      'A permanent failure was not replayed': allOf<PeerAnswer, ScenarioContext>(
        isReplay,
        (it, { was }) => it.text === was(0).text,
      ),
    }),
    callTool(checked, x => ({ ...keyedAnew(x), args: {} })).expect({
      'A call without its required arguments was executed': isFailure,
    }),
    callTool(checked, keyedAnew).expect({ 'The corrected call under the key of a call whose arguments were refused': isMade }),
  ]),
  row('E5-5b E5-5', 'A transient failure is not stored: the same key runs the tool again').by(transient, async x => {
    for (let round = 0; round < 4; round++) {
      const called = await x.call(transient, keyed(x))
      x.expect(called.member('idempotency').was_replay !== true || !called.isError, 'A transient failure was replayed')
      if (!called.isError && called.code === undefined) return
    }
    x.bench.fail('A tool that fails transiently never succeeded under the same key')
  }),
  row('E5-7', 'An expired key can be used again').by([
    callTool(counting, briefly).expect({ 'A call under a key of one second': isMade }),
    rest(1_300),
    callTool(counting, briefly).expect({
      'The same call after that second': isMade,
      'A key outlived its idempotency_ttl_seconds': allOf(isFirst, showsOtherThan(0)),
    }),
  ]),
  row('E5-9 X1', 'A caller that may not make a call gets no replay of it either').by('permissions', [
    send('permissions/negotiate', asksFor(scoped)).expect({
      'The server grants no scope that a tool needs': orSkip(it => tokenIn(it) !== undefined),
    }),
    callTool(scoped, x => keyed(x, holding(x.was(0)))).expect({ 'A call with a grant was not executed under its key': isFirst }),
    callTool(scoped, keyed).expect({ 'The repetition without the grant': isRefusedBy('SCOPE_INSUFFICIENT') }),
  ]),
  row('E5-10', 'A replay costs nothing').by('operational', [
    callTool(priced, keyed).expect({ 'A metered call': isMade }),
    callTool(priced, keyed).expect({
      'A metered call was not replayed': isReplay,
      'A replay reports units_used other than 0': hasMeta('operational', { units_used: 0 }),
    }),
  ]),
  row('E5-10b E5-10 X1 X2 E6-4', 'A replay needs no second confirmation, and an open question is not stored as the result').by(
    'confirmation',
    [
      callTool(confirmed, keyed).expect({ 'A call without confirmation': isRefusedBy('CONFIRMATION_REQUIRED') }),
      callTool(confirmed, x => keyed(x, agreed(x.was(0)))).expect({
        'The call with confirmation, under the key of the question': isMade,
        'The question was stored as the result of the key': isFirst,
      }),
      callTool(confirmed, keyed).expect({
        'The repetition, which needs no confirmation': isMade,
        'The repetition is not a replay': allOf(isReplay, showsAs(1)),
      }),
    ],
  ),
  row('E5-8', 'An invalid key is refused as an invalid parameter').by(callable, async x => {
    for (const key of ['no key', '', 'ä', 'k'.repeat(129)]) {
      const { code } = await x.call(callable, { say: { idempotency: { idempotency_key: key } } })
      x.expect(code === -32602, `The key ${JSON.stringify(key.slice(0, 20))} was not refused with -32602`)
    }
  }),
  row('E5-2h E5-2', 'Over HTTP the header Idempotency-Key is the same key; another one than in _meta is refused').by(
    { carriers: ['http'] },
    [
      callTool(counting, x => ({ headers: { 'idempotency-key': x.key() } })).expect({ 'A call with the header': isMade }),
      callTool(counting, keyed).expect({
        'The key in _meta is not the one of the header': allOf(isReplay, showsAs(0)),
      }),
      callTool(counting, x => ({ ...keyed(x), headers: { 'idempotency-key': newKey() } })).expect({
        'Two different keys in one request were not refused with -32602': hasCode(-32602),
      }),
    ],
  ),
]

// ── E5, second half: steps that stay together, or are taken back together.

const transacted = extensionTable('transactions')

const compensation = (tool: Json): Json => objectIn(saidOf(tool, 'transactions'), 'compensation')
const hasUndo = (tool: Json): boolean => typeof compensation(tool).tool === 'string'
const final = toolThat(
  'names no compensation, and needs nothing',
  (tool, peer) => isPlain(tool) && !hasUndo(tool) && peer.mayCall(String(tool.name)),
)
const lasting = toolThat('names a compensation and runs slowly ("slow")', tool => hasUndo(tool) && brings(tool, 'slow'))
const failingCompensation = toolThat('declares "compensation:fails"', tool => hasUndo(tool) && brings(tool, 'compensation:fails'))
const stateful = toolThat(
  'names a compensation and declares "state:branch"',
  tool => hasUndo(tool) && brings(tool, 'state:branch'),
)
const guarded = toolThat('is compensated by a tool that requires confirmation', (tool, peer) => {
  const back = peer.tool(String(compensation(tool).tool))
  return isPlain(tool) && back !== undefined && needsConfirmation(back) && scopesOf(back).length === 0
})

/** The transaction of a scenario, as requests name it. */
const idOf = (x: ScenarioContext, name = 'transaction'): Json => ({ transaction_id: x.key(name) })

/** What a call says that is a step of the scenario's transaction. */
export function within(x: ScenarioContext, more: Saying = {}): { readonly say: Saying } {
  return { say: { transactions: idOf(x), ...more } }
}

/** Begins the transaction of a scenario. */
export function beginning(more: Json = {}): TableStep {
  const began = send('transaction/begin', x => ({ ...idOf(x), timeout_seconds: 60, ...more }))
  return began.expect({ 'transaction/begin': isMade })
}

/** Ends it, one way or the other. */
export function ending(how: 'commit' | 'rollback', more: Json = {}): SentStep<PeerAnswer> {
  return send(`transaction/${how}`, x => ({ ...idOf(x), ...more }))
}

/** A step of the transaction. */
const part = (tool: Finder, says = 'A step') => callTool(tool, x => within(x)).expect({ [says]: isMade })
const conflict = isRefusedBy('TRANSACTION_CONFLICT')
const stepsIn = ({ result }: PeerAnswer) => objectsIn(result, 'steps_compensated')
const reportOf = ({ result }: PeerAnswer) => [result.status, result.steps, result.steps_compensated, result.steps_completed]
const noResult = { 'A refused step has a result': hasResult({ structuredContent: is.absent }) }

/** The steps of answers 1 to 3, the last one first. */
const lastFirst: Expectation<PeerAnswer, ScenarioContext> = (it, { was }) => {
  const ids = [3, 2, 1].map(at => was(at).member('transactions').step_id)
  return sameJson(
    stepsIn(it).map(one => one.step_id),
    ids,
  )
}

const rolledBack = (says: string) => ending('rollback').expect({ [says]: hasResult({ status: 'rolled_back' }) })

/** E5: steps of a transaction. */
export const transactions: readonly Scenario[] = [
  transacted('E5-11', 'An id of a transaction is used once, also after its end').by([
    beginning(),
    send('transaction/begin', x => idOf(x)).expect({
      'A second begin': conflict,
      'A method that failed does not answer with -31000': hasCode(-31000),
    }),
    ending('commit').expect({ 'transaction/commit': isMade }),
    send('transaction/begin', x => idOf(x)).expect({ 'A begin after the end': conflict }),
  ]),
  transacted('E5-12', 'A step of an ended or unknown transaction is refused before it runs').by([
    beginning(),
    ending('commit').expect({ 'transaction/commit': isMade }),
    callTool(undoable, x => within(x)).expect({ 'A step after the end': conflict, ...noResult }),
    callTool(undoable, x => ({ say: { transactions: idOf(x, 'never') } })).expect({
      'A step of an unknown transaction': isRefusedBy('RESOURCE_NOT_FOUND'),
      ...noResult,
    }),
  ]),
  transacted('E5-13', 'A step names its compensation; a tool without compensation takes no part').by([
    beginning(),
    callTool(undoable, x => within(x)).expect({
      'A step': isMade,
      'The answer does not say which step it was': (it, x) =>
        fitsPattern({ ...idOf(x), status: 'ok', step_id: is.string }, it.said('transactions')),
      'The answer does not name the compensation that the list names, with parameters': (it, { tool }) => {
        const wanted = { tool: compensation(tool(undoable).listed).tool, parameters: isRecord }
        return fitsPattern(wanted, it.member('transactions').compensation)
      },
    }),
    callTool(final, x => within(x)).expect({ 'A step without a compensation': conflict }),
  ]),
  transacted('E5-14', 'A rollback undoes steps, the last one first, and lists each').by([
    beginning(),
    part(undoable),
    part(undoable),
    part(undoable),
    ending('rollback', { reason: 'Requested by the conformance kit' }).expect({
      'transaction/rollback': isMade,
      'The transaction is not rolled_back': hasResult({ status: 'rolled_back' }),
      'The steps were not rolled back last one first, each once': lastFirst,
      'A step that was rolled back is not listed as compensated': it => stepsIn(it).every(one => one.status === 'compensated'),
    }),
  ]),
  transacted('E5-14b E5-14', 'A compensation that fails does not stop the others, and is reported').by([
    beginning(),
    part(undoable),
    part(failingCompensation, 'A step whose compensation fails'),
    part(undoable, 'A third step'),
    ending('rollback').expect({
      'The transaction is not partially_rolled_back': hasResult({ status: 'partially_rolled_back' }),
      'Not every step is listed with its outcome': it =>
        sameJson(
          stepsIn(it).map(one => one.status),
          ['compensated', 'compensation_failed', 'compensated'],
        ),
      'A compensation that failed has no error object': it => is.string(objectIn(stepsIn(it)[1], 'error').code),
    }),
  ]),
  transacted('E5-15', 'A repeated rollback or commit returns the same report').by(undoable, async x => {
    for (const how of ['rollback', 'commit'] as const) {
      const named = { transaction_id: x.key(how) }
      x.made(await x.ask('transaction/begin', { ...named, timeout_seconds: 60 }), 'transaction/begin')
      x.made(await x.call(undoable, { say: { transactions: named } }), 'A step')
      await x.ask(`transaction/${how}`, named)
      x.hold(await x.ask(`transaction/${how}`, named), {
        [`A second transaction/${how}`]: isMade,
        [`A second transaction/${how} returns another report`]: it => sameJson(reportOf(x.was(-2)), reportOf(it)),
      })
    }
  }),
  transacted('X3 E14-8', 'After a rollback the key of a step is refused and its state is invalid').by(
    ['idempotency', 'state'],
    [
      beginning(),
      callTool(stateful, x => within(x, { idempotency: { idempotency_key: x.key() } })).expect({
        'A step under a key': isMade,
        'A step that writes state returns no session_state': hasMeta('state', { session_state: is.string }),
      }),
      ending('rollback').expect({ 'transaction/rollback': isMade }),
      callTool(stateful, x => within(x, { idempotency: { idempotency_key: x.key() } })).expect({
        'The key of a step that was rolled back': isRefusedBy('IDEMPOTENCY_CONFLICT'),
      }),
      callTool(stateful, x => onState(stateTokenIn(x.was(1)))).expect({
        'The state of a step that was rolled back': isRefusedBy('STATE_INVALID'),
      }),
    ],
  ),
  transacted('E5-16', 'An idle transaction is rolled back automatically').by([
    beginning({ timeout_seconds: 1 }),
    part(undoable),
    step(async x => {
      await wait(1_500)
      for (let round = 0; ; round++) {
        const { result } = await x.ask('transaction/get', idOf(x))
        if (result.status === 'rolled_back') return
        x.expect(round < 40, 'A transaction is not rolled back long after its timeout_seconds')
        await wait(100)
      }
    }),
  ]),
  transacted('E5-17', 'A rollback needs no new confirmation, even if the compensating tool requires one when called').by(
    'confirmation',
    [beginning(), part(guarded), rolledBack('A compensation waited for a confirmation, or was refused')],
  ),
  transacted('E5-18', 'A commit while a step runs is refused').by(lasting, async x => {
    await beginning().run(x)
    const running = x.begin(lasting, within(x))
    await wait(150)
    x.refused(await x.ask('transaction/commit', idOf(x)), 'TRANSACTION_CONFLICT', 'A commit while a step runs')
    x.made(await running.called, 'The step that was running')
    x.made(await x.ask('transaction/commit', idOf(x)), 'A commit when it has ended')
  }),
]
