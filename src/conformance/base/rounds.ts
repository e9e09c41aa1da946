/** Questions inside results: rounds of asking and answering without a session. */
import { isRecord } from '../../jsonrpc/message.ts'
import { codeIn, objectIn, prompt, resultIn, scenario, stateless, textIn, tool } from '../define.ts'
import type { Bench, Json, Scenario } from '../scenario.ts'
import { keys } from '../wire/envelope.ts'
import type { Answer, RawPeer } from '../wire/raw-peer.ts'

const rounds = ['MCP 2026-07-28 basic/patterns/mrtr', 'SEP-2322']
const all = { elicitation: { form: {} }, sampling: {}, roots: {} }
const named = { action: 'accept', content: { name: 'Ada' } }

async function first(
  bench: Bench,
  name: string,
  capabilities: Json = all,
): Promise<{ peer: RawPeer; answer: Answer; asked: Json }> {
  const peer = await bench.open({ capabilities })
  const answer = await peer.request('tools/call', { name })
  bench.expect(resultIn(answer)['resultType'] === 'input_required', 'resultType must be "input_required"', [answer.frame])
  const asked = objectIn(answer.result, 'inputRequests')
  const hasOne = Object.keys(asked).length > 0 || typeof resultIn(answer)['requestState'] === 'string'
  bench.expect(hasOne, 'there must be inputRequests or requestState', [answer.frame])
  for (const ask of Object.values(asked)) {
    const isAsk = isRecord(ask) && typeof ask['method'] === 'string' && ask['jsonrpc'] === undefined && ask['id'] === undefined
    bench.expect(isAsk, 'a question must be a bare method with params', [answer.frame])
  }
  return { peer, answer, asked }
}

/** The same call again, with answers and the state exactly as it came. */
function again(peer: RawPeer, name: string, before: Answer, inputResponses: Json, state?: unknown): Promise<Answer> {
  const requestState = state ?? resultIn(before)['requestState']
  return peer.request('tools/call', { name, inputResponses, ...(requestState === undefined ? {} : { requestState }) })
}

function complete(bench: Bench, answer: Answer): void {
  bench.expect(resultIn(answer)['resultType'] === 'complete', 'with all answers the call must be complete', [answer.frame])
}

const replies = new Map<string, unknown>([
  ['elicitation/create', named],
  ['sampling/createMessage', { role: 'assistant', content: { type: 'text', text: 'Paris' }, model: 'kit' }],
  ['roots/list', { roots: [{ uri: 'file:///kit', name: 'kit' }] }],
])

function answersTo(asked: Json): Json {
  const entries = Object.entries(asked).map(
    ([key, ask]) => [key, replies.get(isRecord(ask) ? String(ask['method']) : '')] as const,
  )
  return Object.fromEntries(entries)
}

const single = [
  { id: 'elicitation', key: 'user_name', method: 'elicitation/create', tells: 'Ada' },
  { id: 'sampling', key: 'capital_question', method: 'sampling/createMessage', tells: 'Paris' },
  { id: 'list_roots', key: 'client_roots', method: 'roots/list', tells: 'kit' },
] as const

const fixture = (name: string): string => `test_input_required_result_${name}`

export const roundScenarios: readonly Scenario[] = [
  ...single.map(({ id, key, method, tells }) =>
    scenario(`base/rounds/${id.replace('_', '-')}`, {
      title: `a call that asks by ${method} is complete when it is repeated with the answer`,
      proves: rounds,
      revisions: stateless,
      needs: [tool(fixture(id))],
      async run(bench) {
        const { peer, answer, asked } = await first(bench, fixture(id))
        bench.expect(objectIn(asked, key)['method'] === method, `inputRequests must hold ${key} with ${method}`, [answer.frame])
        const second = await again(peer, fixture(id), answer, answersTo(asked))
        complete(bench, second)
        bench.expect(textIn(second).includes(tells), 'the tool must see the answer', [second.frame])
      },
    }),
  ),
  scenario('base/rounds/several', {
    title: 'several questions can be asked at once',
    proves: rounds,
    revisions: stateless,
    needs: [tool(fixture('multiple_inputs'))],
    async run(bench) {
      const { peer, answer, asked } = await first(bench, fixture('multiple_inputs'))
      bench.expect(Object.keys(asked).length >= 3, 'there must be three questions', [answer.frame])
      complete(bench, await again(peer, fixture('multiple_inputs'), answer, answersTo(asked)))
    },
  }),
  scenario('base/rounds/one-after-the-other', {
    title: 'a second question may follow the first',
    proves: rounds,
    revisions: stateless,
    needs: [tool(fixture('multi_round'))],
    async run(bench) {
      const { peer, answer, asked } = await first(bench, fixture('multi_round'))
      const second = await again(peer, fixture('multi_round'), answer, answersTo(asked))
      bench.expect(resultIn(second)['resultType'] === 'input_required', 'the second round must ask again', [second.frame])
      const colour = { action: 'accept', content: { color: 'blue' } }
      const keysAsked = Object.keys(objectIn(second.result, 'inputRequests'))
      const third = await again(peer, fixture('multi_round'), second, Object.fromEntries(keysAsked.map(key => [key, colour])))
      complete(bench, third)
    },
  }),
  scenario('base/rounds/state', {
    title: 'requestState comes back as it was and is taken',
    proves: rounds,
    revisions: stateless,
    needs: [tool(fixture('request_state'))],
    async run(bench) {
      const { peer, answer } = await first(bench, fixture('request_state'))
      bench.expect(typeof resultIn(answer)['requestState'] === 'string', 'requestState must be a string', [answer.frame])
      const second = await again(peer, fixture('request_state'), answer, { confirm: { action: 'accept', content: { ok: true } } })
      complete(bench, second)
      bench.expect(textIn(second).includes('state-ok'), 'the state must have come back', [second.frame])
    },
  }),
  scenario('base/rounds/tampered-state', {
    title: 'requestState that was changed is refused with a JSON-RPC error',
    proves: rounds,
    revisions: stateless,
    needs: [tool(fixture('tampered_state'))],
    async run(bench) {
      const { peer, answer } = await first(bench, fixture('tampered_state'))
      const state = `${resultIn(answer)['requestState']}-TAMPERED`
      const reply = { confirm: { action: 'accept', content: { ok: true } } }
      const second = await again(peer, fixture('tampered_state'), answer, reply, state)
      bench.expect(second.error !== undefined, 'changed state must be refused with a JSON-RPC error', [second.frame])
    },
  }),
  scenario('base/rounds/foreign-state', {
    title: 'requestState of one tool is not taken for another',
    proves: rounds,
    revisions: stateless,
    needs: [tool(fixture('tampered_state')), tool(fixture('request_state'))],
    async run(bench) {
      const { peer, answer } = await first(bench, fixture('tampered_state'))
      const reply = { confirm: { action: 'accept', content: { ok: true } } }
      const second = await again(peer, fixture('request_state'), answer, reply)
      if (resultIn(second)['resultType'] === 'complete') bench.warn('state should be bound to the call that made it')
    },
  }),
  scenario('base/rounds/wrong-key', {
    title: 'answers to other questions than those asked are ignored: it asks again',
    proves: rounds,
    revisions: stateless,
    needs: [tool(fixture('elicitation'))],
    async run(bench) {
      const { peer, answer } = await first(bench, fixture('elicitation'))
      const second = await again(peer, fixture('elicitation'), answer, { something_else: named })
      bench.expect(resultIn(second)['resultType'] !== 'complete', 'the call must not be complete without its answer', [
        second.frame,
      ])
      if (second.error !== undefined) bench.warn('it should ask again instead of an error')
    },
  }),
  scenario('base/rounds/malformed-answer', {
    title: 'an answer that is none does not complete the call',
    proves: rounds,
    revisions: stateless,
    needs: [tool(fixture('elicitation'))],
    async run(bench) {
      for (const wrong of [12345, null, 'yes']) {
        const { peer, answer } = await first(bench, fixture('elicitation'))
        const second = await again(peer, fixture('elicitation'), answer, { user_name: wrong })
        bench.expect(resultIn(second)['resultType'] !== 'complete', 'a malformed answer must not be taken', [second.frame])
      }
    },
  }),
  scenario('base/rounds/declined', {
    title: 'a declined question is an answer',
    proves: rounds,
    revisions: stateless,
    needs: [tool(fixture('elicitation'))],
    async run(bench) {
      const { peer, answer } = await first(bench, fixture('elicitation'))
      complete(bench, await again(peer, fixture('elicitation'), answer, { user_name: { action: 'decline' } }))
    },
  }),
  scenario('base/rounds/declared-only', {
    title: 'only questions that the request declared are asked',
    proves: rounds,
    revisions: stateless,
    needs: [tool(fixture('capabilities'))],
    async run(bench) {
      const peer = await bench.open({ capabilities: { sampling: {} } })
      const answer = await peer.request('tools/call', { name: fixture('capabilities') })
      const methods = Object.values(objectIn(answer.result, 'inputRequests')).map(ask =>
        isRecord(ask) ? ask['method'] : undefined,
      )
      bench.expect(
        methods.every(method => method === 'sampling/createMessage'),
        'only sampling was declared',
        [answer.frame],
      )
    },
  }),
  scenario('base/rounds/missing-capability', {
    title: 'a call that cannot do without an undeclared capability is refused, and the refusal names it',
    proves: ['MCP 2026-07-28 basic#errors'],
    revisions: stateless,
    needs: [tool('test_missing_capability')],
    async run(bench) {
      const peer = await bench.open()
      const answer = await peer.request('tools/call', { name: 'test_missing_capability' })
      const code = bench.revision === '2026-07-28' ? -32021 : -32003
      bench.expect(codeIn(answer) === code, `it must be refused with error ${code}`, [answer.frame])
      bench.expect(
        isRecord(objectIn(answer.error, 'data', 'requiredCapabilities')['sampling']),
        'data.requiredCapabilities must hold sampling as an object',
        [answer.frame],
      )
      if (bench.carrier === 'http') bench.expect(answer.status === 400, 'the HTTP status must be 400', [answer.frame])
    },
  }),
  scenario('base/rounds/prompt', {
    title: 'a prompt may ask as well',
    proves: rounds,
    revisions: stateless,
    needs: [prompt(fixture('prompt'))],
    async run(bench) {
      const peer = await bench.open({ capabilities: all })
      peer.onRequest('elicitation/create', () => ({ action: 'accept', content: { context: 'vivarium-context' } }))
      const answer = await peer.converse('prompts/get', { name: fixture('prompt') })
      bench.expect(
        JSON.stringify(resultIn(answer)['messages'] ?? []).includes('vivarium-context'),
        'the prompt must see the answer',
        [answer.frame],
      )
    },
  }),
  scenario('base/rounds/no-requests', {
    title: 'no request is ever sent to the client',
    proves: rounds,
    revisions: stateless,
    needs: [tool('test_streaming_elicitation')],
    async run(bench) {
      const peer = await bench.open({ capabilities: all })
      await peer.request(
        'tools/call',
        { name: 'test_streaming_elicitation' },
        { meta: { progressToken: 'p', [keys.logLevel]: 'debug' } },
      )
      const requests = peer.heard(message => typeof message['method'] === 'string' && message['id'] !== undefined)
      bench.expect(requests.length === 0, 'a server must not send requests on this revision', requests)
    },
  }),
  scenario('base/rounds/lists-never-ask', {
    title: 'lists never ask',
    proves: rounds,
    revisions: stateless,
    async run(bench) {
      const peer = await bench.open({ capabilities: all })
      for (const name of ['tools', 'resources', 'prompts'].filter(one => bench.peer.has(one))) {
        const answer = await peer.request(`${name}/list`)
        bench.expect(resultIn(answer)['resultType'] !== 'input_required', `${name}/list must not ask`, [answer.frame])
      }
    },
  }),
]
