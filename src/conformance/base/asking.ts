/** A server that asks in the middle of a call: the user, the client's model, its roots. Pushed or inside results, the same rows. */
import { isRecord } from '../../jsonrpc/message.ts'
import { isFailure, isFault, isResult, type PeerAnswer } from '../calls.ts'
import { eras, official, sessions, since, table } from '../define.ts'
import { type Expectations, firstFault, is, listIn, objectIn, objectsIn } from '../expectations.ts'
import { capability, tool } from '../needs.ts'
import type { Frame, Json, RevisionId, Scenario } from '../scenario.ts'
import { type ScenarioContext, type SentStep, settle, step, type TableStep } from '../steps.ts'
import { blockFault } from './content.ts'

/** Elicitation as the revision declares it; `url` only where it exists. */
function elicitation(revision: RevisionId, url = false): Json {
  if (revision === '2025-06-18') return { elicitation: {} }
  return { elicitation: url ? { form: {}, url: {} } : { form: {} } }
}

/** What came of a call during which the server asked: its answer, and the parameters of each question. */
interface AskedCall {
  readonly it: PeerAnswer
  readonly questions: readonly Json[]
  /** The first of them; empty where nothing was asked. */
  readonly question: Json
  /** What was said last, for the report. */
  readonly frames: readonly Frame[]
}

/** Calls a tool and answers what it asks by this method: with a value, or with what a function of the number of questions gives. */
function asks(method: string, name: string, reply: Json | ((count: number) => Json), args?: Json): SentStep<AskedCall> {
  return step(async ({ peer, call }) => {
    const questions: Json[] = []
    peer.onRequest(method, params => {
      const count = questions.push(params)
      return typeof reply === 'function' ? reply(count) : reply
    })
    const it = await call(name, { converse: true, ...(args === undefined ? {} : { args }) })
    return { it, questions, question: questions[0] ?? {}, frames: peer.frames.slice(-4) }
  }, tool(name))
}

/** The call is answered with a result or an error once its question was. */
const isAnswered = {
  'the call must be answered after the question was': ({ it }: AskedCall) => isRecord(it.answer.result) || it.code !== undefined,
}
const hasMessage = { 'the question must have a message': ({ question }: AskedCall) => is.string(question.message) }

/** Calls what needs a client that can be asked, from one that declared nothing of the kind. */
function mustNotAsk(method: string, name: string, args?: Json): readonly TableStep[] {
  return [
    step(async ({ peer, call }) => {
      const it = await call(name, args === undefined ? {} : { args })
      const pushed = peer.heard(method)
      return { it, pushed, frames: pushed.length > 0 ? pushed : it.frames }
    }, tool(name)).expect({
      [`${method} must not be sent to a client that did not declare it`]: ({ pushed }) => pushed.length === 0,
      [`a result must not ask for ${method}, which was not declared`]: ({ it }) =>
        !JSON.stringify(objectIn(it.result, 'inputRequests')).includes(method),
    }),
    settle,
  ]
}

const form = table('base/elicitation/', {
  proves: ['MCP client/elicitation'],
  revisions: since('2025-06-18'),
  open: ({ revision }) => ({ capabilities: elicitation(revision) }),
})
const create = 'elicitation/create'
const whoAreYou = { message: 'Who are you?' }
const accept = { action: 'accept', content: { username: 'ada', email: 'ada@example.com' } }
const primitives = ['string', 'number', 'integer', 'boolean']
const fieldsIn = ({ question }: AskedCall): Json => objectIn(question, 'requestedSchema', 'properties')

/** The tool asked by a form of primitive fields; from 2025-11-25 on a field may be a list of choices too. */
const isForm: Expectations<AskedCall, ScenarioContext> = {
  'the tool must ask by elicitation/create': ({ questions }) => questions.length > 0,
  ...hasMessage,
  'requestedSchema must describe an object': ({ question }) => {
    const { type, properties } = objectIn(question, 'requestedSchema')
    return type === 'object' && isRecord(properties)
  },
  'the fields must be of primitive types': (asked, { revision }) => {
    const kinds = since('2025-11-25').includes(revision) ? [...primitives, 'array'] : primitives
    const isKind = (field: unknown): boolean => isRecord(field) && kinds.includes(String(field.type))
    return firstFault(
      Object.entries(fieldsIn(asked)),
      ([name, field]) => !isKind(field) && `the field ${name} must be of a primitive type`,
    )
  },
}

const defaults = { name: 'John Doe', age: 30, score: 95.5, status: 'active', verified: true }

/** The five ways to offer a choice: what one field of the form must be. */
const choices: Readonly<Record<string, (field: Json) => boolean>> = {
  'a choice with titles (oneOf)': ({ oneOf }) => Array.isArray(oneOf),
  'a plain choice (enum)': field => Array.isArray(field.enum) && field.enumNames === undefined,
  'a choice in the old way (enumNames)': ({ enumNames }) => Array.isArray(enumNames),
  'a choice of several (array of enum)': ({ type, items }) => type === 'array' && listIn(items, 'enum').length > 0,
  'a choice of several with titles (array of anyOf)': ({ type, items }) => type === 'array' && listIn(items, 'anyOf').length > 0,
}

/** Questions to the user: forms and pages. */
export const elicitationScenarios: readonly Scenario[] = [
  ...['accept', 'decline', 'cancel'].map(action =>
    form(action, `the call continues after a form that the user answers with "${action}"`).by([
      asks(create, 'test_elicitation', action === 'accept' ? accept : { action }, whoAreYou).expect({
        ...isForm,
        'the call must be answered with a result': ({ it }) => isRecord(it.answer.result),
        'the tool must receive the answer of the user': ({ it }) => action !== 'accept' || it.text.includes('ada'),
      }),
    ]),
  ),
  form('undeclared', 'a client that did not declare elicitation is not asked').by(
    { open: { capabilities: {} } },
    mustNotAsk(create, 'test_elicitation', whoAreYou),
  ),
  form('defaults MCP client/elicitation SEP-1034', 'the fields of a form keep their defaults').by({ revisions: eras }, [
    asks(create, 'test_elicitation_sep1034_defaults', { action: 'accept', content: {} }).expect({
      ...isForm,
      'the fields must have their defaults': asked =>
        firstFault(
          Object.entries(defaults),
          ([name, value]) =>
            objectIn(fieldsIn(asked), name).default !== value && `the field ${name} must have the default ${value}`,
        ),
    }),
  ]),
  form('choices MCP client/elicitation SEP-1330', 'a form offers choices in all five ways').by(
    { revisions: since('2025-11-25') },
    [
      asks(create, 'test_elicitation_sep1330_enums', { action: 'decline' }).expect({
        ...isForm,
        'every way must be there': asked =>
          firstFault(
            Object.entries(choices),
            ([what, fits]) => !Object.values(fieldsIn(asked)).filter(isRecord).some(fits) && `one field must be ${what}`,
          ),
      }),
    ],
  ),
  form('url MCP client/elicitation SEP-1036', 'a server can ask the user to open a page').by(
    {
      revisions: since('2025-11-25'),
      open: ({ revision }) => ({ capabilities: elicitation(revision, true) }),
    },
    [
      asks(create, 'test_url_elicitation', { action: 'accept' }).expect({
        'the mode of the question must be "url"': ({ question }) => question.mode === 'url',
        'url must be a URL': ({ question }) => URL.canParse(String(question.url)),
        ...hasMessage,
        'elicitationId must be a string': ({ question }, { modern }) => modern || is.string(question.elicitationId),
        ...isAnswered,
      }),
    ],
  ),
  form('url-undeclared MCP client/elicitation SEP-1036', 'a client that supports only forms is not sent a URL').by(
    { revisions: since('2025-11-25'), needs: [tool('test_url_elicitation')] },
    [
      step(async ({ peer, call }) => ({ it: await call('test_url_elicitation'), pushed: peer.heard(create) })).expect({
        'no question by URL must be asked': ({ it, pushed }) => pushed.length === 0 && it.result.inputRequests === undefined,
      }),
    ],
  ),
]

const sampling = table('base/sampling/', {
  proves: ['MCP client/sampling'],
  revisions: official,
  open: { capabilities: { sampling: {} } },
})
const roots = table('base/roots/', { proves: ['MCP client/roots'], revisions: official, open: { capabilities: { roots: {} } } })
const sample = 'sampling/createMessage'
const said = { role: 'assistant', content: { type: 'text', text: 'vivarium-says-hello' }, model: 'kit', stopReason: 'endTurn' }
const toolUse = {
  ...{ role: 'assistant', model: 'kit', stopReason: 'toolUse' },
  content: [{ type: 'tool_use', id: 'use-1', name: 'add', input: { a: 1, b: 2 } }],
}
const prompt = { prompt: 'Say hello' }
const listRoots = 'test_input_required_result_list_roots'
const clientRoots = [{ uri: 'file:///vivarium/kit', name: 'kit-root' }]

/** What is wrong with a message that a model is given; blocks about tools are for another row. */
function messageFault(message: unknown, revision: RevisionId): string | undefined {
  const { role, content } = objectIn(message)
  if (!is.oneOf('user', 'assistant')(role)) return 'the role of a message must be user or assistant'
  return firstFault([content].flat(), block =>
    String(objectIn(block).type).startsWith('tool_') ? undefined : blockFault(block, revision),
  )
}

/** Questions to the client's model, and for its roots. */
export const samplingScenarios: readonly Scenario[] = [
  sampling('text', "a tool asks the client's model and receives its answer").by([
    asks(sample, 'test_sampling', said, prompt).expect({
      'the tool must ask by sampling/createMessage': ({ questions }) => questions.length > 0,
      'maxTokens must be a number': ({ question }) => is.number(question.maxTokens),
      'there must be messages': ({ question }) => listIn(question, 'messages').length > 0,
      'every message must be complete': ({ question }, { revision }) =>
        firstFault(listIn(question, 'messages'), message => messageFault(message, revision)),
      'the tool must receive the answer of the model': ({ it }) => it.text.includes('vivarium-says-hello'),
    }),
  ]),
  sampling('undeclared', 'a client that did not declare sampling is not asked').by(
    { open: { capabilities: {} } },
    mustNotAsk(sample, 'test_sampling', prompt),
  ),
  sampling('refused', 'a call whose question the client refuses ends with a response').by(
    { revisions: sessions, needs: [tool('test_sampling')] },
    async x => {
      x.peer.onRequest(sample, () => {
        throw Object.assign(new Error('User rejected sampling request'), { code: -1 })
      })
      x.hold(await x.call('test_sampling', { args: prompt }), {
        'the call must be answered after the question was': (it, ...more) => isResult(it, ...more) || isFault(it, ...more),
        'a refused question must fail the call': isFailure,
      })
      await x.peer.settled()
    },
  ),
  sampling('tools MCP client/sampling SEP-1577', 'a server can offer tools to the model and answer their use').by(
    {
      revisions: since('2025-11-25'),
      open: { capabilities: { sampling: { tools: {} } } },
    },
    [
      asks(sample, 'test_sampling_with_tools', count => (count === 1 ? toolUse : said)).expect({
        'the question must offer tools': ({ question }) => listIn(question, 'tools').length > 0,
        'a tool_use must be answered by a tool_result in the very next message, alone': ({ questions }) => {
          const blocks = [objectsIn(questions[1], 'messages').at(-1)?.content].flat().map(block => objectIn(block))
          return blocks.length > 0 && blocks.every(({ type, toolUseId }) => type === 'tool_result' && toolUseId === 'use-1')
        },
        ...isAnswered,
      }),
    ],
  ),
  sampling(
    'tools-undeclared MCP client/sampling SEP-1577',
    'tools are not offered to a client that did not declare sampling.tools',
  ).by({ revisions: since('2025-11-25') }, [
    asks(sample, 'test_sampling_with_tools', said).expect({
      'tools must not be sent to a client that did not declare sampling.tools': ({ questions }) =>
        questions.every(({ tools, toolChoice }) => tools === undefined && toolChoice === undefined),
    }),
  ]),
  roots('list', 'a tool asks for the roots of the client, and gets them').by([
    asks('roots/list', listRoots, { roots: clientRoots }).expect({
      'the tool must ask by roots/list, once': ({ questions }) => questions.length === 1,
      'the tool must see the roots': ({ it }) => it.text.includes('kit-root') || it.text.includes('file:///vivarium/kit'),
    }),
  ]),
  roots('changed MCP client/roots#root-list-changes', 'a notification of changed roots does no harm').by(
    { revisions: sessions, open: { capabilities: { roots: { listChanged: true } } } },
    [
      step(({ peer }) => {
        peer.onRequest('roots/list', () => ({ roots: [] }))
        return peer.notify('notifications/roots/list_changed')
      }),
      settle,
    ],
  ),
  roots('undeclared', 'a client that did not declare roots is not asked for them').by(
    { open: { capabilities: {} }, needs: [capability('tools')] },
    mustNotAsk('roots/list', listRoots),
  ),
]
