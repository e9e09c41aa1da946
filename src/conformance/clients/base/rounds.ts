/** Questions inside results (2026-07-28): the client makes the call again, with its answers and the state as it came. */
import { stateless } from '../../define.ts'
import { fitsPattern, is, objectIn, sameJson } from '../../expectations.ts'
import type { Json } from '../../scenario.ts'
import { calls, declares, first, reported, sent, shownBy, times } from '../checks.ts'
import { type ClientJudging, clientTable } from '../define.ts'
import type { LoggedMessage, Observation } from '../log.ts'
import { call, play, reportedPlay, textResult } from '../play.ts'
import { elicitation } from './asking.ts'

/** Odd on purpose: who parses, trims or re-encodes it gives back another one. */
const STATE = ' ~ {"a": 1.0}\u00a0é/+== '
const confirmation = { type: 'object', properties: { confirmed: { type: 'boolean' } }, required: ['confirmed'] }
const sure = elicitation('Sure?', confirmation)

const rounds = play('rounds', {
  answers: { elicit: { action: 'accept', content: { confirmed: true } } },
  report: true,
  steps: [
    { do: 'together', steps: [call('with', { n: 1 }), { do: 'call', tool: 'plain-tool', arguments: {}, as: 'without' }] },
    { do: 'call', tool: 'twice-tool', arguments: {}, as: 'twice' },
  ],
  tools: ['test-tool', 'plain-tool', 'twice-tool'].map(name => ({ name, inputSchema: { type: 'object' } })),
  on: {
    'tools/call': async ({ params: { name, requestState }, questions }) => {
      if (name === 'test-tool') await questions({ confirm: sure }, STATE)
      if (name === 'plain-tool') await questions({ plain: sure })
      const round = ['round 1', 'round 2'].indexOf(String(requestState)) + 1
      if (name !== 'twice-tool' || round === 2) return textResult('done')
      const next = round + 1
      return { resultType: 'input_required', requestState: `round ${next}`, inputRequests: { [`step${next}`]: sure } }
    },
  },
})

const stateOnly = reportedPlay('state-only', {
  steps: [call('call')],
  on: {
    'tools/call': ({ params: { requestState } }) =>
      requestState === 'later' ? textResult('done') : { resultType: 'input_required', requestState: 'later' },
  },
})

const strangeResult = reportedPlay('strange-result', {
  steps: [call('call')],
  on: { 'tools/call': { resultType: 'of-tomorrow', content: [] } },
})

const roundRow = clientTable('client/rounds/', { revisions: stateless })
const inRounds = [rounds, declares('elicitation')] as const
const wasCalled = sent(calls, 'the client did not call the tool')

/** The second call, which must have come, is right. */
function retry(tool: string, check: (message: LoggedMessage, seen: Observation) => boolean) {
  const retries = (seen: Observation) =>
    seen.calls(tool).filter(({ params }) => 'inputResponses' in params || 'requestState' in params)
  return (seen: Observation, x: ClientJudging, says: string) =>
    retries(seen).length === 0 ? 'The client did not send the answer' : first(retries, check)(seen, x, says)
}

/** Questions that come inside results. */
export const roundScenarios = [
  roundRow('state SEP-2322', 'requestState is returned unchanged, under a new request id').by(inRounds, {
    'requestState was changed': retry('test-tool', ({ params }) => params['requestState'] === STATE),
    'The second call has the id of the first': retry('test-tool', ({ id }, seen) => id !== calls(seen)[0]?.id),
    'The second call differs from the first': retry('test-tool', ({ params }) => sameJson(params['arguments'], { n: 1 })),
  }),
  roundRow('answers SEP-2322', 'Answers are bare results under the keys of their questions').by(inRounds, {
    'inputResponses must have the key confirm, and no other': retry('test-tool', ({ params }) => answersOnly(params, 'confirm')),
    'An answer is the bare result': retry('test-tool', ({ params }) =>
      fitsPattern({ action: is.string, result: is.absent, resultType: is.absent }, objectIn(params, 'inputResponses')['confirm']),
    ),
  }),
  roundRow('no-state SEP-2322', 'Without a requestState none is sent, and none of another call').by(inRounds, {
    'The call sent a requestState that it never received': retry('plain-tool', ({ params }) => !('requestState' in params)),
  }),
  roundRow('twice SEP-2322', 'Each round has the newest state and answers only the last questions').by(inRounds, (seen, x) => {
    const made = seen.calls('twice-tool')
    const states = JSON.stringify(made.map(({ params }) => params['requestState']))
    x.expect(states === '[null,"round 1","round 2"]', `The client sent the states ${states}`, made)
    x.expect(answersOnly(made.at(-1)?.params, 'step2'), 'Only the questions of the last round are answered', made.slice(-1))
  }),
  roundRow('state-only SEP-2322', 'A requestState without questions is returned at once').by([stateOnly, wasCalled], {
    'The client did not return the requestState': shownBy(calls, seen => calls(seen).at(-1)?.params['requestState'] === 'later'),
  }),
  roundRow('strange SEP-2322', 'A result of an unknown type is an error, and the call is not repeated').by(
    [strangeResult, wasCalled],
    {
      'The call with an unknown result was repeated': times(calls, 1),
      'The client treats an unknown result as complete': reported('call', ({ ok }) => !ok),
    },
  ),
]

function answersOnly(params: Json | undefined, key: string): boolean {
  return Object.keys(objectIn(params, 'inputResponses')).join() === key
}
