/** E5, second half: steps that stay together, or are taken back together. */
import { setTimeout as wait } from 'node:timers/promises'
import { isRecord } from '../../jsonrpc/message.ts'
import type { Json, Scenario } from '../scenario.ts'
import { brings, type FoundTool, isPlain, saidOf, scopesOf, toolThat, undoable } from '../tools.ts'
import { listOf, newKey, type Stage, scenariosOf } from './scenario-of.ts'
import type { Called, Talk } from './talk.ts'

const scenario = scenariosOf('transactions')

const compensation = (tool: Json): Json => {
  const said = saidOf(tool, 'transactions')['compensation']
  return isRecord(said) ? said : {}
}
const hasUndo = (tool: Json): boolean => typeof compensation(tool)['tool'] === 'string'
const final = toolThat(
  'names no compensation, and needs nothing',
  (tool, peer) => isPlain(tool) && !hasUndo(tool) && peer.mayCall(String(tool['name'])),
)
const slow = toolThat('names a compensation and takes its time ("slow")', tool => hasUndo(tool) && brings(tool, 'slow'))
const stubborn = toolThat('brings about "compensation:fails"', tool => hasUndo(tool) && brings(tool, 'compensation:fails'))
const stateful = toolThat(
  'names a compensation and brings about "state:branch"',
  tool => hasUndo(tool) && brings(tool, 'state:branch'),
)

interface Steps {
  readonly id: string
  step(tool: FoundTool, saying?: Json): Promise<Called>
}

async function begun(talk: Talk, stage: Pick<Stage<never>, 'made'>, more: Json = {}): Promise<Steps> {
  const id = newKey()
  const answer = await talk.ask('transaction/begin', { transaction_id: id, timeout_seconds: 60, ...more })
  stage.made(answer, 'transaction/begin')
  return { id, step: (tool, saying = {}) => talk.call(tool.name, tool.args, { transactions: { transaction_id: id }, ...saying }) }
}

const compensated = (called: Called): readonly unknown[] =>
  listOf(called.result['steps_compensated']).map(step => step['step_id'])

export const transactions: readonly Scenario[] = [
  scenario({
    id: 'E5-11',
    title: 'An id of a transaction is used once, also after its end',
    run: async stage => {
      const { id } = await begun(stage.talk, stage)
      const again = await stage.talk.ask('transaction/begin', { transaction_id: id })
      stage.refused(again, 'TRANSACTION_CONFLICT', 'A second begin')
      stage.expect(again.code === -31000, 'A method that failed does not answer with -31000', again.frames)
      stage.made(await stage.talk.ask('transaction/commit', { transaction_id: id }), 'transaction/commit')
      stage.refused(
        await stage.talk.ask('transaction/begin', { transaction_id: id }),
        'TRANSACTION_CONFLICT',
        'A begin after the end',
      )
    },
  }),
  scenario({
    id: 'E5-12',
    title: 'A step of a transaction that is over, or never was, is refused before it is made',
    tools: { undoable },
    run: async stage => {
      const { talk, tools } = stage
      const { id, step } = await begun(talk, stage)
      stage.made(await talk.ask('transaction/commit', { transaction_id: id }), 'transaction/commit')
      const late = await step(tools.undoable)
      stage.refused(late, 'TRANSACTION_CONFLICT', 'A step after the end')
      const strange = await talk.call(tools.undoable.name, tools.undoable.args, { transactions: { transaction_id: newKey() } })
      stage.refused(strange, 'RESOURCE_NOT_FOUND', 'A step of a transaction that never was')
      for (const called of [late, strange])
        stage.expect(called.result['structuredContent'] === undefined, 'A refused step has a result', called.frames)
    },
  }),
  scenario({
    id: 'E5-13',
    title: 'A step names how it is taken back; what nothing takes back takes no part',
    tools: { undoable, final },
    run: async stage => {
      const { talk, tools, expect } = stage
      const { id, step } = await begun(talk, stage)
      const called = await step(tools.undoable)
      stage.made(called, 'A step')
      const said = called.member('transactions')
      const back = isRecord(said['compensation']) ? said['compensation'] : {}
      expect(
        said['transaction_id'] === id && said['status'] === 'ok' && typeof said['step_id'] === 'string',
        'The answer does not say which step it was',
        called.frames,
      )
      expect(
        back['tool'] === compensation(tools.undoable.listed)['tool'] && isRecord(back['parameters']),
        'The answer does not name the compensation that the list names, with parameters',
        called.frames,
      )
      stage.refused(await step(tools.final), 'TRANSACTION_CONFLICT', 'A step that nothing takes back')
    },
  }),
  ...rollbacks(),
  ...ends(),
]

function rollbacks(): readonly Scenario[] {
  return [
    scenario({
      id: 'E5-14',
      title: 'A rollback takes steps back, the last one first, and lists each',
      tools: { undoable },
      run: async stage => {
        const { talk, tools, expect } = stage
        const { id, step } = await begun(talk, stage)
        const steps = [await step(tools.undoable), await step(tools.undoable), await step(tools.undoable)]
        for (const one of steps) stage.made(one, 'A step')
        const ids = steps.map(one => one.member('transactions')['step_id'])
        const back = await talk.ask('transaction/rollback', { transaction_id: id, reason: 'The kit wants it' })
        stage.made(back, 'transaction/rollback')
        expect(back.result['status'] === 'rolled_back', 'The transaction is not rolled_back', back.frames)
        expect(
          JSON.stringify(compensated(back)) === JSON.stringify(ids.reverse()),
          'The steps were not taken back last one first, each once',
          back.frames,
        )
        const wrong = listOf(back.result['steps_compensated']).some(one => one['status'] !== 'compensated')
        expect(!wrong, 'A step that was taken back is not listed as compensated', back.frames)
      },
    }),
    scenario({
      id: 'E5-14b',
      also: ['E5-14'],
      title: 'A compensation that fails does not stop the others, and is told',
      tools: { undoable, stubborn },
      run: async stage => {
        const { talk, tools, expect } = stage
        const { id, step } = await begun(talk, stage)
        stage.made(await step(tools.undoable), 'A step')
        stage.made(await step(tools.stubborn), 'A step whose compensation fails')
        stage.made(await step(tools.undoable), 'A third step')
        const back = await talk.ask('transaction/rollback', { transaction_id: id })
        expect(back.result['status'] === 'partially_rolled_back', 'The transaction is not partially_rolled_back', back.frames)
        const statuses = listOf(back.result['steps_compensated']).map(one => one['status'])
        expect(
          JSON.stringify(statuses) === '["compensated","compensation_failed","compensated"]',
          'Not every step is listed with what became of it',
          back.frames,
        )
        const failed = listOf(back.result['steps_compensated'])[1]
        expect(
          isRecord(failed?.['error']) && typeof failed['error']['code'] === 'string',
          'A compensation that failed has no error object',
          back.frames,
        )
      },
    }),
    scenario({
      id: 'E5-15',
      title: 'A rollback or commit that is repeated gives the same report',
      tools: { undoable },
      run: async stage => {
        const { talk, tools, expect } = stage
        for (const method of ['transaction/rollback', 'transaction/commit']) {
          const { id, step } = await begun(talk, stage)
          stage.made(await step(tools.undoable), 'A step')
          const first = await talk.ask(method, { transaction_id: id })
          const again = await talk.ask(method, { transaction_id: id })
          stage.made(again, `A second ${method}`)
          expect(JSON.stringify(reportOf(first)) === JSON.stringify(reportOf(again)), `A second ${method} gives another report`, [
            ...first.frames,
            ...again.frames,
          ])
        }
      },
    }),
    scenario({
      id: 'X3',
      title: 'What was taken back is undone: its key is refused, its state is invalid',
      wants: ['idempotency', 'state'],
      also: ['E14-8'],
      tools: { stateful },
      run: async stage => {
        const { talk, tools, expect } = stage
        const { id, step } = await begun(talk, stage)
        const key = newKey()
        const called = await step(tools.stateful, { idempotency: { idempotency_key: key } })
        stage.made(called, 'A step under a key')
        const state = called.member('state')['session_state']
        expect(typeof state === 'string', 'A step that writes state gives no session_state', called.frames)
        stage.made(await talk.ask('transaction/rollback', { transaction_id: id }), 'transaction/rollback')
        const again = await talk.call(tools.stateful.name, tools.stateful.args, {
          transactions: { transaction_id: id },
          idempotency: { idempotency_key: key },
        })
        stage.refused(again, 'IDEMPOTENCY_CONFLICT', 'The key of a step that was taken back')
        const invalid = await talk.call(tools.stateful.name, tools.stateful.args, { state: { session_state: state } })
        stage.refused(invalid, 'STATE_INVALID', 'The state of a step that was taken back')
      },
    }),
  ]
}

function reportOf({ result }: Called): unknown {
  return [result['status'], result['steps'], result['steps_compensated'], result['steps_completed']]
}

function ends(): readonly Scenario[] {
  return [
    scenario({
      id: 'E5-16',
      title: 'A transaction that nobody touches is taken back by itself',
      tools: { undoable },
      run: async stage => {
        const { talk, tools, expect } = stage
        const { id, step } = await begun(talk, stage, { timeout_seconds: 1 })
        stage.made(await step(tools.undoable), 'A step')
        await wait(1_500)
        for (let round = 0; ; round++) {
          const now = await talk.ask('transaction/get', { transaction_id: id })
          if (now.result['status'] === 'rolled_back') return
          expect(round < 40, 'A transaction is not rolled back long after its timeout_seconds', now.frames)
          await wait(100)
        }
      },
    }),
    scenario({
      id: 'E5-17',
      title: 'Taking back needs no new yes, though the tool that does it asks for one when it is called',
      wants: ['confirmation'],
      needs: peer => (guarded.find(peer) === undefined ? `No tool is listed that ${guarded.that}` : undefined),
      run: async stage => {
        const { talk, bench, leave, expect } = stage
        const tool = guarded.find(bench.peer)
        if (tool === undefined) return leave('There is no such tool')
        const { id, step } = await begun(talk, stage)
        stage.made(await step(tool), 'A step')
        const back = await talk.ask('transaction/rollback', { transaction_id: id })
        expect(back.result['status'] === 'rolled_back', 'A compensation waited for a yes, or was refused', back.frames)
      },
    }),
    scenario({
      id: 'E5-18',
      title: 'A commit while a step runs is refused',
      tools: { slow },
      run: async stage => {
        const { talk, tools } = stage
        const { id } = await begun(talk, stage)
        const running = talk.begin(tools.slow.name, tools.slow.args, { transactions: { transaction_id: id } })
        await wait(150)
        stage.refused(
          await talk.ask('transaction/commit', { transaction_id: id }),
          'TRANSACTION_CONFLICT',
          'A commit while a step runs',
        )
        stage.made(await running.called, 'The step that was running')
        stage.made(await talk.ask('transaction/commit', { transaction_id: id }), 'A commit when it has ended')
      },
    }),
  ]
}

const guarded = toolThat('is taken back by a tool that needs a yes', (tool, peer) => {
  const back = peer.tool(String(compensation(tool)['tool']))
  return (
    isPlain(tool) &&
    back !== undefined &&
    saidOf(back, 'confirmation')['requires_confirmation'] === true &&
    scopesOf(back).length === 0
  )
})
