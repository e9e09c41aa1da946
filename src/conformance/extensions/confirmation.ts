/** E6: the user is asked before the tool runs. */
import { isRecord } from '../../jsonrpc/message.ts'
import { hasMeta, hasResult, isFailure, isMade, isRefusedBy, openRequester, type PeerAnswer, type Saying } from '../calls.ts'
import { extensionTable } from '../define.ts'
import { type Expectation, firstFault, is, objectIn } from '../expectations.ts'
import { peerHas } from '../needs.ts'
import { brings, broughtBy, needsConfirmation, otherArguments, saidOf, scopesOf } from '../said.ts'
import type { Advertised, Json, Scenario } from '../scenario.ts'
import { callPlain, callTool, inWords, type ScenarioContext, step, type TableStep } from '../steps.ts'
import { bringing, type Finder, foundTool, toolThat } from '../tools.ts'

const row = extensionTable('confirmation')

const asks = (tool: Json): boolean => needsConfirmation(tool) && scopesOf(tool).length === 0 && !brings(tool, 'page')
const confirmed = toolThat('requires confirmation', asks)
const placeholder = toolThat(
  'requires confirmation and names an argument in its question',
  tool => asks(tool) && /\{\w+\}/.test(String(saidOf(tool, 'confirmation').confirmation_message)),
)
const page = bringing('page')
const risks = ['safe', 'reversible', 'destructive']
const form = { capabilities: { elicitation: { form: {} } } }
const yes = (token: unknown, user_confirmed = true) => ({ say: { confirmation: { confirmation_token: token, user_confirmed } } })
const tokenIn = (called: PeerAnswer): unknown => called.member('confirmation').confirmation_token
const unanswered = isRefusedBy('CONFIRMATION_REQUIRED')

/** What a call says whose question came with an earlier answer, and was answered by yes. */
export function agreed(asked: PeerAnswer): Saying {
  return yes(tokenIn(asked)).say
}

/** A call without a yes, by a client that asks its user itself. */
function asked(tool: Finder, more: Readonly<Record<string, Expectation<PeerAnswer, ScenarioContext>>> = {}): TableStep {
  return callTool(tool).expect({
    'A call without confirmation': unanswered,
    'CONFIRMATION_REQUIRED has no confirmation_token and confirmation_message': hasMeta('confirmation', {
      confirmation_token: is.word,
      confirmation_message: is.word,
    }),
    ...more,
  })
}

/** The answer to the question of the first call. */
const answered =
  (user_confirmed = true) =>
  (x: ScenarioContext) =>
    yes(tokenIn(x.was(0)), user_confirmed)

function questionFault(it: PeerAnswer, { tool }: ScenarioContext): string | undefined {
  const { args, said } = tool(placeholder)
  const message = String(it.member('confirmation').confirmation_message)
  return firstFault(String(said('confirmation').confirmation_message).matchAll(/\{(\w+)\}/g), ([, name = '']) => {
    if (args[name] === undefined) return !message.includes(`{${name}}`) && `The unknown placeholder {${name}} was changed`
    const there = message.includes(String(args[name])) && !message.includes(`{${name}}`)
    return !there && `The argument ${name} is not in its place`
  })
}

const complete: Expectation<PeerAnswer, ScenarioContext> = it => it.result.resultType !== 'complete' || it.isError

/** The first call again, with a yes to each of its questions. */
function repeated(x: ScenarioContext, tail = ''): { params: Json } {
  const { inputRequests, requestState } = x.was(0).result
  const yeses = Object.keys(objectIn(inputRequests)).map(key => [key, { action: 'accept', content: { confirm: true } }] as const)
  return { params: { inputResponses: Object.fromEntries(yeses), requestState: `${String(requestState)}${tail}` } }
}

/** A tool that changes another one, which needs a yes. */
function changing(peer: Advertised) {
  const by = peer.tools.find(tool => broughtBy(tool, 'change:tool') !== undefined)
  const tool = by === undefined ? undefined : peer.tool(broughtBy(by, 'change:tool') ?? '')
  return by === undefined
    ? undefined
    : { by: String(by.name), tool: tool && needsConfirmation(tool) ? foundTool(tool, {}) : undefined }
}

const changes = peerHas(
  peer => changing(peer) !== undefined,
  'The server lists no tool that declares "change:tool:NAME" for one that requires confirmation',
)

/** E6: calls that need the yes of a user. */
export const confirmation: readonly Scenario[] = [
  row('E6-2 E6-10', 'A tool that requires confirmation does not run without it, whatever else the call claims').by([
    callTool(confirmed).expect({ 'A call without confirmation': unanswered }),
    callTool(confirmed, { say: { confirmation: { user_confirmed: true } } }).expect({
      'user_confirmed without a token': unanswered,
    }),
    callTool(confirmed, yes('forged')).expect({ 'An invalid token': unanswered }),
    callTool(confirmed, x => ({ args: { ...x.tool(confirmed).args, confirm: true, user_confirmed: true } })).expect({
      'An argument that claims the confirmation let the call through': isFailure,
    }),
  ]),
  row('E6-3', 'A confirmation is valid only for the same tool and arguments').by([
    asked(placeholder),
    callTool(placeholder, x => ({ ...answered()(x), args: otherArguments(x.tool(placeholder).args) })).expect({
      'The confirmation for other arguments': unanswered,
    }),
    callTool(placeholder, answered()).expect({ 'The confirmation for the same arguments': isMade }),
  ]),
  row('E6-4', 'A confirmation can be used once').by([
    asked(confirmed),
    callTool(confirmed, answered()).expect({ 'The call with confirmation': isMade }),
    callTool(confirmed, answered()).expect({ 'The second use of a confirmation': unanswered }),
  ]),
  row('E6-5', 'A refusal is an answer: the call is declined and nothing runs').by([
    asked(confirmed),
    callTool(confirmed, answered(false)).expect({
      'A refusal': isRefusedBy('CONFIRMATION_DECLINED'),
      'A refusal is not reported as a permanent failure of the tool': it => it.problem.category === 'permanent' && it.isError,
    }),
  ]),
  row('E6-6', 'The question names server and tool, and contains the arguments in their places').by([
    asked(placeholder, {
      'The question does not name the tool and the server': (it, { tool, bench }) => {
        const message = String(it.member('confirmation').confirmation_message)
        return message.includes(tool(placeholder).name) && message.includes(bench.peer.name)
      },
      'The arguments are not in their places': questionFault,
    }),
  ]),
  row('E6-7', 'The shown risk never exceeds the declared risk').by([
    asked(confirmed, {
      'risk_level is none of safe, reversible, destructive, or exceeds the declared one': (it, { tool }) => {
        const shown = risks.indexOf(String(it.member('confirmation').risk_level))
        const declared = risks.indexOf(String(tool(confirmed).said('confirmation').risk_level))
        return shown >= 0 && declared >= 0 && shown <= declared
      },
    }),
  ]),
  row('E6-2e E6-2 E6-5', 'A client that can ask its user gets the question; yes lets the call through, no does not').by(
    { open: form, needs: [confirmed] },
    async x => {
      const questions: Json[] = []
      const accept = (confirm: boolean) => ({ action: 'accept', content: { confirm } })
      const answers: Json[] = [accept(true), { action: 'decline' }, accept(false)]
      x.peer.onRequest('elicitation/create', params => {
        questions.push(params)
        return answers[questions.length - 1] ?? { action: 'cancel' }
      })
      const ask = () => x.call(confirmed, { converse: true })
      x.made(await ask(), 'A call whose question was answered with yes')
      x.refused(await ask(), 'CONFIRMATION_DECLINED', 'A call whose question was declined')
      x.refused(await ask(), 'CONFIRMATION_DECLINED', 'A call whose question was answered with no')
      x.expect(questions.length === 3, `The user was asked ${questions.length} times for three calls`, x.peer.frames)
      const isForm = is.word(questions[0]?.message) && isRecord(objectIn(questions[0], 'requestedSchema').properties)
      x.expect(isForm, 'The question is not a form with a message', x.peer.frames)
    },
  ),
  row('E6-2p E6-2', 'A client that can neither ask nor knows the extension gets a refusal with a text').by([
    callPlain(confirmed).expect({ 'A plain client got no refusal with a text': hasResult(inWords) }),
  ]),
  row('E6-3e E6-3 E6-4 X2', 'The state of an open question is valid for its call and for one answer').by(
    { open: form, revisions: ['2026-07-28'] },
    [
      callTool(placeholder).expect({
        'A call without confirmation is not answered with input_required': hasResult({
          resultType: 'input_required',
          requestState: is.word,
        }),
      }),
      callTool(placeholder, x => ({ ...repeated(x), args: otherArguments(x.tool(placeholder).args) })).expect({
        'The answer let a call with other arguments through': complete,
      }),
      callTool(placeholder, x => repeated(x, 'x')).expect({
        'A requestState that was changed let the call through': complete,
      }),
      callTool(placeholder, x => repeated(x)).expect({ 'The call with its answer': isMade }),
      callTool(placeholder, x => repeated(x)).expect({ 'One answer let two calls through': complete }),
    ],
  ),
  row('E6-9', 'If only a page can approve a call, the client cannot').by([
    callTool(page).expect({ 'A call that only a page can approve was executed': isFailure }),
    callTool(page, x => yes(tokenIn(x.was(0)) ?? 'none')).expect({
      'A confirmation of the client let a call through that only a page can approve': isFailure,
    }),
    step(async x => {
      const asking = await openRequester(x.bench, form)
      asking.peer.onRequest('elicitation/create', () => ({ action: 'accept', content: { confirm: true } }))
      return asking.call(x.tool(page), { converse: true })
    }).expect({ 'A form let a call through that only a page can approve': isFailure }),
  ]),
  row('X4', 'When a tool has changed, earlier confirmations are void').by(changes, async x => {
    const { by, tool } = changing(x.bench.peer) ?? {}
    if (by === undefined || tool === undefined) return x.leave('There is no such tool')
    const found = { that: '', find: () => tool }
    await asked(found).run(x)
    x.made(await x.call(by, { args: {} }), 'The call that changes a tool')
    x.refused(await x.call(tool, answered()(x)), 'CONFIRMATION_REQUIRED', 'The confirmation of the previous tool definition')
  }),
]
