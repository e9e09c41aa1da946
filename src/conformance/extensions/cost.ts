/** E3: what a call may cost, what it did cost, and what is left. */
import { setTimeout as wait } from 'node:timers/promises'
import { isRecord } from '../../jsonrpc/message.ts'
import type { Json, Scenario } from '../scenario.ts'
import { bringing, type FoundTool, isPlain, saidOf, toolThat } from '../tools.ts'
import { listOf, newKey, scenariosOf } from './scenario-of.ts'
import type { Called, Talk } from './talk.ts'

const scenario = scenariosOf('operational')

const costOf = (tool: Json): Json => {
  const cost = saidOf(tool, 'operational')['cost']
  return isRecord(cost) ? cost : {}
}
const metered = toolThat(
  'is metered and says its estimated_units',
  tool => isPlain(tool) && costOf(tool)['category'] === 'metered' && Number(costOf(tool)['estimated_units']) > 0,
)
const approved = toolThat('has the cost category requires_approval', tool => costOf(tool)['category'] === 'requires_approval')
const scarce = bringing('limit:quota')
const hurried = bringing('limit:rate')
const categories = ['free', 'metered', 'requires_approval']
const latencies = ['instant', 'seconds', 'minutes']

const quotaOf = (said: Json): Json => (isRecord(said['quota']) ? said['quota'] : {})

/** Calls until nothing is left; what was wrong on the way. */
async function usedUp(talk: Talk, tool: FoundTool): Promise<{ says: string; frames: Called['frames'] } | undefined> {
  let left: number | undefined
  for (let round = 0; round < 60; round++) {
    const called = await talk.call(tool.name, tool.args)
    const { code, category, retry_after_seconds: seconds } = called.problem
    const { frames } = called
    if (code === undefined) {
      const remaining = Number(quotaOf(called.member('operational'))['remaining'])
      if (!(Number.isInteger(remaining) && remaining >= 0))
        return { says: 'A call under a quota does not say what remains of it', frames }
      if (left !== undefined && remaining !== left - 1)
        return { says: `The quota went from ${left} to ${remaining} with one call`, frames }
      left = remaining
      continue
    }
    if (code !== 'QUOTA_EXHAUSTED' || category !== 'rate_limited')
      return { says: 'A call beyond the quota is not refused by QUOTA_EXHAUSTED, rate_limited', frames }
    if (!(Number.isInteger(seconds) && Number(seconds) >= 0))
      return { says: 'QUOTA_EXHAUSTED has no whole retry_after_seconds', frames }
    if (left !== undefined) return left === 0 ? undefined : { says: `A call was refused when ${left} remained`, frames }
    if (Number(seconds) > 8) return undefined
    await wait(Number(seconds) * 1000 + 50)
  }
  return undefined
}

export const cost: readonly Scenario[] = [
  scenario({
    id: 'E3-0',
    title: 'What tools say of cost and latency is of the words that there are, and has no counters',
    writes: false,
    run: async ({ bench, expect }) => {
      for (const tool of bench.peer.tools) {
        const said = saidOf(tool, 'operational')
        const cost = said['cost']
        if (cost !== undefined)
          expect(
            isRecord(cost) && categories.includes(String(cost['category'])),
            `The cost of ${String(tool['name'])} has no category`,
          )
        if (said['latency'] !== undefined)
          expect(
            latencies.includes(String(said['latency'])),
            `The latency of ${String(tool['name'])} is none of ${latencies.join(', ')}`,
          )
        expect(
          said['quota'] === undefined && said['units_used'] === undefined,
          `${String(tool['name'])} lists counters: a list that is kept would lie`,
        )
      }
    },
  }),
  scenario({
    id: 'E3-7',
    tries: 3,
    wants: ['manifest'],
    title: 'What says nothing of its cost is nowhere said to be free',
    writes: false,
    run: async ({ talk, expect, made }) => {
      const called = await talk.ask('manifest/get')
      made(called, 'manifest/get')
      const { result } = await talk.ask('tools/list')
      const manifest = isRecord(called.result['manifest']) ? called.result['manifest'] : {}
      const shown = new Map(listOf(manifest['tools']).map(tool => [tool['name'], tool]))
      for (const tool of listOf(result['tools'])) {
        const entry = shown.get(tool['name'])
        if (entry === undefined) continue
        const [listed, told] = [costOf(tool)['category'], isRecord(entry['cost']) ? entry['cost']['category'] : undefined]
        expect(
          listed === told,
          `The list says ${String(listed ?? 'nothing')} of the cost of ${String(tool['name'])}, the manifest ${String(told ?? 'nothing')}`,
          called.frames,
        )
      }
    },
  }),
  scenario({
    id: 'E3-1',
    title: 'What needs approval of its price does not run before that',
    tools: { approved },
    run: async ({ talk, tools: { approved }, refused, made }) => {
      const asked = await talk.call(approved.name, approved.args)
      refused(asked, 'CONFIRMATION_REQUIRED', 'A call whose price nobody agreed to')
      const yes = { confirmation_token: asked.member('confirmation')['confirmation_token'], user_confirmed: true }
      made(await talk.call(approved.name, approved.args, { confirmation: yes }), 'The call whose price was agreed to')
    },
  }),
  scenario({
    id: 'E3-2',
    also: ['E3-8'],
    title: 'A call that may cost more than its caller allows is refused before it runs',
    tools: { metered },
    run: async ({ talk, tools: { metered }, refused, made, expect }) => {
      const estimate = Number(costOf(metered.listed)['estimated_units'])
      const over = await talk.call(metered.name, metered.args, { operational: { max_units: estimate / 1000 } })
      refused(over, 'BUDGET_EXCEEDED', 'A call over its max_units')
      expect(!(Number(over.member('operational')['units_used']) > 0), 'A refused call used units', over.frames)
      made(
        await talk.call(metered.name, metered.args, { operational: { max_units: estimate * 1000 } }),
        'A call within its max_units',
      )
    },
  }),
  scenario({
    id: 'E3-3',
    title: 'A call that was made says what it cost, under the label that the list names; a repetition cost 0',
    tools: { metered },
    run: async ({ talk, tools: { metered }, made, expect, bench }) => {
      const saying = { idempotency: { idempotency_key: newKey() } }
      const first = await talk.call(metered.name, metered.args, saying)
      made(first, 'A metered call')
      const said = first.member('operational')
      expect(
        typeof said['units_used'] === 'number' && said['units_used'] >= 0,
        'A metered call does not say its units_used',
        first.frames,
      )
      expect(
        said['unit_label'] === costOf(metered.listed)['unit_label'],
        'units_used are of another unit_label than the list names',
        first.frames,
      )
      if (bench.peer.extension('dev.vivarium/idempotency') === undefined) return
      const again = await talk.call(metered.name, metered.args, saying)
      expect(again.member('operational')['units_used'] === 0, 'A repetition does not say units_used: 0', again.frames)
    },
  }),
  scenario({
    id: 'E3-4',
    also: ['E3-5', 'E3-8'],
    title: 'A quota falls by one with each call, down to 0; then calls are refused, with the time to wait',
    tools: { scarce },
    run: async ({ talk, tools: { scarce }, bench }) => {
      // Other scenarios, or other users, may spend of the same quota meanwhile: it has to be right once in three times.
      for (let round = 0; round < 3; round++) {
        const fault = await usedUp(talk, scarce)
        if (fault === undefined) return
        if (round === 2) bench.fail(fault.says, fault.frames)
      }
    },
  }),
  scenario({
    id: 'X1l',
    also: ['X1', 'E5-10'],
    wants: ['idempotency'],
    tries: 3,
    title: 'A replay is given also when nothing is left of the quota',
    tools: { scarce },
    run: async ({ talk, tools: { scarce }, expect, leave }) => {
      const saying = { idempotency: { idempotency_key: newKey() } }
      const call = (keyed: boolean): Promise<Called> => talk.call(scarce.name, scarce.args, keyed ? saying : {})
      let first = await call(true)
      // Other users spend of the same quota.
      for (let round = 0; round < 8 && first.problem['code'] === 'QUOTA_EXHAUSTED'; round++) {
        const seconds = Number(first.problem['retry_after_seconds'])
        if (!(seconds <= 8)) break
        await wait(seconds * 1000 + Math.random() * 300)
        first = await call(true)
      }
      if (first.problem['code'] !== undefined) return leave('Nothing is left of the quota')
      for (let round = 0; round < 60; round++) if ((await call(false)).problem['code'] === 'QUOTA_EXHAUSTED') break
      const again = await call(true)
      expect(
        again.member('idempotency')['was_replay'] === true && again.text === first.text,
        'The stored result was not given again: limits came before the replay',
        again.frames,
      )
    },
  }),
  scenario({
    id: 'E3-5',
    title: 'Who calls too often is told how long to wait, over HTTP also in a header',
    tools: { hurried },
    run: async ({ talk, tools: { hurried }, refused, expect, bench, leave }) => {
      for (let round = 0; round < 100; round++) {
        const called = await talk.call(hurried.name, hurried.args)
        if (called.problem['code'] === undefined) continue
        refused(called, 'RATE_LIMIT_EXCEEDED', 'A call beyond the rate')
        const { category, retry_after_seconds: seconds } = called.problem
        expect(
          category === 'rate_limited' && Number.isInteger(seconds) && Number(seconds) >= 1,
          'RATE_LIMIT_EXCEEDED is not rate_limited with retry_after_seconds',
          called.frames,
        )
        const { headers } = called.answer
        const isStream = String(headers?.['content-type']).startsWith('text/event-stream')
        if (bench.carrier === 'http' && !isStream) {
          expect(Number(headers?.['retry-after']) >= 1, 'The answer has no header Retry-After', called.frames)
          const both = headers?.['ratelimit'] !== undefined && headers['ratelimit-policy'] !== undefined
          expect(both, 'The answer has no headers RateLimit and RateLimit-Policy', called.frames)
        }
        return
      }
      leave('The rate is higher than the kit calls')
    },
  }),
]
