/** E2: what a call is for, and what would serve that better. */

import { setTimeout as wait } from 'node:timers/promises'
import { isRecord } from '../../jsonrpc/message.ts'
import { hasMeta, hasProblem, hasResult, isFirst, isMade, isRefusedBy, isReplay, type PeerAnswer, shownIn } from '../calls.ts'
import { extensionTable } from '../define.ts'
import { type Expectation, firstFault, is, listIn, objectIn, objectsIn, sameJson } from '../expectations.ts'
import { costOf, extensionId, isPlain, saidOf } from '../said.ts'
import type { Json, Scenario } from '../scenario.ts'
import { callPlain, callTool, inWords, keyed, type ScenarioContext, step } from '../steps.ts'
import { bringing, callable, counting, toolThat } from '../tools.ts'
import { agreed } from './confirmation.ts'

const intentRow = extensionTable('intent')
const reads = { writes: false }

const words = ['greet somebody', 'welcome a guest', 'find what else there is', 'see whether all is well', 'clean up']
const meant = (intent: string, more: Json = {}) => ({ say: { intent: { intent, ...more } } })
const membersOf = (result: Json) =>
  Object.keys(result)
    .filter(name => name !== '_meta')
    .sort()

/** E2: what a call is for. */
export const intent: readonly Scenario[] = [
  intentRow('E2-1', 'A call with an intent runs as without one').by([
    callTool(counting),
    callTool(counting, meant('greet somebody')).expect({
      'A call with an intent': isMade,
      'A call with an intent was not executed': (it, { was }) =>
        it.result.content !== undefined && shownIn(it) !== shownIn(was(0)),
      'A call with an intent has a different kind of result': (it, { was }) =>
        sameJson(membersOf(it.result), membersOf(was(0).result)),
    }),
  ]),
  intentRow('E2-2', 'A suggestion names a listed tool and a reason').by(callable, async x => {
    let seen = 0
    for (const intent of words) {
      const { suggestion } = (await x.call(callable, meant(intent))).member('intent')
      if (suggestion === undefined) continue
      seen++
      const { reason, recommended_tool: name } = objectIn(suggestion)
      x.expect(is.string(reason), 'A suggestion has no reason')
      const listed = is.string(name) && x.bench.peer.tool(name) !== undefined
      x.expect(listed, `A suggestion names ${JSON.stringify(name)}, which is not listed`)
    }
    if (seen === 0) x.leave('The server suggested nothing for the intents of the kit')
  }),
  intentRow('E2-3', 'If only a suggestion is requested, nothing runs, and the response says so').by('idempotency', [
    callTool(counting, x => keyed(x, meant('greet somebody', { mode: 'suggest_only' }).say)).expect({
      'The response to a request for a suggestion has no text': it => it.code === undefined && !it.isError && it.text.length > 0,
      'The response to a request for a suggestion has a result: the tool ran': hasResult({ structuredContent: is.absent }),
    }),
    callTool(counting, keyed).expect({
      'The real call under the same key': isMade,
      'A request for a suggestion stored a result under its key': isFirst,
    }),
  ]),
  intentRow('E2-5', 'An intent of more than 2048 bytes is refused').by([
    callTool(callable, meant('ä'.repeat(1_100))).expect({ 'An intent of 2200 bytes': isRefusedBy('INVALID_INPUT') }),
    callTool(callable, meant('a'.repeat(2_048))).expect({ 'An intent of 2048 bytes': isMade }),
  ]),
  intentRow('E2-6', 'A repeated call with another intent is the same call').by('idempotency', [
    callTool(counting, x => keyed(x, meant('one reason').say)).expect({ 'A call with an intent': isMade }),
    callTool(counting, x => keyed(x, meant('another reason').say)).expect({
      'The same with another intent': isMade,
      'Another intent ran the tool again': isReplay,
    }),
  ]),
]

// ── E3: what a call may cost, what it did cost, and what is left.

const costRow = extensionTable('operational')

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
const allowing = (factor: number) => (x: ScenarioContext) => ({
  say: { operational: { max_units: Number(costOf(x.tool(metered).listed).estimated_units) * factor } },
})

/** Calls until nothing is left; what was wrong on the way. */
async function usedUp(x: ScenarioContext): Promise<{ says: string; frames: PeerAnswer['frames'] } | undefined> {
  let left: number | undefined
  for (let round = 0; round < 60; round++) {
    const called = await x.call(scarce)
    const { code, category, retry_after_seconds: seconds } = called.problem
    const { frames } = called
    if (code === undefined) {
      const remaining = Number(objectIn(called.member('operational'), 'quota').remaining)
      if (!(Number.isInteger(remaining) && remaining >= 0))
        return { says: 'A call under a quota does not report the remaining quota', frames }
      if (left !== undefined && remaining !== left - 1)
        return { says: `The quota went from ${left} to ${remaining} with one call`, frames }
      left = remaining
      continue
    }
    if (code !== 'QUOTA_EXHAUSTED' || category !== 'rate_limited')
      return { says: 'A call beyond the quota is not refused with QUOTA_EXHAUSTED, rate_limited', frames }
    if (!(Number.isInteger(seconds) && Number(seconds) >= 0))
      return { says: 'QUOTA_EXHAUSTED has no whole retry_after_seconds', frames }
    if (left !== undefined) return left === 0 ? undefined : { says: `A call was refused although ${left} remained`, frames }
    if (Number(seconds) > 8) return undefined
    await wait(Number(seconds) * 1000 + 50)
  }
  return undefined
}

/** E3: prices, budgets, quotas and rates. */
export const cost: readonly Scenario[] = [
  costRow('E3-0', 'Cost and latency of tools use known values, and lists contain no counters').by(reads, [
    step(x => x.bench.peer.tools).expect({
      'Every tool declares a known cost category': tools =>
        firstFault(tools, tool => {
          const { cost, latency, quota, units_used: used } = saidOf(tool, 'operational')
          const name = String(tool.name)
          if (cost !== undefined && !(isRecord(cost) && categories.includes(String(cost.category))))
            return `The cost of ${name} has no category`
          if (latency !== undefined && !latencies.includes(String(latency)))
            return `The latency of ${name} is not one of ${latencies.join(', ')}`
          return (quota !== undefined || used !== undefined) && `${name} lists counters, which would be wrong in a cached list`
        }),
    }),
  ]),
  costRow('E3-7', 'A tool without a declared cost is never declared free').by(
    { ...reads, tries: 3, needs: ['manifest'] },
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
  costRow('E3-1', 'A tool whose price requires approval does not run before it').by([
    callTool(approved).expect({ 'A call whose price was not approved': isRefusedBy('CONFIRMATION_REQUIRED') }),
    callTool(approved, x => ({ say: agreed(x.was(0)) })).expect({ 'The call whose price was approved': isMade }),
  ]),
  costRow('E3-2 E3-8', 'A call that may cost more than its caller allows is refused before it runs').by([
    callTool(metered, allowing(0.001)).expect({
      'A call over its max_units': isRefusedBy('BUDGET_EXCEEDED'),
      'A refused call used units': it => !(Number(it.member('operational').units_used) > 0),
    }),
    callTool(metered, allowing(1_000)).expect({ 'A call within its max_units': isMade }),
  ]),
  costRow('E3-3', 'An executed call reports its cost with the listed unit_label; a repetition costs 0').by(metered, async x => {
    x.hold(await x.call(metered, keyed(x)), {
      'A metered call': isMade,
      'A metered call does not say its units_used': hasMeta('operational', { units_used: isAmount }),
      'units_used are of another unit_label than the list names': it =>
        it.member('operational').unit_label === costOf(x.tool(metered).listed).unit_label,
    })
    if (x.bench.peer.extension('dev.vivarium/idempotency') === undefined) return
    const repetition = hasMeta('operational', { units_used: 0 })
    x.hold(await x.call(metered, keyed(x)), { 'A repetition does not say units_used: 0': repetition })
  }),
  costRow('E3-4 E3-5 E3-8', 'A quota falls by one with each call, down to 0; then calls are refused, with the time to wait').by(
    scarce,
    async x => {
      // Other scenarios, or other users, may spend of the same quota meanwhile: it has to be right once in three times.
      for (let round = 0; round < 3; round++) {
        const fault = await usedUp(x)
        if (fault === undefined) return
        if (round === 2) x.fail(fault.says, fault.frames)
      }
    },
  ),
  costRow('X1l X1 E5-10', 'A replay is returned even if the quota is exhausted').by(
    { tries: 3, needs: ['idempotency', scarce] },
    async x => {
      let first = await x.call(scarce, keyed(x))
      // Other users spend of the same quota.
      for (let round = 0; round < 8 && first.problem.code === 'QUOTA_EXHAUSTED'; round++) {
        const seconds = Number(first.problem.retry_after_seconds)
        if (!(seconds <= 8)) break
        await wait(seconds * 1000 + Math.random() * 300)
        first = await x.call(scarce, keyed(x))
      }
      if (first.problem.code !== undefined) return x.leave('The quota is exhausted')
      for (let round = 0; round < 60; round++) if ((await x.call(scarce)).problem.code === 'QUOTA_EXHAUSTED') break
      const again = await x.call(scarce, keyed(x))
      const replayed = again.member('idempotency').was_replay === true && again.text === first.text
      x.expect(replayed, 'The stored result was not returned: limits are checked before the replay')
    },
  ),
  costRow('E3-5', 'A caller beyond the rate learns how long to wait, over HTTP also in a header').by(hurried, async x => {
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
    x.leave('The rate limit is higher than the rate of the kit')
  }),
]

// ── E11: failures that say what they are, to programs and to readers.

const row = extensionTable('problem')

const failureCategories = ['transient', 'permanent', 'auth_required', 'invalid_input', 'rate_limited']
const checked = toolThat('needs an argument', tool => isPlain(tool) && listIn(tool, 'inputSchema', 'required').length > 0)
const transient = bringing('failure:transient')
const permanent = bringing('failure:permanent')
const unexpected = bringing('failure:unexpected')
const isHttps = is.optional(url => is.string(url) && url.startsWith('https://'))
const isWhole = (value: unknown) => Number.isInteger(value) && Number(value) >= 0

/** What each member of a problem must be, and what is told where it is not. */
const members: readonly (readonly [string, (value: unknown) => boolean, string])[] = [
  ['code', code => is.string(code) && /^[A-Z][A-Z0-9_]*$/.test(code), 'code is not in upper case with underscores'],
  ['message', is.word, 'message is missing'],
  ['category', is.oneOf(...failureCategories), `category is not one of ${failureCategories.join(', ')}`],
  ['retry_after_seconds', is.optional(isWhole), 'retry_after_seconds is not a whole number'],
  ['user_actionable', is.optional(is.boolean), 'user_actionable is not a boolean'],
  ['suggestion', is.optional(is.string), 'suggestion is not a string'],
  ['details', is.optional(isRecord), 'details is not an object'],
  ['documentation_url', isHttps, 'documentation_url is not https'],
]

const isProblem: Expectation<PeerAnswer> = ({ problem }) => {
  const wrong = members.find(([name, test]) => !test(problem[name]))
  return wrong === undefined || `The problem does not fit its schema: ${wrong[2]}`
}
const schema = { 'The problem does not fit its schema': isProblem }

/** E11: problem objects of failures. */
export const problems: readonly Scenario[] = [
  row('E11-1', 'Wrong arguments are a failed result with a problem of the category invalid_input').by([
    callTool(checked, { args: {} }).expect({
      ...schema,
      'Wrong arguments are not a failed result with INVALID_INPUT': ({ isError, problem }) =>
        isError && problem.code === 'INVALID_INPUT' && problem.category === 'invalid_input',
    }),
  ]),
  row('E11-1t E11-1', 'A transient failure says so, and how long to wait').by(transient, async x => {
    for (let round = 0; round < 4; round++) {
      const called = await x.call(transient)
      if (!called.isError) continue
      const waits = hasProblem({ category: 'transient', retry_after_seconds: Number.isInteger })
      return x.hold(called, { ...schema, 'A transient failure is not of the category transient with retry_after_seconds': waits })
    }
    x.leave('The tool did not fail')
  }),
  row('E11-2', 'The text of a failed result is enough for clients that see no problem object').by([
    callTool(permanent).expect({ 'A failed result has no text': it => it.isError && it.text.length > 3, ...schema }),
    callPlain(permanent).expect({
      'A plain client gets no failed result with a text': hasResult(inWords),
      'A client that did not declare it gets a problem object': ({ result }) =>
        !JSON.stringify(result._meta ?? {}).includes(extensionId('problem')),
    }),
  ]),
  row('E11-7', 'An unexpected error in a tool is SERVER_ERROR, without a stack or paths of the machine').by([
    callTool(unexpected).expect({
      'A tool with an unexpected error': isRefusedBy('SERVER_ERROR'),
      ...schema,
      'The answer shows a stack or a path': ({ result }) =>
        !/\bat .+:\d+:\d+|node_modules|file:\/\/|\.(ts|js|py):\d+/.test(JSON.stringify(result)),
    }),
  ]),
  row('E11-8', 'A link to documentation is https, or absent').by([
    callTool(permanent).expect({ 'documentation_url is not https': hasProblem({ documentation_url: isHttps }) }),
  ]),
  row('E11-9', 'Details are at most 8 KiB').by([
    callTool(permanent).expect({
      'details are longer than 8 KiB': ({ problem }) => Buffer.byteLength(JSON.stringify(problem.details ?? {})) <= 8 * 1024,
    }),
  ]),
  row('E11-10', 'An unknown tool is a protocol error with a problem').by({ writes: false }, [
    step(x => x.call(`no_such_tool_${x.key()}`, { args: {} })).expect({
      'A call of an unknown tool is not answered with -32602': it => it.code === -32602 && it.answer.result === undefined,
      'The problem does not fit its schema': (it, x, says) => Object.keys(it.problem).length === 0 || isProblem(it, x, says),
    }),
  ]),
  row('X8', 'An unexpected error in a tool has a correlation id').by([
    callTool(unexpected),
    callTool(unexpected).expect({
      'Two failures do not have a correlation_id each': (it, { was }) => {
        const [one, other] = [was(0), it].map(({ problem }) => problem.correlation_id)
        return is.word(one) && is.word(other) && one !== other
      },
    }),
  ]),
]
