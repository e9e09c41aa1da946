/** Questions inside results (2026-07-28 §2.3): what comes back with the second call, and what must not. */
import { isRecord } from '../../../jsonrpc/message.ts'
import { type Play, said } from '../play.ts'
import { type ClientScenario, STATELESS, scenario } from '../scenario.ts'
import type { Seen } from '../seen.ts'
import { paramsOf, type Said } from '../stage/book.ts'
import type { Call, Handler } from '../stage/script.ts'

/** Odd on purpose: who parses, trims or re-encodes it gives back another one. */
export const STATE = ' ~ {"a": 1.0}\u00a0é/+== '
const ask = { method: 'elicitation/create', params: { message: 'Sure?', requestedSchema: confirmation() } }

function confirmation() {
  return { type: 'object', properties: { confirmed: { type: 'boolean' } }, required: ['confirmed'] }
}

const answers = { elicit: { action: 'accept', content: { confirmed: true } } } as const

const rounds: Play = {
  name: 'rounds',
  answers,
  report: true,
  steps: [
    {
      do: 'together',
      steps: [
        { do: 'call', tool: 'test-tool', arguments: { n: 1 }, as: 'with' },
        { do: 'call', tool: 'plain-tool', arguments: {}, as: 'without' },
      ],
    },
    { do: 'call', tool: 'twice-tool', arguments: {}, as: 'twice' },
  ],
  tools: ['test-tool', 'plain-tool', 'twice-tool'].map(name => ({ name, inputSchema: { type: 'object' } })),
  on: () => ({ 'tools/call': answer }),
}

const answer: Handler = async (call: Call) => {
  const { name } = call.params
  if (name === 'twice-tool') return twice(call)
  if (name === 'plain-tool') await call.questions({ plain: ask })
  else await call.questions({ confirm: ask }, STATE)
  return said('done')
}

function twice({ params }: Call): unknown {
  const { requestState } = params
  const round = requestState === 'round 2' ? 2 : requestState === 'round 1' ? 1 : 0
  if (round === 2) return said('done')
  return { resultType: 'input_required', requestState: `round ${round + 1}`, inputRequests: { [`step${round + 1}`]: ask } }
}

const stateOnly: Play = {
  name: 'state-only',
  report: true,
  steps: [{ do: 'call', tool: 'test-tool', arguments: {}, as: 'call' }],
  on: () => ({
    'tools/call': ({ params }) =>
      params['requestState'] === 'later' ? said('done') : { resultType: 'input_required', requestState: 'later' },
  }),
}

const strange: Play = {
  name: 'strange-result',
  report: true,
  steps: [{ do: 'call', tool: 'test-tool', arguments: {}, as: 'call' }],
  on: () => ({ 'tools/call': () => ({ resultType: 'of-tomorrow', content: [] }) }),
}

function retries(seen: Seen, tool: string): readonly Said[] {
  return seen.calls(tool).filter(call => 'inputResponses' in paramsOf(call) || 'requestState' in paramsOf(call))
}

const elicits = (seen: Seen): string | undefined =>
  seen.has('elicitation') ? undefined : 'the client does not declare elicitation'

export const questioning: readonly ClientScenario[] = [
  scenario('client/rounds/state', 'The state comes back byte for byte, under a new id', rounds, {
    proves: ['SEP-2322'],
    revisions: STATELESS,
    needs: elicits,
    check: (seen, { expect, fail }) => {
      const [first] = seen.calls('test-tool')
      const [retry] = retries(seen, 'test-tool')
      if (first === undefined || retry === undefined) return fail('The client did not come back with its answer', seen.calls())
      expect(paramsOf(retry)['requestState'] === STATE, 'requestState is not what was given', [retry])
      expect(retry.frame?.['id'] !== first.frame?.['id'], 'The second call has the id of the first', [first, retry])
      const { arguments: again, name } = paramsOf(retry)
      expect(name === 'test-tool' && JSON.stringify(again) === '{"n":1}', 'The second call is another one', [retry])
    },
  }),
  scenario('client/rounds/answers', 'Answers are bare results under the keys of their questions', rounds, {
    proves: ['SEP-2322'],
    revisions: STATELESS,
    needs: elicits,
    check: (seen, { expect, fail }) => {
      const [retry] = retries(seen, 'test-tool')
      if (retry === undefined) return fail('The client did not come back with its answer', seen.calls())
      const given = paramsOf(retry)['inputResponses']
      expect(
        isRecord(given) && Object.keys(given).join() === 'confirm',
        'inputResponses must have the key confirm, and no other',
        [retry],
      )
      const bare = isRecord(given) && isRecord(given['confirm']) ? given['confirm'] : {}
      expect(
        typeof bare['action'] === 'string' && !('result' in bare) && !('resultType' in bare),
        'An answer is the bare result',
        [retry],
      )
    },
  }),
  scenario('client/rounds/no-state', 'Where no state was given none is sent, and none of another call', rounds, {
    proves: ['SEP-2322'],
    revisions: STATELESS,
    needs: elicits,
    check: (seen, { expect, fail }) => {
      const [retry] = retries(seen, 'plain-tool')
      if (retry === undefined) return fail('The client did not come back with its answer', seen.calls())
      expect(!('requestState' in paramsOf(retry)), 'A state was sent that this call was never given', [retry])
    },
  }),
  scenario('client/rounds/twice', 'Each round has the newest state and answers only the last questions', rounds, {
    proves: ['SEP-2322'],
    revisions: STATELESS,
    needs: elicits,
    check: (seen, { expect }) => {
      const states = seen.calls('twice-tool').map(call => paramsOf(call)['requestState'])
      expect(
        JSON.stringify(states) === '[null,"round 1","round 2"]',
        `The states came as ${JSON.stringify(states)}`,
        seen.calls('twice-tool'),
      )
      const last = paramsOf(seen.calls('twice-tool').at(-1))['inputResponses']
      expect(
        isRecord(last) && Object.keys(last).join() === 'step2',
        'Only the questions of the last round are answered',
        seen.calls('twice-tool').slice(-1),
      )
    },
  }),
  scenario('client/rounds/state-only', 'A state without questions is brought back at once', stateOnly, {
    proves: ['SEP-2322'],
    revisions: STATELESS,
    check: (seen, { expect, skip }) => {
      if (seen.calls('test-tool').length === 0) skip('the client did not call the tool')
      expect(
        paramsOf(seen.calls('test-tool').at(-1))['requestState'] === 'later',
        'The client did not come back with the state',
        seen.calls(),
      )
    },
  }),
  scenario('client/rounds/strange', 'A result of an unknown type is no result, and not asked for again', strange, {
    proves: ['SEP-2322'],
    revisions: STATELESS,
    check: (seen, { expect, skip }) => {
      if (seen.calls('test-tool').length === 0) skip('the client did not call the tool')
      expect(seen.calls('test-tool').length === 1, 'An unknown result was asked for again', seen.calls())
      const entry = seen.reported.get('call')
      expect(entry === undefined || !entry.ok, 'The client takes an unknown result for a complete one', seen.calls())
    },
  }),
]
