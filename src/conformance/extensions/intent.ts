/** E2: what a call is for, and what would serve that better. */
import { hasResult, isFirst, isMade, isRefusedBy, isReplay, shownIn } from '../calls.ts'
import { extensionTable } from '../define.ts'
import { isAbsent, isString, objectIn, sameJson } from '../expectations.ts'
import type { Json, Scenario } from '../scenario.ts'
import { callTool, keyed } from '../steps.ts'
import { callable, counting } from '../tools.ts'

const row = extensionTable('intent')

const words = ['greet somebody', 'welcome a guest', 'find what else there is', 'see whether all is well', 'clean up']
const meant = (intent: string, more: Json = {}) => ({ say: { intent: { intent, ...more } } })
const membersOf = (result: Json) =>
  Object.keys(result)
    .filter(name => name !== '_meta')
    .sort()

export const intent: readonly Scenario[] = [
  row('E2-1', 'A call that says what it is for is made as it is', [
    callTool(counting),
    callTool(counting, meant('greet somebody')).expect({
      'A call with an intent': isMade,
      'A call with an intent was not made': (it, { was }) => it.result.content !== undefined && shownIn(it) !== shownIn(was(0)),
      'A call with an intent has a result of another form': (it, { was }) =>
        sameJson(membersOf(it.result), membersOf(was(0).result)),
    }),
  ]),
  row('E2-2', 'A suggestion names a tool that is listed, and why', { tools: [callable] }, async x => {
    let seen = 0
    for (const intent of words) {
      const { suggestion } = (await x.call(callable, meant(intent))).member('intent')
      if (suggestion === undefined) continue
      seen++
      const { reason, recommended_tool: name } = objectIn(suggestion)
      x.expect(isString(reason), 'A suggestion has no reason')
      const listed = isString(name) && x.bench.peer.tool(name) !== undefined
      x.expect(listed, `A suggestion names ${JSON.stringify(name)}, which is not listed`)
    }
    if (seen === 0) x.leave('The server suggested nothing to the intents that the kit knows')
  }),
  row('E2-3', 'Where only a suggestion is asked for, nothing runs, and the answer says so', { wants: ['idempotency'] }, [
    callTool(counting, x => keyed(x, meant('greet somebody', { mode: 'suggest_only' }).say)).expect({
      'A call for a suggestion only has no words': it => it.code === undefined && !it.isError && it.text.length > 0,
      'A call for a suggestion only has a result: it ran': hasResult({ structuredContent: isAbsent }),
    }),
    callTool(counting, keyed).expect({
      'The real call under the same key': isMade,
      'A call for a suggestion only left an entry under its key': isFirst,
    }),
  ]),
  row('E2-5', 'An intent of more than 2048 bytes is refused', [
    callTool(callable, meant('ä'.repeat(1_100))).expect({ 'An intent of 2200 bytes': isRefusedBy('INVALID_INPUT') }),
    callTool(callable, meant('a'.repeat(2_048))).expect({ 'An intent of 2048 bytes': isMade }),
  ]),
  row('E2-6', 'A repeated call with another intent is the same call', { wants: ['idempotency'] }, [
    callTool(counting, x => keyed(x, meant('one reason').say)).expect({ 'A call with an intent': isMade }),
    callTool(counting, x => keyed(x, meant('another reason').say)).expect({
      'The same with another intent': isMade,
      'Another intent made another call': isReplay,
    }),
  ]),
]
