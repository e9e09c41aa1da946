/** What must not be sent without a yes: confirmation (E6), cost (E3), intent and suggestions (E2). */
import { type Answers, type Play, RUN, type Step, said, testTool } from '../play.ts'
import type { ClientScenario } from '../scenario.ts'
import { argumentsOf } from '../seen.ts'
import type { Frame } from '../stage/book.ts'
import { extending, key, offering, problemResult, under } from './define.ts'

interface Options {
  readonly answers?: Answers
  readonly tools?: readonly Frame[]
  readonly steps?: readonly Step[]
  readonly on?: Play['on']
}

function play(name: string, extension: string, { answers = {}, tools, steps = RUN, on }: Options): Play {
  return {
    name,
    steps,
    report: true,
    answers,
    ...(tools === undefined ? {} : { tools }),
    capabilities: offering(extension, 'problem'),
    ...(on === undefined ? {} : { on }),
  }
}

const confirmation = { requires_confirmation: true, confirmation_message: 'Delete {what}?', risk_level: 'destructive' }
const risky = [{ ...testTool, _meta: { [key('confirmation')]: confirmation } }]
const removing: readonly Step[] = [
  { do: 'list', what: 'tools' },
  { do: 'call', tool: 'test-tool', arguments: { what: 'all' }, as: 'call' },
]
const nobody = play('confirm-nobody', 'confirmation', { tools: risky, steps: removing })
const refused = play('confirm-no', 'confirmation', { tools: risky, steps: removing, answers: { confirm: false } })
const agreed = play('confirm-yes', 'confirmation', { tools: risky, steps: removing, answers: { confirm: true } })
const declined = play('confirm-declined', 'confirmation', {
  tools: risky,
  steps: removing,
  answers: { confirm: true, retries: 3 },
  on: () => ({
    'tools/call': () => problemResult({ code: 'CONFIRMATION_DECLINED', message: 'The user said no', category: 'permanent' }),
  }),
})

function priced(cost: Frame | undefined): readonly Frame[] {
  return [cost === undefined ? testTool : { ...testTool, _meta: { [key('operational')]: { cost, latency: 'seconds' } } }]
}

const budgeted: readonly Step[] = [
  { do: 'list', what: 'tools' },
  { do: 'call', tool: 'test-tool', arguments: {}, budget: 5, as: 'call' },
]
const unknownCost = play('cost-unknown', 'operational', { tools: priced(undefined), steps: budgeted })
const affordable = play('cost-known', 'operational', {
  tools: priced({ category: 'metered', estimated_units: 2, unit_label: 'credit' }),
  steps: budgeted,
})
const expensive = play('cost-over', 'operational', {
  tools: priced({ category: 'metered', estimated_units: 10, unit_label: 'credit' }),
  steps: budgeted,
})
const approval = play('cost-approval', 'operational', {
  tools: priced({ category: 'requires_approval', estimated_units: 1, unit_label: 'credit' }),
})

const intended: readonly Step[] = [
  { do: 'list', what: 'tools' },
  { do: 'call', tool: 'test-tool', arguments: {}, intent: 'clean up duplicates', as: 'call' },
]
const named = ['test-tool', 'better-tool', 'best-tool'].map(name => ({ name, inputSchema: { type: 'object' } }))
const suggesting: Play['on'] = () => ({
  'tools/call': ({ params }) => {
    const next = params['name'] === 'test-tool' ? 'better-tool' : 'best-tool'
    const suggestion = { recommended_tool: next, reason: 'It does more', parameters: {} }
    return said('done', { _meta: { [key('intent')]: { suggestion } } })
  },
})
const silent = play('intent-off', 'intent', { steps: intended })
const spoken = play('intent-on', 'intent', { steps: intended, answers: { intent: true }, tools: named, on: suggesting })
const followed = play('intent-followed', 'intent', {
  steps: intended,
  answers: { intent: true, suggestion: true },
  tools: named,
  on: suggesting,
})

/** The call was not sent, and the client knows that it did not happen. */
function unsent(id: string, statement: string, title: string, of: Play, knows: string): ClientScenario {
  return extending(id, title, of, {
    proves: [statement],
    knows,
    check: (seen, { expect, skip }) => {
      const calls = seen.calls('test-tool')
      if (calls.length === 0 && seen.requests('tools/list').length === 0) skip('the client did not look at the tools')
      expect(calls.length === 0, 'The call was sent', calls)
      const entry = seen.reported.get('call')
      expect(entry === undefined || !entry.ok || entry.isError === true, 'A call that was not made is reported as done')
    },
  })
}

export const consent: readonly ClientScenario[] = [
  unsent('E6-1', 'E6-1', 'A call that needs a yes is not sent where nobody can be asked', nobody, 'problem'),
  unsent('E6-1-no', 'E6-1', 'A call that needs a yes is not sent after a no', refused, 'confirmation'),
  extending('E6-10', 'The yes is no argument of the tool', agreed, {
    proves: ['E6-10', 'E6-1'],
    knows: 'confirmation',
    check: (seen, { expect, skip }) => {
      const [call] = seen.calls('test-tool')
      if (call === undefined) return skip('the client has nobody who says yes')
      expect(JSON.stringify(argumentsOf(call)) === '{"what":"all"}', 'The arguments are not those of the call', [call])
    },
  }),
  extending('E6-5', 'What the user has declined is not asked for again by the client itself', declined, {
    proves: ['E6-5'],
    knows: 'confirmation',
    check: (seen, { expect, skip }) => {
      const calls = seen.calls('test-tool')
      if (calls.length === 0) skip('the client has nobody who says yes')
      expect(calls.length === 1, `The call was made ${calls.length} times`, calls)
    },
  }),
  unsent('E3-7', 'E3-7', 'What nobody can price is not free: under a budget it is not sent', unknownCost, 'operational'),
  extending('E3-2', 'The budget of a call is told to the server', affordable, {
    proves: ['E3-2'],
    knows: 'operational',
    check: (seen, { expect, skip }) => {
      const [call] = seen.calls('test-tool')
      if (call === undefined) return skip('the client did not make the call')
      const sent = under(call, 'operational')['max_units']
      if (sent === undefined) skip('the client knows no budgets')
      expect(sent === 5, `max_units is ${JSON.stringify(sent)} and must be 5`, [call])
    },
  }),
  unsent('E3-2-over', 'E3-2', 'A call that costs more than its budget is not sent', expensive, 'operational'),
  unsent('E3-1', 'E3-1', 'A cost that needs approval is not caused without one', approval, 'operational'),
  extending('E2-7', 'What a call is for is told only to servers that may hear it', silent, {
    proves: ['E2-7'],
    knows: 'problem',
    check: (seen, { expect, skip }) => {
      const [call] = seen.calls('test-tool')
      if (call === undefined) return skip('the client did not make the call')
      expect(under(call, 'intent')['intent'] === undefined, 'The intent was told though nobody allowed that', [call])
    },
  }),
  extending('E2-4', 'A suggestion of the server is followed by nobody but the host', spoken, {
    proves: ['E2-4'],
    knows: 'intent',
    check: (seen, { expect, skip }) => {
      const [call] = seen.calls('test-tool')
      if (under(call, 'intent')['intent'] === undefined) skip('the client says no intents')
      expect(seen.calls('better-tool').length === 0, 'The suggested tool was called by itself', seen.calls())
    },
  }),
  extending('E2-4-hop', 'A suggestion that is followed leads to no second one', followed, {
    proves: ['E2-4'],
    knows: 'intent',
    check: (seen, { expect, skip }) => {
      if (seen.calls('better-tool').length === 0) skip('the client follows no suggestions')
      expect(seen.calls('best-tool').length === 0, 'The suggestion of a suggestion was followed', seen.calls())
    },
  }),
]
