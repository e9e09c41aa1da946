/** Prompts, and completing what is typed for their arguments. */
import { isRecord } from '../../jsonrpc/message.ts'
import { hasCode, hasResult, isFault, isRefused, type PeerAnswer } from '../calls.ts'
import { official, since, table } from '../define.ts'
import { type Expectations, firstFault, is, listIn, objectIn, objectsIn, should } from '../expectations.ts'
import { capability, type Need, peerHas, prompt } from '../needs.ts'
import type { Advertised, Json, Scenario } from '../scenario.ts'
import { type ScenarioContext, send, step } from '../steps.ts'
import { blockFault } from './content.ts'

const row = table('base/prompts/', {
  proves: ['MCP server/prompts#getting-a-prompt'],
  revisions: official,
  needs: [capability('prompts')],
})
const failing = ['MCP server/prompts#error-handling']

/** The prompt has messages, and each is one. */
const isWhole: Expectations<PeerAnswer, ScenarioContext> = {
  'the result must have the list messages': hasResult({ messages: Array.isArray }),
  'every message must be complete': ({ result }, { revision }) =>
    firstFault(listIn(result, 'messages'), message => {
      const { role, content } = objectIn(message)
      if (role !== 'user' && role !== 'assistant') return 'the role of a message must be user or assistant'
      return blockFault(content, revision)
    }),
}
const contentsIn = ({ result }: PeerAnswer): readonly Json[] =>
  objectsIn(result, 'messages').map(({ content }) => objectIn(content))
const holdsKind = (kind: string) => (it: PeerAnswer) => contentsIn(it).some(({ type }) => type === kind)

/** The first prompt that demands arguments, or that demands none. */
function promptThat(demands: boolean, { prompts }: Advertised): Json | undefined {
  return prompts.find(one => objectsIn(one, 'arguments').some(({ required }) => required === true) === demands)
}
const needsPromptThat = (demands: boolean, why: string): Need => peerHas(peer => promptThat(demands, peer) !== undefined, why)
/** Gets a prompt of conformance suites. */
const get = (name: string, args?: Json) =>
  step(x => x.ask('prompts/get', args === undefined ? { name } : { name, arguments: args }), prompt(name))

const odd = { arg1: 'Zoë "漢字"', arg2: '🙂\nsecond line' }
const withArguments = 'test_prompt_with_arguments'

/** Getting prompts, with and without arguments. */
export const promptScenarios: readonly Scenario[] = [
  row('get-any', 'a listed prompt without required arguments can be fetched').by(
    needsPromptThat(false, 'every prompt has required arguments'),
    [
      send('prompts/get', ({ bench }) => ({ name: String(promptThat(false, bench.peer)?.name) })).expect({
        ...isWhole,
        'a prompt must have messages': it => contentsIn(it).length > 0,
      }),
    ],
  ),
  row('get-simple', 'a prompt without arguments returns its messages').by([
    get('test_simple_prompt').expect({ ...isWhole, 'the prompt must have a text': holdsKind('text') }),
  ]),
  row('get-arguments', 'the arguments of a prompt are in its messages unchanged').by([
    get(withArguments, odd).expect({
      ...isWhole,
      'the messages must hold the arguments as they were sent': it => {
        const text = contentsIn(it)
          .map(content => String(content.text))
          .join()
        return Object.values(odd).every(value => text.includes(value))
      },
    }),
  ]),
  row('get-resource', 'a prompt can contain a resource').by([
    get('test_prompt_with_embedded_resource', { resourceUri: 'test://example-resource' }).expect({
      ...isWhole,
      'the messages must hold a resource': holdsKind('resource'),
    }),
  ]),
  row('get-image', 'a prompt can contain an image').by([
    get('test_prompt_with_image').expect({
      ...isWhole,
      'the messages must hold an image': holdsKind('image'),
    }),
  ]),
  row('unknown', 'a prompt that does not exist is an error').by({ proves: failing }, [
    send('prompts/get', { name: 'vivarium-no-such-prompt' }).expect({
      'an unknown prompt must be refused with an error': isFault,
      'an unknown prompt should be refused with error -32602': should(hasCode(-32602)),
    }),
  ]),
  row('missing-arguments', 'a prompt without its required arguments is an error').by(
    { proves: failing, needs: [needsPromptThat(true, 'no prompt has required arguments')] },
    [
      send('prompts/get', ({ bench }) => ({ name: promptThat(true, bench.peer)?.name, arguments: {} })).expect({
        'missing arguments must be refused with an error': isFault,
        'missing arguments should be refused with error -32602': should(hasCode(-32602)),
      }),
    ],
  ),
]

const completion = table('base/completion/', {
  proves: ['MCP server/utilities/completion'],
  revisions: since('2025-03-26'),
  needs: [
    peerHas(peer => peer.revision === '2024-11-05' || peer.has('completions'), 'the server does not advertise completions'),
  ],
})
const wrongly = ['MCP server/utilities/completion#error-handling']
const fixture = { type: 'ref/prompt', name: withArguments }
const complete = (ref: Json, argument: Json, more: Json = {}) => send('completion/complete', { ref, argument, ...more })
const valuesIn = ({ result }: PeerAnswer): readonly unknown[] => listIn(result, 'completion', 'values')
const isInteger = (value: unknown): boolean => Number.isInteger(value)

const isCompletion: Expectations<PeerAnswer> = {
  'completion.values must be a list': hasResult({ completion: { values: Array.isArray } }),
  'completion.values must be strings': it => valuesIn(it).every(is.string),
  'completion.values must not be more than 100': it => valuesIn(it).length <= 100,
  'completion.total must be an integer': hasResult({ completion: { total: is.optional(isInteger) } }),
  'completion.hasMore must be true or false': hasResult({ completion: { hasMore: is.optional(is.boolean) } }),
}
const takesArguments = (one: Json): boolean => listIn(one, 'arguments').length > 0

/** Completing the arguments of prompts. */
export const completionScenarios: readonly Scenario[] = [
  completion('prompt', 'a prefix of a prompt argument is completed').by({ revisions: official, needs: [prompt(withArguments)] }, [
    complete(fixture, { name: 'arg1', value: 'par' }).expect({
      ...isCompletion,
      'values that do not begin with what was typed': should(it => valuesIn(it).every(value => String(value).startsWith('par'))),
    }),
  ]),
  completion('any', 'completing an argument of a listed prompt or template gives values').by(
    [peerHas(({ prompts }) => prompts.some(takesArguments), 'no prompt has arguments')],
    [
      send('completion/complete', ({ bench }) => {
        const found = bench.peer.prompts.find(takesArguments)
        const [first] = listIn(found, 'arguments')
        const argument = { name: isRecord(first) ? first.name : '', value: '' }
        return { ref: { type: 'ref/prompt', name: found?.name }, argument }
      }).expect(isCompletion),
    ],
  ),
  completion('context MCP server/utilities/completion SEP-598', 'a request can contain the arguments that are already chosen').by(
    { revisions: since('2025-06-18'), needs: [prompt(withArguments)] },
    [complete(fixture, { name: 'arg1', value: '' }, { context: { arguments: { arg2: 'x' } } }).expect(isCompletion)],
  ),
  completion('unknown', 'completing for a prompt that does not exist is an error').by({ proves: wrongly }, [
    complete({ type: 'ref/prompt', name: 'vivarium-no-such-prompt' }, { name: 'x', value: '' }).expect({
      'an unknown prompt should be refused with error -32602': should(isFault),
      'the error should be -32602': should(
        ({ code }, _, says) => code === undefined || code === -32602 || `${says}, not ${code}`,
      ),
      'it must be answered': ({ answer, result }) => answer.error !== undefined || isRecord(result.completion),
    }),
  ]),
  completion('bad-ref', 'a reference of an unknown kind is refused').by({ proves: wrongly }, [
    complete({ type: 'ref/unicorn', name: 'x' }, { name: 'x', value: '' }).expect({
      'a reference of an unknown kind must be refused': isRefused,
    }),
  ]),
]
