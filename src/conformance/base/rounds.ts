/** Questions inside results: rounds of asking and answering without a session. */
import { isRecord } from '../../jsonrpc/message.ts'
import { hasErrorData, hasResult, hasStatus, isFault, type PeerAnswer } from '../calls.ts'
import { stateless, table } from '../define.ts'
import { type Expectation, type Expectations, fitsPattern, is, listIn, objectIn, should } from '../expectations.ts'
import { prompt } from '../needs.ts'
import type { Json, Scenario } from '../scenario.ts'
import { callTool, type ScenarioContext, type SentStep, send, step, type ValueOrMaker } from '../steps.ts'
import { keys } from '../wire/envelope.ts'

const row = table('base/rounds/', {
  proves: ['MCP 2026-07-28 basic/patterns/mrtr', 'SEP-2322'],
  revisions: stateless,
  open: { capabilities: { elicitation: { form: {} }, sampling: {}, roots: {} } },
})
const named = { action: 'accept', content: { name: 'Ada' } }
const confirmed = { confirm: { action: 'accept', content: { ok: true } } }
const fixture = (name: string): string => `test_input_required_result_${name}`

const askedIn = ({ result }: PeerAnswer): Json => objectIn(result, 'inputRequests')
const asks = hasResult({ resultType: 'input_required' })
const isComplete = hasResult({ resultType: 'complete' })
const isOpen: Expectation<PeerAnswer> = (...all) => isComplete(...all) !== true
const completes = { 'with all answers the call must be complete': isComplete }

/** The call is answered by questions. */
const isQuestion: Expectations<PeerAnswer> = {
  'resultType must be "input_required"': asks,
  'there must be inputRequests or requestState': it => Object.keys(askedIn(it)).length > 0 || is.string(it.result.requestState),
  'a question must be a bare method with params': it =>
    Object.values(askedIn(it)).every(one => fitsPattern({ method: is.string, jsonrpc: is.absent, id: is.absent }, one)),
}
const begins = (name: string, more: Expectations<PeerAnswer> = {}) => callTool(fixture(name)).expect({ ...isQuestion, ...more })

/** The same call again, with answers to the last questions, and the state exactly as it came. */
function again(name: string, inputResponses: ValueOrMaker<Json>, changed = ''): SentStep<PeerAnswer> {
  return callTool(fixture(name), x => {
    const { requestState: state } = x.was(-1).result
    const requestState = changed === '' ? state : `${state}${changed}`
    const answers = typeof inputResponses === 'function' ? inputResponses(x) : inputResponses
    return { params: { inputResponses: answers, ...(requestState === undefined ? {} : { requestState }) } }
  })
}

const replies = new Map<unknown, unknown>([
  ['elicitation/create', named],
  ['sampling/createMessage', { role: 'assistant', content: { type: 'text', text: 'Paris' }, model: 'kit' }],
  ['roots/list', { roots: [{ uri: 'file:///kit', name: 'kit' }] }],
])

function answersTo({ was }: ScenarioContext): Json {
  const entries = Object.entries(askedIn(was(-1)))
  return Object.fromEntries(entries.map(([key, one]) => [key, replies.get(objectIn(one).method)]))
}

const single = [
  ['elicitation', 'user_name', 'elicitation/create', 'Ada'],
  ['sampling', 'capital_question', 'sampling/createMessage', 'Paris'],
  ['list_roots', 'client_roots', 'roots/list', 'kit'],
] as const

/** Calls that are answered by questions, and made again with the answers. */
export const roundScenarios: readonly Scenario[] = [
  ...single.map(([id, key, method, tells]) =>
    row(id.replace('_', '-'), `a call that asks by ${method} is complete when it is repeated with the answer`).by([
      begins(id, { [`inputRequests must hold ${key} with ${method}`]: it => objectIn(askedIn(it), key).method === method }),
      again(id, answersTo).expect({ ...completes, 'the tool must see the answer': ({ text }) => text.includes(tells) }),
    ]),
  ),
  row('several', 'several questions can be asked at once').by([
    begins('multiple_inputs', { 'there must be three questions': it => Object.keys(askedIn(it)).length >= 3 }),
    again('multiple_inputs', answersTo).expect(completes),
  ]),
  row('one-after-the-other', 'a second question may follow the first').by([
    begins('multi_round'),
    again('multi_round', answersTo).expect({ 'the second round must ask again': asks }),
    again('multi_round', ({ was }) => {
      const colour = { action: 'accept', content: { color: 'blue' } }
      return Object.fromEntries(Object.keys(askedIn(was(-1))).map(key => [key, colour]))
    }).expect(completes),
  ]),
  row('state', 'requestState that is returned unchanged is accepted').by([
    begins('request_state', { 'requestState must be a string': hasResult({ requestState: is.string }) }),
    again('request_state', confirmed).expect({
      ...completes,
      'the state must have been used': ({ text }) => text.includes('state-ok'),
    }),
  ]),
  row('tampered-state', 'requestState that was changed is refused with a JSON-RPC error').by([
    begins('tampered_state'),
    again('tampered_state', confirmed, '-TAMPERED').expect({
      'changed state must be refused with a JSON-RPC error': isFault,
    }),
  ]),
  row('foreign-state', 'requestState of one tool is not accepted for another').by([
    begins('tampered_state'),
    again('request_state', confirmed).expect({ 'state should be bound to the call that made it': should(isOpen) }),
  ]),
  row('wrong-key', 'answers to other questions are ignored: the server asks again').by([
    begins('elicitation'),
    again('elicitation', { something_else: named }).expect({
      'the call must not be complete without its answer': isOpen,
      'it should ask again instead of an error': should(({ answer }) => answer.error === undefined),
    }),
  ]),
  row('malformed-answer', 'an invalid answer does not complete the call').by(
    [12345, null, 'yes'].flatMap(wrong => [
      begins('elicitation'),
      again('elicitation', { user_name: wrong }).expect({ 'a malformed answer must not be accepted': isOpen }),
    ]),
  ),
  row('declined', 'a declined question is an answer').by([
    begins('elicitation'),
    again('elicitation', { user_name: { action: 'decline' } }).expect(completes),
  ]),
  row('declared-only', 'only questions that the request declared are asked').by({ open: { capabilities: { sampling: {} } } }, [
    callTool(fixture('capabilities')).expect({
      'only sampling was declared': it =>
        Object.values(askedIn(it)).every(one => objectIn(one).method === 'sampling/createMessage'),
    }),
  ]),
  row(
    'missing-capability MCP 2026-07-28 basic#errors',
    'a call that requires an undeclared capability is refused, and the refusal names it',
  ).by({ open: { capabilities: {} } }, [
    callTool('test_missing_capability').expect({
      'it must be refused with the error': ({ code }, { modern }) =>
        code === (modern ? -32021 : -32003) || `it must be refused with error ${modern ? -32021 : -32003}`,
      'data.requiredCapabilities must hold sampling as an object': hasErrorData({
        requiredCapabilities: { sampling: isRecord },
      }),
      'the HTTP status must be 400': hasStatus(400),
    }),
  ]),
  row('prompt', 'a prompt can ask too').by(prompt(fixture('prompt')), [
    step(async ({ peer }) =>
      peer.onRequest('elicitation/create', () => ({ action: 'accept', content: { context: 'vivarium-context' } })),
    ),
    send('prompts/get', { name: fixture('prompt') }, { converse: true }).expect({
      'the prompt must see the answer': ({ result }) => JSON.stringify(listIn(result, 'messages')).includes('vivarium-context'),
    }),
  ]),
  row('no-requests', 'no request is ever sent to the client').by([
    callTool('test_streaming_elicitation', { meta: { progressToken: 'p', [keys.logLevel]: 'debug' } }),
    step(({ peer }) => peer.heard(message => is.string(message.method) && message.id !== undefined)).expect({
      'a server must not send requests on this revision': requests => requests.length === 0,
    }),
  ]),
  row('lists-never-ask', 'lists never ask').by(async x => {
    for (const name of ['tools', 'resources', 'prompts'].filter(one => x.bench.peer.has(one)))
      x.hold(await x.ask(`${name}/list`), {
        [`${name}/list must not ask`]: ({ result }) => result.resultType !== 'input_required',
      })
  }),
]
