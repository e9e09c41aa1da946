/** E11: failures that say what they are, to programs and to readers. */
import { isRecord } from '../../jsonrpc/message.ts'
import type { Json, Scenario } from '../scenario.ts'
import { bringing, isPlain, toolThat } from '../tools.ts'
import { scenariosOf } from './scenario-of.ts'
import type { Called } from './talk.ts'

const scenario = scenariosOf('problem')

const categories = ['transient', 'permanent', 'auth_required', 'invalid_input', 'rate_limited']
const checked = toolThat('needs an argument', tool => isPlain(tool) && requires(tool))
const transient = bringing('failure:transient')
const permanent = bringing('failure:permanent')
const unexpected = bringing('failure:unexpected')

function requires(tool: Json): boolean {
  const schema = tool['inputSchema']
  return isRecord(schema) && Array.isArray(schema['required']) && schema['required'].length > 0
}

/** What is wrong with a problem; undefined where nothing is. */
export function faultOfProblem(problem: Json): string | undefined {
  const {
    code,
    message,
    category,
    retry_after_seconds: seconds,
    user_actionable: actionable,
    suggestion,
    details,
    documentation_url: url,
  } = problem
  if (typeof code !== 'string' || !/^[A-Z][A-Z0-9_]*$/.test(code)) return 'code is not in upper case with underscores'
  if (typeof message !== 'string' || message === '') return 'message is missing'
  if (!categories.includes(String(category))) return `category is none of ${categories.join(', ')}`
  if (seconds !== undefined && !(Number.isInteger(seconds) && Number(seconds) >= 0))
    return 'retry_after_seconds is no whole number'
  if (actionable !== undefined && typeof actionable !== 'boolean') return 'user_actionable is no boolean'
  if (suggestion !== undefined && typeof suggestion !== 'string') return 'suggestion is no text'
  if (details !== undefined && !isRecord(details)) return 'details are no object'
  if (url !== undefined && !(typeof url === 'string' && url.startsWith('https://'))) return 'documentation_url is not https'
  return undefined
}

function checkProblem(called: Called, expect: (ok: boolean, says: string, frames?: Called['frames']) => void): void {
  const fault = faultOfProblem(called.problem)
  expect(fault === undefined, `The problem does not fit its schema: ${fault}`, called.frames)
}

export const problems: readonly Scenario[] = [
  scenario({
    id: 'E11-1',
    title: 'Wrong arguments are a failed result with a problem of the category invalid_input',
    tools: { checked },
    run: async ({ talk, tools: { checked }, expect }) => {
      const called = await talk.call(checked.name, {})
      checkProblem(called, expect)
      expect(
        called.isError && called.problem['code'] === 'INVALID_INPUT' && called.problem['category'] === 'invalid_input',
        'Wrong arguments are not a failed result with INVALID_INPUT',
        called.frames,
      )
    },
  }),
  scenario({
    id: 'E11-1t',
    also: ['E11-1'],
    title: 'A failure for now says so, and how long to wait',
    tools: { transient },
    run: async ({ talk, tools: { transient }, expect, leave }) => {
      for (let round = 0; round < 4; round++) {
        const called = await talk.call(transient.name, transient.args)
        if (!called.isError) continue
        checkProblem(called, expect)
        expect(
          called.problem['category'] === 'transient' && Number.isInteger(called.problem['retry_after_seconds']),
          'A failure for now is not transient with retry_after_seconds',
          called.frames,
        )
        return
      }
      leave('The tool did not fail')
    },
  }),
  scenario({
    id: 'E11-2',
    title: 'The words of a failed result are enough for those who see no problem',
    tools: { permanent },
    run: async ({ talk, tools: { permanent }, expect, bench }) => {
      const called = await talk.call(permanent.name, permanent.args)
      expect(called.isError && called.text.length > 3, 'A failed result has no words', called.frames)
      checkProblem(called, expect)
      const plain = await bench.open()
      const answer = await plain.request('tools/call', { name: permanent.name, arguments: permanent.args })
      const result = isRecord(answer.result) ? answer.result : {}
      expect(
        result['isError'] === true && Array.isArray(result['content']) && result['content'].length > 0,
        'A plain client gets no failed result with words',
        [answer.frame],
      )
      expect(
        !JSON.stringify(result['_meta'] ?? {}).includes('dev.vivarium/problem'),
        'A client that did not declare it gets a problem object',
        [answer.frame],
      )
    },
  }),
  scenario({
    id: 'E11-7',
    title: 'A mistake in a tool is SERVER_ERROR, without a stack or paths of the machine',
    tools: { unexpected },
    run: async ({ talk, tools: { unexpected }, expect, refused }) => {
      const called = await talk.call(unexpected.name, unexpected.args)
      refused(called, 'SERVER_ERROR', 'A tool with a mistake in it')
      checkProblem(called, expect)
      const whole = JSON.stringify(called.result)
      expect(
        !/\bat .+:\d+:\d+|node_modules|file:\/\/|\.(ts|js|py):\d+/.test(whole),
        'The answer shows a stack or a path',
        called.frames,
      )
    },
  }),
  scenario({
    id: 'E11-8',
    title: 'A link to documentation is https, or is not there',
    tools: { permanent },
    run: async ({ talk, tools: { permanent }, expect }) => {
      const called = await talk.call(permanent.name, permanent.args)
      const url = called.problem['documentation_url']
      expect(
        url === undefined || (typeof url === 'string' && url.startsWith('https://')),
        'documentation_url is not https',
        called.frames,
      )
    },
  }),
  scenario({
    id: 'E11-9',
    title: 'Details are at most 8 KiB',
    tools: { permanent },
    run: async ({ talk, tools: { permanent }, expect }) => {
      const called = await talk.call(permanent.name, permanent.args)
      expect(
        Buffer.byteLength(JSON.stringify(called.problem['details'] ?? {})) <= 8 * 1024,
        'details are longer than 8 KiB',
        called.frames,
      )
    },
  }),
  scenario({
    id: 'E11-10',
    title: 'A tool that is not there is an error of the protocol, with the problem beside it',
    writes: false,
    run: async ({ talk, expect }) => {
      const called = await talk.call(`no_such_tool_${Date.now()}`, {})
      expect(
        called.code === -32602 && called.answer.result === undefined,
        'A call of an unknown tool is not answered with -32602',
        called.frames,
      )
      if (Object.keys(called.problem).length > 0) checkProblem(called, expect)
    },
  }),
  scenario({
    id: 'X8',
    title: 'A mistake in a tool can be found again by its correlation id',
    tools: { unexpected },
    run: async ({ talk, tools: { unexpected }, expect }) => {
      const one = await talk.call(unexpected.name, unexpected.args)
      const other = await talk.call(unexpected.name, unexpected.args)
      const ids = [one, other].map(called => called.problem['correlation_id'])
      expect(
        ids.every(id => typeof id === 'string' && id !== '') && ids[0] !== ids[1],
        'Two failures do not have a correlation_id each',
        [...one.frames, ...other.frames],
      )
    },
  }),
]
