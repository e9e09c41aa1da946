/** E5, second half: steps that stay together, or are taken back together. */
import { setTimeout as wait } from 'node:timers/promises'
import { isRecord } from '../../jsonrpc/message.ts'
import { hasCode, hasMeta, hasResult, isMade, isRefusedBy, type PeerAnswer, type Saying } from '../calls.ts'
import { extensionTable } from '../define.ts'
import { type Expectation, fitsPattern, isAbsent, isString, objectIn, objectsIn, sameJson } from '../expectations.ts'
import type { Json, Scenario } from '../scenario.ts'
import { callTool, type Scene, type SentStep, send, step, type TableStep } from '../steps.ts'
import { brings, type Finder, isPlain, needsConfirmation, saidOf, scopesOf, toolThat, undoable } from '../tools.ts'
import { onState, stateTokenIn } from './state.ts'

const row = extensionTable('transactions')

const compensation = (tool: Json): Json => objectIn(saidOf(tool, 'transactions'), 'compensation')
const hasUndo = (tool: Json): boolean => typeof compensation(tool).tool === 'string'
const final = toolThat(
  'names no compensation, and needs nothing',
  (tool, peer) => isPlain(tool) && !hasUndo(tool) && peer.mayCall(String(tool.name)),
)
const slow = toolThat('names a compensation and takes its time ("slow")', tool => hasUndo(tool) && brings(tool, 'slow'))
const stubborn = toolThat('brings about "compensation:fails"', tool => hasUndo(tool) && brings(tool, 'compensation:fails'))
const stateful = toolThat(
  'names a compensation and brings about "state:branch"',
  tool => hasUndo(tool) && brings(tool, 'state:branch'),
)
const guarded = toolThat('is taken back by a tool that needs a yes', (tool, peer) => {
  const back = peer.tool(String(compensation(tool).tool))
  return isPlain(tool) && back !== undefined && needsConfirmation(back) && scopesOf(back).length === 0
})

/** The transaction of a scenario, as requests name it. */
const idOf = (x: Scene, name = 'transaction'): Json => ({ transaction_id: x.key(name) })

/** What a call says that is a step of the scenario's transaction. */
export function within(x: Scene, more: Saying = {}): { readonly say: Saying } {
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
const noResult = { 'A refused step has a result': hasResult({ structuredContent: isAbsent }) }

/** The steps of answers 1 to 3, the last one first. */
const lastFirst: Expectation<PeerAnswer, Scene> = (it, { was }) => {
  const ids = [3, 2, 1].map(at => was(at).member('transactions').step_id)
  return sameJson(
    stepsIn(it).map(one => one.step_id),
    ids,
  )
}

const rolledBack = (says: string) => ending('rollback').expect({ [says]: hasResult({ status: 'rolled_back' }) })

export const transactions: readonly Scenario[] = [
  row('E5-11', 'An id of a transaction is used once, also after its end', [
    beginning(),
    send('transaction/begin', x => idOf(x)).expect({
      'A second begin': conflict,
      'A method that failed does not answer with -31000': hasCode(-31000),
    }),
    ending('commit').expect({ 'transaction/commit': isMade }),
    send('transaction/begin', x => idOf(x)).expect({ 'A begin after the end': conflict }),
  ]),
  row('E5-12', 'A step of a transaction that is over, or never was, is refused before it is made', [
    beginning(),
    ending('commit').expect({ 'transaction/commit': isMade }),
    callTool(undoable, x => within(x)).expect({ 'A step after the end': conflict, ...noResult }),
    callTool(undoable, x => ({ say: { transactions: idOf(x, 'never') } })).expect({
      'A step of a transaction that never was': isRefusedBy('RESOURCE_NOT_FOUND'),
      ...noResult,
    }),
  ]),
  row('E5-13', 'A step names how it is taken back; what nothing takes back takes no part', [
    beginning(),
    callTool(undoable, x => within(x)).expect({
      'A step': isMade,
      'The answer does not say which step it was': (it, x) =>
        fitsPattern({ ...idOf(x), status: 'ok', step_id: isString }, it.said('transactions')),
      'The answer does not name the compensation that the list names, with parameters': (it, { tool }) => {
        const wanted = { tool: compensation(tool(undoable).listed).tool, parameters: isRecord }
        return fitsPattern(wanted, it.member('transactions').compensation)
      },
    }),
    callTool(final, x => within(x)).expect({ 'A step that nothing takes back': conflict }),
  ]),
  row('E5-14', 'A rollback takes steps back, the last one first, and lists each', [
    beginning(),
    part(undoable),
    part(undoable),
    part(undoable),
    ending('rollback', { reason: 'The kit wants it' }).expect({
      'transaction/rollback': isMade,
      'The transaction is not rolled_back': hasResult({ status: 'rolled_back' }),
      'The steps were not taken back last one first, each once': lastFirst,
      'A step that was taken back is not listed as compensated': it => stepsIn(it).every(one => one.status === 'compensated'),
    }),
  ]),
  row('E5-14b E5-14', 'A compensation that fails does not stop the others, and is told', [
    beginning(),
    part(undoable),
    part(stubborn, 'A step whose compensation fails'),
    part(undoable, 'A third step'),
    ending('rollback').expect({
      'The transaction is not partially_rolled_back': hasResult({ status: 'partially_rolled_back' }),
      'Not every step is listed with what became of it': it =>
        sameJson(
          stepsIn(it).map(one => one.status),
          ['compensated', 'compensation_failed', 'compensated'],
        ),
      'A compensation that failed has no error object': it => isString(objectIn(stepsIn(it)[1], 'error').code),
    }),
  ]),
  row('E5-15', 'A rollback or commit that is repeated gives the same report', { tools: [undoable] }, async x => {
    for (const how of ['rollback', 'commit'] as const) {
      const named = { transaction_id: x.key(how) }
      x.made(await x.ask('transaction/begin', { ...named, timeout_seconds: 60 }), 'transaction/begin')
      x.made(await x.call(undoable, { say: { transactions: named } }), 'A step')
      await x.ask(`transaction/${how}`, named)
      x.hold(await x.ask(`transaction/${how}`, named), {
        [`A second transaction/${how}`]: isMade,
        [`A second transaction/${how} gives another report`]: it => sameJson(reportOf(x.was(-2)), reportOf(it)),
      })
    }
  }),
  row(
    'X3 E14-8',
    'What was taken back is undone: its key is refused, its state is invalid',
    { wants: ['idempotency', 'state'] },
    [
      beginning(),
      callTool(stateful, x => within(x, { idempotency: { idempotency_key: x.key() } })).expect({
        'A step under a key': isMade,
        'A step that writes state gives no session_state': hasMeta('state', { session_state: isString }),
      }),
      ending('rollback').expect({ 'transaction/rollback': isMade }),
      callTool(stateful, x => within(x, { idempotency: { idempotency_key: x.key() } })).expect({
        'The key of a step that was taken back': isRefusedBy('IDEMPOTENCY_CONFLICT'),
      }),
      callTool(stateful, x => onState(stateTokenIn(x.was(1)))).expect({
        'The state of a step that was taken back': isRefusedBy('STATE_INVALID'),
      }),
    ],
  ),
  row('E5-16', 'A transaction that nobody touches is taken back by itself', [
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
  row(
    'E5-17',
    'Taking back needs no new yes, though the tool that does it asks for one when it is called',
    { wants: ['confirmation'] },
    [beginning(), part(guarded), rolledBack('A compensation waited for a yes, or was refused')],
  ),
  row('E5-18', 'A commit while a step runs is refused', { tools: [slow] }, async x => {
    await beginning().run(x)
    const running = x.begin(slow, within(x))
    await wait(150)
    x.refused(await x.ask('transaction/commit', idOf(x)), 'TRANSACTION_CONFLICT', 'A commit while a step runs')
    x.made(await running.called, 'The step that was running')
    x.made(await x.ask('transaction/commit', idOf(x)), 'A commit when it has ended')
  }),
]
