/** A plan of undoing says what undoing then does, without doing any of it; and a turn says when its parts began. */
import { expect, onTestFinished, test } from 'vitest'
import { createHost } from '../../src/host/create.ts'
import type { HostOptions } from '../../src/host/host.ts'
import { scripted } from '../../src/host/models/scripted.ts'
import { createServer } from '../../src/server/index.ts'
import { memoryStore } from '../../src/stores/memory.ts'
import { fakeClock } from '../../src/testing/clock.ts'
import { call, notesServer, shopServer, target } from '../console/host-console.ts'

const live = { enable: ['*'] }
const allow = { otherwise: { tool: 'allow' } } as const

async function hosting(options: HostOptions) {
  const { server, made } = shopServer()
  const servers = { shop: { target: target(server), live }, notes: { target: target(notesServer()), live } }
  const host = await createHost({ servers, policy: allow, ...options })
  onTestFinished(() => host.close())
  const talk = host.conversation('c')
  const tell = async (text: string) => {
    const turn = await talk.send(text)
    await turn.done
    return turn
  }
  return { host, server, made, talk, tell }
}

test('undoing does what its plan says, the last effect first', async () => {
  const calls = [call('create', { text: 'tea' }), call('add_note', { text: 'x' }), call('long'), call('mail', { text: 'hi' })]
  const model = scripted([{ calls: calls.flatMap(each => each.calls) }, 'Done.'])
  const { made, tell } = await hosting({ model, limits: { parallelCalls: 1 } })
  const turn = await tell('Do it')
  const plan = await turn.undoPlan()
  expect(await turn.undoPlan()).toEqual(plan)
  expect([made, turn.status]).toEqual([['tea'], 'done'])
  const report = await turn.undo()
  const planned = plan.steps.map(({ outcome, to: _, compensation: __, asks: ___, ...step }) => ({
    ...step,
    outcome: outcome === 'planned' ? 'undone' : outcome,
  }))
  expect(report.steps).toEqual(planned)
  expect([report.complete, report.turns]).toEqual([plan.complete, plan.turns])
})

test('a plan names the rule that will ask, the rule that forbids, and the server that is down', async () => {
  const model = scripted([call('create', { text: 'tea' }), 'Done.'])
  const { host, server, tell } = await hosting({ model })
  const turn = await tell('Do it')
  const step = async () => (await turn.undoPlan()).steps[0]
  await host.update({ policy: { ...allow, rules: [{ name: 'careful', do: 'ask', when: { tool: 'remove' } }] } })
  expect(await step()).toMatchObject({ outcome: 'planned', by: 'compensation', asks: 'careful' })
  await host.update({ policy: { ...allow, rules: [{ name: 'never', do: 'deny', when: { tool: 'remove' } }] } })
  expect(await step()).toMatchObject({ outcome: 'stays', why: { rule: 'never' }, compensation: { tool: 'remove' } })
  await host.update({ policy: allow })
  await server.close()
  await expect.poll(() => host.server('shop')?.client).toBe(undefined)
  expect(await step()).toMatchObject({ outcome: 'stays', why: { code: 'SERVER_UNAVAILABLE' } })
})

test('a plan takes all later turns along, and says where a state goes back to', async () => {
  const note = (text: string) => call('add_note', { text })
  const model = scripted([note('a'), 'One.', note('b'), 'Two.'])
  const { host, tell } = await hosting({ model })
  const [first, second] = [await tell('1'), await tell('2')]
  const [a] = await host.state.tree('notes', 'notes.edit')
  expect(await second.undoPlan()).toMatchObject({ turns: [1], steps: [{ seq: 1, outcome: 'planned', to: a?.checkpoint }] })
  expect(await first.undoPlan()).toMatchObject({
    turns: [1, 0],
    steps: [
      { seq: 1, to: a?.checkpoint },
      { seq: 0, to: null },
    ],
  })
})

test('hooks, inferences, calls and questions say when they began and how long they took, also after a restart', async () => {
  const clock = fakeClock()
  const server = createServer({ name: 'slow', version: '1.0.0', secret: 'a-secret-of-thirty-two-characters!', log: 'silent' })
  server.featureSet('slow.hooks', { description: 'Hooks' }).beforeInference(() => {
    clock.advance(40)
    return []
  })
  server.tool('work', {}, () => {
    clock.advance(250)
    return 'worked'
  })
  const after = (ms: number, answer: ReturnType<typeof call> | string) => () => {
    clock.advance(ms)
    return answer
  }
  const model = scripted([after(100, call('work')), after(50, 'Done.')], { clock })
  const store = memoryStore()
  const options: HostOptions = {
    ...{ clock, store, model, servers: { slow: { target: target(server), live } } },
    policy: { rules: [{ name: 'careful', do: 'ask', when: { kind: 'tool' } }] },
    onApproval: () => {
      clock.advance(500)
      return { yes: true, by: 'ann' }
    },
  }
  const host = await createHost(options)
  const began = clock.now()
  const turn = await host.conversation('c').send('Work')
  await turn.done
  const expected = {
    at: began,
    endedAt: began + 40 + 100 + 500 + 250 + 40 + 50,
    hooks: [
      { began, ms: 40 },
      { began: began + 890, ms: 40 },
    ],
    inferences: [
      { n: 0, began: began + 40, ms: 100, calls: [0] },
      { n: 1, began: began + 930, ms: 50, firstMs: 50, calls: [] },
    ],
    calls: [{ outcome: { began: began + 140, ms: 750, asked: { began: began + 140, ms: 500, yes: true, by: 'ann' } } }],
  }
  const shown = ({ at, endedAt, hooks, inferences, calls }: typeof turn) => ({ at, endedAt, hooks, inferences, calls })
  expect(shown(turn)).toMatchObject(expected)
  await host.close()
  const again = await createHost({ ...options, model: scripted([]) })
  onTestFinished(() => again.close())
  const [found] = await again.conversation('c').turns()
  expect(found && shown(found)).toMatchObject(expected)
})
