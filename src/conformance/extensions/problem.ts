/** E11: failures that say what they are, to programs and to readers. */
import { isRecord } from '../../jsonrpc/message.ts'
import { hasProblem, hasResult, isRefusedBy, type PeerAnswer } from '../calls.ts'
import { extensionTable } from '../define.ts'
import { type Expectation, ifThere, isFlag, isOneOf, isString, isWord, listIn } from '../expectations.ts'
import type { Scenario } from '../scenario.ts'
import { callPlain, callTool, inWords, step } from '../steps.ts'
import { bringing, extensionId, isPlain, toolThat } from '../tools.ts'

const row = extensionTable('problem')

const categories = ['transient', 'permanent', 'auth_required', 'invalid_input', 'rate_limited']
const checked = toolThat('needs an argument', tool => isPlain(tool) && listIn(tool, 'inputSchema', 'required').length > 0)
const transient = bringing('failure:transient')
const permanent = bringing('failure:permanent')
const unexpected = bringing('failure:unexpected')
const isHttps = ifThere(url => isString(url) && url.startsWith('https://'))
const isWhole = (value: unknown) => Number.isInteger(value) && Number(value) >= 0

/** What each member of a problem must be, and what is told where it is not. */
const members: readonly (readonly [string, (value: unknown) => boolean, string])[] = [
  ['code', code => isString(code) && /^[A-Z][A-Z0-9_]*$/.test(code), 'code is not in upper case with underscores'],
  ['message', isWord, 'message is missing'],
  ['category', isOneOf(...categories), `category is none of ${categories.join(', ')}`],
  ['retry_after_seconds', ifThere(isWhole), 'retry_after_seconds is no whole number'],
  ['user_actionable', ifThere(isFlag), 'user_actionable is no boolean'],
  ['suggestion', ifThere(isString), 'suggestion is no text'],
  ['details', ifThere(isRecord), 'details are no object'],
  ['documentation_url', isHttps, 'documentation_url is not https'],
]

const isProblem: Expectation<PeerAnswer> = ({ problem }) => {
  const wrong = members.find(([name, test]) => !test(problem[name]))
  return wrong === undefined || `The problem does not fit its schema: ${wrong[2]}`
}
const schema = { 'The problem does not fit its schema': isProblem }

export const problems: readonly Scenario[] = [
  row('E11-1', 'Wrong arguments are a failed result with a problem of the category invalid_input', [
    callTool(checked, { args: {} }).expect({
      ...schema,
      'Wrong arguments are not a failed result with INVALID_INPUT': ({ isError, problem }) =>
        isError && problem.code === 'INVALID_INPUT' && problem.category === 'invalid_input',
    }),
  ]),
  row('E11-1t E11-1', 'A failure for now says so, and how long to wait', { tools: [transient] }, async x => {
    for (let round = 0; round < 4; round++) {
      const called = await x.call(transient)
      if (!called.isError) continue
      const waits = hasProblem({ category: 'transient', retry_after_seconds: Number.isInteger })
      return x.hold(called, { ...schema, 'A failure for now is not transient with retry_after_seconds': waits })
    }
    x.leave('The tool did not fail')
  }),
  row('E11-2', 'The words of a failed result are enough for those who see no problem', [
    callTool(permanent).expect({ 'A failed result has no words': it => it.isError && it.text.length > 3, ...schema }),
    callPlain(permanent).expect({
      'A plain client gets no failed result with words': hasResult(inWords),
      'A client that did not declare it gets a problem object': ({ result }) =>
        !JSON.stringify(result._meta ?? {}).includes(extensionId('problem')),
    }),
  ]),
  row('E11-7', 'A mistake in a tool is SERVER_ERROR, without a stack or paths of the machine', [
    callTool(unexpected).expect({
      'A tool with a mistake in it': isRefusedBy('SERVER_ERROR'),
      ...schema,
      'The answer shows a stack or a path': ({ result }) =>
        !/\bat .+:\d+:\d+|node_modules|file:\/\/|\.(ts|js|py):\d+/.test(JSON.stringify(result)),
    }),
  ]),
  row('E11-8', 'A link to documentation is https, or is not there', [
    callTool(permanent).expect({ 'documentation_url is not https': hasProblem({ documentation_url: isHttps }) }),
  ]),
  row('E11-9', 'Details are at most 8 KiB', [
    callTool(permanent).expect({
      'details are longer than 8 KiB': ({ problem }) => Buffer.byteLength(JSON.stringify(problem.details ?? {})) <= 8 * 1024,
    }),
  ]),
  row('E11-10', 'A tool that is not there is an error of the protocol, with the problem beside it', { writes: false }, [
    step(x => x.call(`no_such_tool_${x.key()}`, { args: {} })).expect({
      'A call of an unknown tool is not answered with -32602': it => it.code === -32602 && it.answer.result === undefined,
      'The problem does not fit its schema': (it, x, says) => Object.keys(it.problem).length === 0 || isProblem(it, x, says),
    }),
  ]),
  row('X8', 'A mistake in a tool can be found again by its correlation id', [
    callTool(unexpected),
    callTool(unexpected).expect({
      'Two failures do not have a correlation_id each': (it, { was }) => {
        const [one, other] = [was(0), it].map(({ problem }) => problem.correlation_id)
        return isWord(one) && isWord(other) && one !== other
      },
    }),
  ]),
]
