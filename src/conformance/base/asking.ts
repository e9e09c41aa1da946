/** A server that asks in the middle of a call: the user, the client's model, its roots. Pushed or inside results, the same scenarios. */
import { isRecord } from '../../jsonrpc/message.ts'
import { capability, listIn, official, resultIn, scenario, since, textIn, tool } from '../define.ts'
import type { Bench, Json, RevisionId, Scenario } from '../scenario.ts'
import type { Answer, RawPeer } from '../wire/raw-peer.ts'
import { blockFault } from './content.ts'

const eliciting = ['MCP client/elicitation']
const sampling = ['MCP client/sampling']
const fixtureMessage = { message: 'Who are you?' }

/** Elicitation as the revision declares it; `url` only where it exists. */
function elicitation(revision: RevisionId, url = false): Json {
  if (revision === '2025-06-18') return { elicitation: {} }
  return { elicitation: url ? { form: {}, url: {} } : { form: {} } }
}

interface Asked {
  readonly answer: Answer
  readonly questions: readonly Json[]
  readonly peer: RawPeer
}

/** Calls a tool with one kind of question answered, and keeps the questions. */
async function ask(bench: Bench, capabilities: Json, method: string, reply: unknown, call: Json): Promise<Asked> {
  const peer = await bench.open({ capabilities })
  const questions: Json[] = []
  peer.onRequest(method, params => {
    questions.push(params)
    return reply
  })
  const answer = await peer.converse('tools/call', call)
  return { answer, questions, peer }
}

function expectForm(bench: Bench, { questions, peer }: Asked): Json {
  const [question] = questions
  bench.expect(question !== undefined, 'the tool must ask by elicitation/create', peer.frames.slice(-3))
  bench.expect(typeof question?.['message'] === 'string', 'the question must have a message', peer.frames.slice(-3))
  const schema = question?.['requestedSchema']
  bench.expect(
    isRecord(schema) && schema['type'] === 'object' && isRecord(schema['properties']),
    'requestedSchema must describe an object',
    [peer.frames.at(-3)],
  )
  const properties = isRecord(schema) && isRecord(schema['properties']) ? schema['properties'] : {}
  for (const [name, field] of Object.entries(properties)) {
    const kinds = since('2025-11-25').includes(bench.revision) ? [...primitives, 'array'] : primitives
    bench.expect(isRecord(field) && kinds.includes(String(field['type'])), `the field ${name} must be of a primitive type`)
  }
  return properties
}

const primitives = ['string', 'number', 'integer', 'boolean']
const forms = since('2025-06-18')
const accept = { action: 'accept', content: { username: 'ada', email: 'ada@example.com' } }

/** Calls what needs a client that can be asked, from one that cannot. */
async function mustNotAsk(bench: Bench, method: string, call: Json): Promise<void> {
  const peer = await bench.open()
  const answer = await peer.request('tools/call', call)
  bench.expect(
    peer.heard(method).length === 0,
    `${method} must not be sent to a client that did not declare it`,
    peer.heard(method),
  )
  const asked = isRecord(resultIn(answer)['inputRequests']) ? JSON.stringify(resultIn(answer)['inputRequests']) : ''
  bench.expect(!asked.includes(method), `a result must not ask for ${method}, which was not declared`, [answer.frame])
  await peer.settled()
}

function answered(bench: Bench, answer: Answer): void {
  const isAnswer = isRecord(answer.result) || answer.error !== undefined
  bench.expect(isAnswer, 'the call must be answered after the question was', [answer.frame])
}

export const elicitationScenarios: readonly Scenario[] = [
  ...(['accept', 'decline', 'cancel'] as const).map(action =>
    scenario(`base/elicitation/${action}`, {
      title: `a form that the user answers with "${action}" lets the call go on`,
      proves: eliciting,
      revisions: forms,
      needs: [tool('test_elicitation')],
      async run(bench) {
        const reply = action === 'accept' ? accept : { action }
        const call = { name: 'test_elicitation', arguments: fixtureMessage }
        const asked = await ask(bench, elicitation(bench.revision), 'elicitation/create', reply, call)
        expectForm(bench, asked)
        bench.expect(isRecord(asked.answer.result), 'the call must be answered with a result', [asked.answer.frame])
        if (action === 'accept')
          bench.expect(textIn(asked.answer).includes('ada'), 'the tool must see what the user said', [asked.answer.frame])
      },
    }),
  ),
  scenario('base/elicitation/undeclared', {
    title: 'a client that did not declare elicitation is not asked',
    proves: eliciting,
    revisions: forms,
    needs: [tool('test_elicitation')],
    run: bench => mustNotAsk(bench, 'elicitation/create', { name: 'test_elicitation', arguments: fixtureMessage }),
  }),
  scenario('base/elicitation/defaults', {
    title: 'the fields of a form keep their defaults',
    proves: [...eliciting, 'SEP-1034'],
    // The draft's own schema knows no default that is no integer.
    revisions: ['2025-11-25', '2026-07-28'],
    needs: [tool('test_elicitation_sep1034_defaults')],
    async run(bench) {
      const call = { name: 'test_elicitation_sep1034_defaults' }
      const asked = await ask(bench, elicitation(bench.revision), 'elicitation/create', { action: 'accept', content: {} }, call)
      const properties = expectForm(bench, asked)
      const wanted = { name: 'John Doe', age: 30, score: 95.5, status: 'active', verified: true }
      for (const [name, value] of Object.entries(wanted)) {
        const field = properties[name]
        bench.expect(isRecord(field) && field['default'] === value, `the field ${name} must have the default ${value}`)
      }
    },
  }),
  scenario('base/elicitation/choices', {
    title: 'a form offers choices in all five ways',
    proves: [...eliciting, 'SEP-1330'],
    revisions: since('2025-11-25'),
    needs: [tool('test_elicitation_sep1330_enums')],
    async run(bench) {
      const call = { name: 'test_elicitation_sep1330_enums' }
      const asked = await ask(bench, elicitation(bench.revision), 'elicitation/create', { action: 'decline' }, call)
      const fields = Object.values(expectForm(bench, asked)).filter(isRecord)
      const has = (fits: (field: Json) => boolean, what: string): void =>
        bench.expect(fields.some(fits), `one field must be ${what}`)
      has(({ oneOf }) => Array.isArray(oneOf), 'a choice with titles (oneOf)')
      has(field => Array.isArray(field['enum']) && field['enumNames'] === undefined, 'a plain choice (enum)')
      has(({ enumNames }) => Array.isArray(enumNames), 'a choice in the old way (enumNames)')
      has(({ type, items }) => type === 'array' && listIn(items, 'enum').length > 0, 'a choice of several (array of enum)')
      has(
        ({ type, items }) => type === 'array' && listIn(items, 'anyOf').length > 0,
        'a choice of several with titles (array of anyOf)',
      )
    },
  }),
  scenario('base/elicitation/url', {
    title: 'a user can be sent to a page',
    proves: [...eliciting, 'SEP-1036'],
    revisions: since('2025-11-25'),
    needs: [tool('test_url_elicitation')],
    async run(bench) {
      const call = { name: 'test_url_elicitation' }
      const asked = await ask(bench, elicitation(bench.revision, true), 'elicitation/create', { action: 'accept' }, call)
      const [question] = asked.questions
      bench.expect(question?.['mode'] === 'url', 'the mode of the question must be "url"', asked.peer.frames.slice(-3))
      bench.expect(URL.canParse(String(question?.['url'])), 'url must be a URL', asked.peer.frames.slice(-3))
      bench.expect(typeof question?.['message'] === 'string', 'the question must have a message', asked.peer.frames.slice(-3))
      if (bench.revision !== '2026-07-28')
        bench.expect(
          typeof question?.['elicitationId'] === 'string',
          'elicitationId must be a string',
          asked.peer.frames.slice(-3),
        )
      answered(bench, asked.answer)
    },
  }),
  scenario('base/elicitation/url-undeclared', {
    title: 'a client that takes forms only is not sent to a page',
    proves: [...eliciting, 'SEP-1036'],
    revisions: since('2025-11-25'),
    needs: [tool('test_url_elicitation')],
    async run(bench) {
      const peer = await bench.open({ capabilities: elicitation(bench.revision) })
      const answer = await peer.request('tools/call', { name: 'test_url_elicitation' })
      const pushed = peer.heard('elicitation/create')
      bench.expect(pushed.length === 0, 'no question by URL must be asked', pushed)
      bench.expect(resultIn(answer)['inputRequests'] === undefined, 'no question by URL must be asked', [answer.frame])
    },
  }),
]

const said = { role: 'assistant', content: { type: 'text', text: 'vivarium-says-hello' }, model: 'kit', stopReason: 'endTurn' }
const prompt = { prompt: 'Say hello' }

export const samplingScenarios: readonly Scenario[] = [
  scenario('base/sampling/text', {
    title: "a tool asks the client's model, and gets what it said",
    proves: sampling,
    revisions: official,
    needs: [tool('test_sampling')],
    async run(bench) {
      const call = { name: 'test_sampling', arguments: prompt }
      const { answer, questions, peer } = await ask(bench, { sampling: {} }, 'sampling/createMessage', said, call)
      const [question] = questions
      bench.expect(question !== undefined, 'the tool must ask by sampling/createMessage', peer.frames.slice(-3))
      bench.expect(typeof question?.['maxTokens'] === 'number', 'maxTokens must be a number', peer.frames.slice(-3))
      const messages = listIn(question, 'messages')
      bench.expect(messages.length > 0, 'there must be messages', peer.frames.slice(-3))
      for (const message of messages) {
        const isMessage = isRecord(message) && ['user', 'assistant'].includes(String(message['role']))
        bench.expect(isMessage, 'the role of a message must be user or assistant', peer.frames.slice(-3))
        const content = isRecord(message) ? message['content'] : undefined
        for (const block of Array.isArray(content) ? content : [content]) {
          const fault =
            isRecord(block) && String(block['type']).startsWith('tool_') ? undefined : blockFault(block, bench.revision)
          bench.expect(fault === undefined, String(fault), peer.frames.slice(-3))
        }
      }
      bench.expect(textIn(answer).includes('vivarium-says-hello'), 'the tool must see what the model said', [answer.frame])
    },
  }),
  scenario('base/sampling/undeclared', {
    title: 'a client that did not declare sampling is not asked',
    proves: sampling,
    revisions: official,
    needs: [tool('test_sampling')],
    run: bench => mustNotAsk(bench, 'sampling/createMessage', { name: 'test_sampling', arguments: prompt }),
  }),
  scenario('base/sampling/refused', {
    title: 'a question that the client refuses ends the call in order',
    proves: sampling,
    revisions: ['2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25'],
    needs: [tool('test_sampling')],
    async run(bench) {
      const peer = await bench.open({ capabilities: { sampling: {} } })
      peer.onRequest('sampling/createMessage', () => {
        throw Object.assign(new Error('User rejected sampling request'), { code: -1 })
      })
      const answer = await peer.request('tools/call', { name: 'test_sampling', arguments: prompt })
      answered(bench, answer)
      bench.expect(answer.error !== undefined || resultIn(answer)['isError'] === true, 'a refused question must fail the call', [
        answer.frame,
      ])
      await peer.settled()
    },
  }),
  scenario('base/sampling/tools', {
    title: 'the model may be given tools, and their use goes back and forth',
    proves: [...sampling, 'SEP-1577'],
    revisions: since('2025-11-25'),
    needs: [tool('test_sampling_with_tools')],
    async run(bench) {
      const peer = await bench.open({ capabilities: { sampling: { tools: {} } } })
      const questions: Json[] = []
      const use = {
        role: 'assistant',
        content: [{ type: 'tool_use', id: 'use-1', name: 'add', input: { a: 1, b: 2 } }],
        model: 'kit',
        stopReason: 'toolUse',
      }
      peer.onRequest('sampling/createMessage', params => {
        questions.push(params)
        return questions.length === 1 ? use : said
      })
      const answer = await peer.converse('tools/call', { name: 'test_sampling_with_tools' })
      bench.expect(listIn(questions[0], 'tools').length > 0, 'the question must offer tools', peer.frames.slice(-4))
      const last = listIn(questions[1], 'messages').at(-1)
      const blocks = isRecord(last) ? (Array.isArray(last['content']) ? last['content'] : [last['content']]) : []
      const isReply =
        blocks.length > 0 &&
        blocks.every(block => isRecord(block) && block['type'] === 'tool_result' && block['toolUseId'] === 'use-1')
      bench.expect(isReply, 'a tool_use must be answered by a tool_result in the very next message, alone', peer.frames.slice(-4))
      answered(bench, answer)
    },
  }),
  scenario('base/sampling/tools-undeclared', {
    title: 'tools are not given to a model of a client that did not declare it takes them',
    proves: [...sampling, 'SEP-1577'],
    revisions: since('2025-11-25'),
    needs: [tool('test_sampling_with_tools')],
    async run(bench) {
      const peer = await bench.open({ capabilities: { sampling: {} } })
      const questions: Json[] = []
      peer.onRequest('sampling/createMessage', params => {
        questions.push(params)
        return said
      })
      await peer.converse('tools/call', { name: 'test_sampling_with_tools' })
      const wrong = questions.some(question => question['tools'] !== undefined || question['toolChoice'] !== undefined)
      bench.expect(!wrong, 'tools must not be sent to a client that did not declare sampling.tools', peer.frames.slice(-4))
    },
  }),
  scenario('base/roots/list', {
    title: 'a tool asks for the roots of the client, and gets them',
    proves: ['MCP client/roots'],
    revisions: official,
    needs: [tool('test_input_required_result_list_roots')],
    async run(bench) {
      const roots = [{ uri: 'file:///vivarium/kit', name: 'kit-root' }]
      const call = { name: 'test_input_required_result_list_roots' }
      const { answer, questions, peer } = await ask(bench, { roots: {} }, 'roots/list', { roots }, call)
      bench.expect(questions.length === 1, 'the tool must ask by roots/list, once', peer.frames.slice(-3))
      bench.expect(
        textIn(answer).includes('kit-root') || textIn(answer).includes('file:///vivarium/kit'),
        'the tool must see the roots',
        [answer.frame],
      )
    },
  }),
  scenario('base/roots/changed', {
    title: 'roots that change are told, and do no harm',
    proves: ['MCP client/roots#root-list-changes'],
    revisions: ['2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25'],
    async run(bench) {
      const peer = await bench.open({ capabilities: { roots: { listChanged: true } } })
      peer.onRequest('roots/list', () => ({ roots: [] }))
      await peer.notify('notifications/roots/list_changed')
      await peer.settled()
    },
  }),
  scenario('base/roots/undeclared', {
    title: 'a client that did not declare roots is not asked for them',
    proves: ['MCP client/roots'],
    revisions: official,
    needs: [capability('tools'), tool('test_input_required_result_list_roots')],
    run: bench => mustNotAsk(bench, 'roots/list', { name: 'test_input_required_result_list_roots' }),
  }),
]
