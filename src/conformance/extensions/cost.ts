/** E3: what a call may cost, what it did cost, and what is left. */
import { setTimeout as wait } from 'node:timers/promises'
import { isRecord } from '../../jsonrpc/message.ts'
import { hasMeta, isMade, isRefusedBy, type PeerAnswer } from '../calls.ts'
import { extensionTable } from '../define.ts'
import { firstFault, objectIn, objectsIn } from '../expectations.ts'
import type { Scenario } from '../scenario.ts'
import { callTool, keyed, look, type Scene } from '../steps.ts'
import { bringing, costOf, isPlain, saidOf, toolThat } from '../tools.ts'
import { agreed } from './confirmation.ts'

const row = extensionTable('operational')

const metered = toolThat(
  'is metered and says its estimated_units',
  tool => isPlain(tool) && costOf(tool).category === 'metered' && Number(costOf(tool).estimated_units) > 0,
)
const approved = toolThat('has the cost category requires_approval', tool => costOf(tool).category === 'requires_approval')
const scarce = bringing('limit:quota')
const hurried = bringing('limit:rate')
const categories = ['free', 'metered', 'requires_approval']
const latencies = ['instant', 'seconds', 'minutes']
const isAmount = (value: unknown): boolean => typeof value === 'number' && value >= 0
const allowing = (factor: number) => (x: Scene) => ({
  say: { operational: { max_units: Number(costOf(x.tool(metered).listed).estimated_units) * factor } },
})

/** Calls until nothing is left; what was wrong on the way. */
async function usedUp(x: Scene): Promise<{ says: string; frames: PeerAnswer['frames'] } | undefined> {
  let left: number | undefined
  for (let round = 0; round < 60; round++) {
    const called = await x.call(scarce)
    const { code, category, retry_after_seconds: seconds } = called.problem
    const { frames } = called
    if (code === undefined) {
      const remaining = Number(objectIn(called.member('operational'), 'quota').remaining)
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
  row('E3-0', 'What tools say of cost and latency is of the words that there are, and has no counters', { writes: false }, [
    look(x => x.bench.peer.tools).expect({
      'Every tool says of its cost what can be said': tools =>
        firstFault(tools, tool => {
          const { cost, latency, quota, units_used: used } = saidOf(tool, 'operational')
          const name = String(tool.name)
          if (cost !== undefined && !(isRecord(cost) && categories.includes(String(cost.category))))
            return `The cost of ${name} has no category`
          if (latency !== undefined && !latencies.includes(String(latency)))
            return `The latency of ${name} is none of ${latencies.join(', ')}`
          return (quota !== undefined || used !== undefined) && `${name} lists counters: a list that is kept would lie`
        }),
    }),
  ]),
  row(
    'E3-7',
    'What says nothing of its cost is nowhere said to be free',
    { tries: 3, wants: ['manifest'], writes: false },
    async x => {
      const called = await x.ask('manifest/get')
      x.made(called, 'manifest/get')
      const { result } = await x.ask('tools/list')
      const shown = new Map(objectsIn(called.result, 'manifest', 'tools').map(tool => [tool.name, tool]))
      for (const tool of objectsIn(result, 'tools')) {
        const entry = shown.get(tool.name)
        if (entry === undefined) continue
        const [listed, told] = [costOf(tool).category, objectIn(entry, 'cost').category]
        const says = `The list says ${String(listed ?? 'nothing')} of the cost of ${String(tool.name)}, the manifest ${String(told ?? 'nothing')}`
        x.expect(listed === told, says, called.frames)
      }
    },
  ),
  row('E3-1', 'What needs approval of its price does not run before that', [
    callTool(approved).expect({ 'A call whose price nobody agreed to': isRefusedBy('CONFIRMATION_REQUIRED') }),
    callTool(approved, x => ({ say: agreed(x.was(0)) })).expect({ 'The call whose price was agreed to': isMade }),
  ]),
  row('E3-2 E3-8', 'A call that may cost more than its caller allows is refused before it runs', [
    callTool(metered, allowing(0.001)).expect({
      'A call over its max_units': isRefusedBy('BUDGET_EXCEEDED'),
      'A refused call used units': it => !(Number(it.member('operational').units_used) > 0),
    }),
    callTool(metered, allowing(1_000)).expect({ 'A call within its max_units': isMade }),
  ]),
  row(
    'E3-3',
    'A call that was made says what it cost, under the label that the list names; a repetition cost 0',
    { tools: [metered] },
    async x => {
      x.hold(await x.call(metered, keyed(x)), {
        'A metered call': isMade,
        'A metered call does not say its units_used': hasMeta('operational', { units_used: isAmount }),
        'units_used are of another unit_label than the list names': it =>
          it.member('operational').unit_label === costOf(x.tool(metered).listed).unit_label,
      })
      if (x.bench.peer.extension('dev.vivarium/idempotency') === undefined) return
      const repetition = hasMeta('operational', { units_used: 0 })
      x.hold(await x.call(metered, keyed(x)), { 'A repetition does not say units_used: 0': repetition })
    },
  ),
  row(
    'E3-4 E3-5 E3-8',
    'A quota falls by one with each call, down to 0; then calls are refused, with the time to wait',
    { tools: [scarce] },
    async x => {
      // Other scenarios, or other users, may spend of the same quota meanwhile: it has to be right once in three times.
      for (let round = 0; round < 3; round++) {
        const fault = await usedUp(x)
        if (fault === undefined) return
        if (round === 2) x.fail(fault.says, fault.frames)
      }
    },
  ),
  row(
    'X1l X1 E5-10',
    'A replay is given also when nothing is left of the quota',
    { wants: ['idempotency'], tries: 3, tools: [scarce] },
    async x => {
      let first = await x.call(scarce, keyed(x))
      // Other users spend of the same quota.
      for (let round = 0; round < 8 && first.problem.code === 'QUOTA_EXHAUSTED'; round++) {
        const seconds = Number(first.problem.retry_after_seconds)
        if (!(seconds <= 8)) break
        await wait(seconds * 1000 + Math.random() * 300)
        first = await x.call(scarce, keyed(x))
      }
      if (first.problem.code !== undefined) return x.leave('Nothing is left of the quota')
      for (let round = 0; round < 60; round++) if ((await x.call(scarce)).problem.code === 'QUOTA_EXHAUSTED') break
      const again = await x.call(scarce, keyed(x))
      const replayed = again.member('idempotency').was_replay === true && again.text === first.text
      x.expect(replayed, 'The stored result was not given again: limits came before the replay')
    },
  ),
  row('E3-5', 'Who calls too often is told how long to wait, over HTTP also in a header', { tools: [hurried] }, async x => {
    for (let round = 0; round < 100; round++) {
      const called = await x.call(hurried)
      if (called.problem.code === undefined) continue
      x.refused(called, 'RATE_LIMIT_EXCEEDED', 'A call beyond the rate')
      const { category, retry_after_seconds: seconds } = called.problem
      const told = category === 'rate_limited' && Number.isInteger(seconds) && Number(seconds) >= 1
      x.expect(told, 'RATE_LIMIT_EXCEEDED is not rate_limited with retry_after_seconds')
      const { headers } = called.answer
      const isStream = String(headers?.['content-type']).startsWith('text/event-stream')
      if (x.carrier !== 'http' || isStream) return
      x.expect(Number(headers?.['retry-after']) >= 1, 'The answer has no header Retry-After')
      const both = headers?.ratelimit !== undefined && headers['ratelimit-policy'] !== undefined
      return x.expect(both, 'The answer has no headers RateLimit and RateLimit-Policy')
    }
    x.leave('The rate is higher than the kit calls')
  }),
]
