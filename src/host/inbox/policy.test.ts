import { afterEach, expect, it } from 'vitest'
import type { PushEvent } from '../../features/live/push-events/messages.ts'
import { createPolicy, type PolicyOptions } from '../../policy/policy.ts'
import type { PolicyRules } from '../../policy/rules/rule.ts'
import { memoryStore } from '../../stores/memory.ts'
import { fakeClock } from '../../testing/clock.ts'
import { Inbox } from './inbox.ts'
import type { InboxEntry } from './options.ts'

const closing: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const close of closing.splice(0)) await close()
})

const event = (eventId: string, more: Partial<PushEvent> = {}): PushEvent => ({
  featureSet: 'notes',
  eventId,
  timestamp: '2026-01-23T10:30:00Z',
  content: [{ type: 'text', text: eventId }],
  ...more,
})

/** Everything that is under way on a store in memory. */
const settled = async (): Promise<void> => {
  for (let turn = 0; turn < 20; turn++) await new Promise(resolve => setImmediate(resolve))
}

async function world(rules: PolicyRules, onApproval?: PolicyOptions['onApproval']) {
  const clock = fakeClock(Date.parse('2026-01-10T22:30:00Z'))
  const store = memoryStore({ now: clock.now })
  const policy = await createPolicy({ rules, store, clock, ...(onApproval && { onApproval }) })
  const runs: InboxEntry[] = []
  let ids = 0
  const start = async () => {
    const inbox = new Inbox({ store, clock, policy, id: () => `i${++ids}` })
    closing.push(() => inbox.close())
    await inbox.open(async entry => {
      runs.push(entry)
      await entry.commit([])
    })
    return inbox
  }
  return { clock, store, policy, start, runs, ids: () => runs.map(({ events }) => events.map(({ eventId }) => eventId)) }
}

it('L9.3-2: what the policy refuses is not accepted, with the rule and the fix, and may come again', async () => {
  const { start, runs, policy } = await world({ rules: [{ name: 'no notes', do: 'deny', when: { featureSet: 'notes' } }] })
  const inbox = await start()
  expect(await inbox.accept('s', event('e1'))).toMatchObject({
    accepted: false,
    reason: expect.stringContaining('no notes'),
    data: { code: 'POLICY_DENIED', rule: 'no notes' },
  })
  await settled()
  expect([runs, await inbox.get('s', 'e1')]).toEqual([[], undefined])
  await policy.update({})
  expect(await inbox.accept('s', event('e1'))).toMatchObject({ accepted: true })
})

it('L9.3-2: beyond a rate of the policy the reason is the rate, with the time to wait; what was accepted before keeps its answer', async () => {
  const { start } = await world({ rules: [{ name: 'slow', do: 'deny', when: { above: { count: 1, per: '10s' } } }] })
  const first = await (await start()).accept('s', event('e1'))
  const inbox = await start()
  expect(await inbox.accept('s', event('e2'))).toMatchObject({ accepted: false, reason: 'rate', retryAfterMs: 10_000 })
  expect(await inbox.accept('s', event('e1'))).toEqual(first)
})

it('what is held is accepted, waits until then, and goes on after a restart', async () => {
  const hours = { from: '22:00', to: '07:00', zone: 'UTC' }
  const { start, ids, clock } = await world({ rules: [{ name: 'quiet', do: 'hold', when: { hours } }] })
  const first = await start()
  expect(await first.accept('s', event('e1'))).toMatchObject({ accepted: true, inferenceId: expect.any(String) })
  await settled()
  expect(ids()).toEqual([])
  await first.close()
  const inbox = await start()
  expect(await inbox.get('s', 'e1')).toMatchObject({ state: 'waiting', notBefore: Date.parse('2026-01-11T07:00:00Z') })
  clock.advance(8.5 * 3_600_000)
  await settled()
  expect(ids()).toEqual([['e1']])
})

it('events of one key within a window become one run with one inference, and each is done with it', async () => {
  const { start, ids, clock, store } = await world({ rules: [{ name: 'busy', do: 'coalesce', within: '30s' }] })
  const inbox = await start()
  const origin = { channel: 'a' }
  const answers = []
  for (const id of ['e1', 'e2', 'e3']) answers.push(await inbox.accept('s', event(id, { origin })))
  const other = await inbox.accept('s', event('x1', { origin: { channel: 'b' } }))
  expect(new Set(answers.map(answer => JSON.stringify(answer))).size).toBe(1)
  expect(other).not.toEqual(answers[0])
  await settled()
  expect(ids()).toEqual([])
  clock.advance(30_000)
  await settled()
  expect(ids().sort()).toEqual([['e1', 'e2', 'e3'], ['x1']])
  expect((await inbox.list({ server: 's', state: 'done' })).length).toBe(4)
  const next = await inbox.accept('s', event('e4', { origin }))
  expect(next).not.toEqual(answers[0])
  expect(await store.get('inbox/count/s')).toMatchObject({ value: '1' })
})

it('what has to be asked about is accepted, and runs once somebody says yes', async () => {
  const answer = Promise.withResolvers<boolean>()
  const questions: string[] = []
  const { start, ids } = await world({ rules: [{ name: 'careful', do: 'ask', when: { kind: 'push' } }] }, question => {
    questions.push(question.text)
    return answer.promise
  })
  const inbox = await start()
  expect(await inbox.accept('s', event('e1'))).toMatchObject({ accepted: true })
  await settled()
  expect([questions.length, ids()]).toEqual([1, []])
  answer.resolve(true)
  await settled()
  expect(ids()).toEqual([['e1']])
})

it('what somebody refuses never runs, and says why', async () => {
  const { start, ids } = await world({ otherwise: { push: 'ask' } }, () => false)
  const inbox = await start()
  await inbox.accept('s', event('e1'))
  await settled()
  expect(await inbox.get('s', 'e1')).toMatchObject({ state: 'refused', why: { code: 'APPROVAL_REFUSED' } })
  expect(ids()).toEqual([])
})

it('a yes to an event does not count for what was taken away while the question stood: the set off, or consent revoked', async () => {
  const declared = new Map([['notes', { description: 'Notes', uses: ['pushEvents'] }]])
  for (const by of ['a rule', 'revoking'] as const) {
    const answer = Promise.withResolvers<boolean>()
    const careful = { name: 'careful', do: 'ask', when: { kind: 'push' } } as const
    const { start, ids, policy } = await world({ rules: [careful], otherwise: { set: 'ask' } }, ({ about }) =>
      about === 'set' ? true : answer.promise,
    )
    expect(await policy.review('s', declared)).toEqual(['notes'])
    const inbox = await start()
    expect(await inbox.accept('s', event('e1'))).toMatchObject({ accepted: true })
    await settled()
    if (by === 'a rule') await policy.update({ rules: [careful], otherwise: { set: 'deny' } })
    else for (const { id } of await policy.grants('s')) await policy.revoke('s', id)
    answer.resolve(true)
    await settled()
    const code = by === 'a rule' ? 'POLICY_DENIED' : 'CONSENT_WITHDRAWN'
    expect(await inbox.get('s', 'e1')).toMatchObject({ state: 'refused', why: { code } })
    expect(ids()).toEqual([])
  }
})
