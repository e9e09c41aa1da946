/** E6: the user is asked before the tool runs. */
import { isRecord } from '../../jsonrpc/message.ts'
import type { Json, Scenario } from '../scenario.ts'
import { bringing, brings, type FoundTool, needsConfirmation, saidOf, scopesOf, toolThat } from '../tools.ts'
import { otherArguments } from './idempotency.ts'
import { isString, type Stage, scenariosOf } from './scenario-of.ts'
import { type Called, openTalk, type Talk } from './talk.ts'

const scenario = scenariosOf('confirmation')

const asks = (tool: Json): boolean => needsConfirmation(tool) && scopesOf(tool).length === 0 && !brings(tool, 'page')
const confirmed = toolThat('needs a yes', asks)
const placeholder = toolThat(
  'needs a yes and names an argument in its question',
  tool => asks(tool) && /\{\w+\}/.test(String(saidOf(tool, 'confirmation')['confirmation_message'])),
)
const risks = ['safe', 'reversible', 'destructive']

interface Asked {
  readonly called: Called
  readonly token: string
  readonly message: string
}

/** A call without a yes, by a client that asks its user itself. */
async function asked(
  talk: Talk,
  tool: FoundTool,
  stage: Pick<Stage<never>, 'refused' | 'text'>,
  args = tool.args,
): Promise<Asked> {
  const called = await talk.call(tool.name, args)
  stage.refused(called, 'CONFIRMATION_REQUIRED', 'A call without a yes')
  const said = called.member('confirmation')
  const says = 'CONFIRMATION_REQUIRED brings no confirmation_token and confirmation_message'
  const token = stage.text(said['confirmation_token'], says, called.frames)
  const message = stage.text(said['confirmation_message'], says, called.frames)
  return { called, token, message }
}

const yes = (token: unknown, user_confirmed = true): Json => ({ confirmation: { confirmation_token: token, user_confirmed } })
const form = { capabilities: { elicitation: { form: {} } } }

export const confirmation: readonly Scenario[] = [
  scenario({
    id: 'E6-2',
    also: ['E6-10'],
    title: 'A tool that needs a yes does not run without one, whatever else the call claims',
    tools: { confirmed },
    run: async stage => {
      const { talk, tools } = stage
      stage.refused(await talk.call(tools.confirmed.name, tools.confirmed.args), 'CONFIRMATION_REQUIRED', 'A call without a yes')
      stage.refused(
        await talk.call(tools.confirmed.name, tools.confirmed.args, { confirmation: { user_confirmed: true } }),
        'CONFIRMATION_REQUIRED',
        'user_confirmed without a token',
      )
      stage.refused(
        await talk.call(tools.confirmed.name, tools.confirmed.args, yes('forged')),
        'CONFIRMATION_REQUIRED',
        'A token that is none',
      )
      const argued = await talk.call(tools.confirmed.name, { ...tools.confirmed.args, confirm: true, user_confirmed: true })
      stage.expect(
        argued.isError || argued.code !== undefined,
        'An argument that claims the yes let the call through',
        argued.frames,
      )
    },
  }),
  scenario({
    id: 'E6-3',
    title: 'A yes is good for the same tool and arguments alone',
    tools: { confirmed: placeholder },
    run: async stage => {
      const { talk, tools } = stage
      const { token } = await asked(talk, tools.confirmed, stage)
      stage.refused(
        await talk.call(tools.confirmed.name, otherArguments(tools.confirmed.args), yes(token)),
        'CONFIRMATION_REQUIRED',
        'The yes for other arguments',
      )
      stage.made(await talk.call(tools.confirmed.name, tools.confirmed.args, yes(token)), 'The yes for the same arguments')
    },
  }),
  scenario({
    id: 'E6-4',
    title: 'A yes counts once',
    tools: { confirmed },
    run: async stage => {
      const { talk, tools } = stage
      const { token } = await asked(talk, tools.confirmed, stage)
      stage.made(await talk.call(tools.confirmed.name, tools.confirmed.args, yes(token)), 'The call with a yes')
      stage.refused(
        await talk.call(tools.confirmed.name, tools.confirmed.args, yes(token)),
        'CONFIRMATION_REQUIRED',
        'The second use of a yes',
      )
    },
  }),
  scenario({
    id: 'E6-5',
    title: 'A no is an answer: declined, and nothing runs',
    tools: { confirmed },
    run: async stage => {
      const { talk, tools, expect } = stage
      const { token } = await asked(talk, tools.confirmed, stage)
      const declined = await talk.call(tools.confirmed.name, tools.confirmed.args, yes(token, false))
      stage.refused(declined, 'CONFIRMATION_DECLINED', 'A no')
      expect(
        declined.problem['category'] === 'permanent' && declined.isError,
        'A no is not a permanent failure of the tool',
        declined.frames,
      )
    },
  }),
  scenario({
    id: 'E6-6',
    title: 'The question names server and tool, and has the arguments in their places',
    tools: { placeholder },
    run: async stage => {
      const { talk, tools, bench, expect } = stage
      const { called, message } = await asked(talk, tools.placeholder, stage)
      expect(
        message.includes(tools.placeholder.name) && message.includes(bench.peer.name),
        'The question does not name the tool and the server',
        called.frames,
      )
      const template = String(tools.placeholder.said('confirmation')['confirmation_message'])
      for (const [, name = ''] of template.matchAll(/\{(\w+)\}/g)) {
        const value = tools.placeholder.args[name]
        if (value === undefined)
          expect(message.includes(`{${name}}`), `The unknown placeholder {${name}} did not stay as it is`, called.frames)
        else
          expect(
            message.includes(String(value)) && !message.includes(`{${name}}`),
            `The argument ${name} does not stand in its place`,
            called.frames,
          )
      }
    },
  }),
  scenario({
    id: 'E6-7',
    title: 'The risk that is shown never exceeds the one that is declared',
    tools: { confirmed },
    run: async stage => {
      const { talk, tools, expect } = stage
      const { called } = await asked(talk, tools.confirmed, stage)
      const shown = risks.indexOf(String(called.member('confirmation')['risk_level']))
      const declared = risks.indexOf(String(tools.confirmed.said('confirmation')['risk_level']))
      expect(
        shown >= 0 && declared >= 0 && shown <= declared,
        'risk_level is none of safe, reversible, destructive, or exceeds the declared one',
        called.frames,
      )
    },
  }),
  ...elicited(),
]

/** By a client whose user is asked by elicitation. */
function elicited(): readonly Scenario[] {
  return [
    scenario({
      id: 'E6-2e',
      also: ['E6-2', 'E6-5'],
      title: 'A client that can ask its user is given the question; its yes lets the call through, its no does not',
      open: form,
      tools: { confirmed },
      run: async stage => {
        const { talk, tools, expect } = stage
        const questions: Json[] = []
        const answers: Json[] = [
          { action: 'accept', content: { confirm: true } },
          { action: 'decline' },
          { action: 'accept', content: { confirm: false } },
        ]
        talk.peer.onRequest('elicitation/create', params => {
          questions.push(params)
          return answers[questions.length - 1] ?? { action: 'cancel' }
        })
        stage.made(await talk.converse(tools.confirmed.name, tools.confirmed.args), 'A call whose question was answered by yes')
        stage.refused(
          await talk.converse(tools.confirmed.name, tools.confirmed.args),
          'CONFIRMATION_DECLINED',
          'A call whose question was declined',
        )
        stage.refused(
          await talk.converse(tools.confirmed.name, tools.confirmed.args),
          'CONFIRMATION_DECLINED',
          'A call whose question was answered by no',
        )
        expect(questions.length === 3, `The user was asked ${questions.length} times for three calls`, talk.peer.frames)
        const [first] = questions
        const schema = isRecord(first?.['requestedSchema']) ? first['requestedSchema'] : {}
        expect(
          isString(first?.['message']) && isRecord(schema['properties']),
          'The question is no form with a message',
          talk.peer.frames,
        )
      },
    }),
    scenario({
      id: 'E6-2p',
      also: ['E6-2'],
      title: 'Who can neither ask nor knows the extension is refused in words',
      tools: { confirmed },
      run: async ({ bench, expect, tools }) => {
        const plain = await bench.open()
        const answer = await plain.request('tools/call', { name: tools.confirmed.name, arguments: tools.confirmed.args })
        const result = isRecord(answer.result) ? answer.result : {}
        expect(
          result['isError'] === true && Array.isArray(result['content']) && result['content'].length > 0,
          'A plain client was not refused in words',
          [answer.frame],
        )
      },
    }),
    scenario({
      id: 'E6-3e',
      also: ['E6-3', 'E6-4', 'X2'],
      title: 'The state of an open question is good for its call and for one answer',
      open: form,
      revisions: ['2026-07-28'],
      tools: { confirmed: placeholder },
      run: async stage => {
        const { talk, tools, expect } = stage
        const open = await talk.call(tools.confirmed.name, tools.confirmed.args)
        const { requestState } = open.result
        const inputRequests = isRecord(open.result['inputRequests']) ? open.result['inputRequests'] : {}
        expect(
          open.result['resultType'] === 'input_required' && isString(requestState),
          'A call without a yes is not answered by input_required',
          open.frames,
        )
        const inputResponses = Object.fromEntries(
          Object.keys(inputRequests).map(key => [key, { action: 'accept', content: { confirm: true } }]),
        )
        const params = { inputResponses, requestState }
        const other = await talk.call(tools.confirmed.name, otherArguments(tools.confirmed.args), {}, { params })
        expect(
          other.result['resultType'] !== 'complete' || other.isError,
          'The answer let a call with other arguments through',
          other.frames,
        )
        const tampered = await talk.call(
          tools.confirmed.name,
          tools.confirmed.args,
          {},
          { params: { inputResponses, requestState: `${requestState}x` } },
        )
        expect(
          tampered.result['resultType'] !== 'complete' || tampered.isError,
          'A requestState that was changed let the call through',
          tampered.frames,
        )
        stage.made(await talk.call(tools.confirmed.name, tools.confirmed.args, {}, { params }), 'The call with its answer')
        const again = await talk.call(tools.confirmed.name, tools.confirmed.args, {}, { params })
        expect(again.result['resultType'] !== 'complete' || again.isError, 'One answer let two calls through', again.frames)
      },
    }),
    scenario({
      id: 'E6-9',
      title: 'Where only a page can approve, nothing that the client says does',
      tools: { page: bringing('page') },
      run: async stage => {
        const { talk, tools, bench, expect } = stage
        const called = await talk.call(tools.page.name, tools.page.args)
        expect(called.isError || called.code !== undefined, 'A call that only a page can approve was made', called.frames)
        const token = called.member('confirmation')['confirmation_token']
        const claimed = await talk.call(tools.page.name, tools.page.args, yes(token ?? 'none'))
        expect(
          claimed.isError || claimed.code !== undefined,
          "The client's own yes let a call through that only a page can approve",
          claimed.frames,
        )
        const asking = await openTalk(bench, form)
        asking.peer.onRequest('elicitation/create', () => ({ action: 'accept', content: { confirm: true } }))
        const elicited = await asking.converse(tools.page.name, tools.page.args)
        expect(
          elicited.isError || elicited.code !== undefined,
          'A form let a call through that only a page can approve',
          elicited.frames,
        )
      },
    }),
    scenario({
      id: 'X4',
      title: 'When a tool has changed, what was agreed to before is void',
      needs: peer =>
        changing(peer.tools) === undefined
          ? 'No tool is listed that brings about "change:tool:NAME" of one that needs a yes'
          : undefined,
      run: async stage => {
        const { talk, bench, leave } = stage
        const pair = changing(bench.peer.tools)
        const tool = pair === undefined ? undefined : confirmedNamed(bench.peer.tools, pair.name)
        if (pair === undefined || tool === undefined) return leave('There is no such tool')
        const { token } = await asked(talk, tool, stage)
        stage.made(await talk.call(pair.by, {}), 'The call that changes a tool')
        stage.refused(
          await talk.call(tool.name, tool.args, yes(token)),
          'CONFIRMATION_REQUIRED',
          'The yes to a tool as it was before',
        )
      },
    }),
  ]
}

function changing(tools: readonly Json[]): { readonly by: string; readonly name: string } | undefined {
  for (const tool of tools) {
    const list = saidOf(tool, 'conformance')['brings']
    if (!Array.isArray(list)) continue
    for (const what of list)
      if (typeof what === 'string' && what.startsWith('change:tool:'))
        return { by: String(tool['name']), name: what.slice('change:tool:'.length) }
  }
  return undefined
}

function confirmedNamed(tools: readonly Json[], name: string): FoundTool | undefined {
  const tool = tools.find(one => one['name'] === name)
  return tool === undefined || !needsConfirmation(tool)
    ? undefined
    : { name, listed: tool, args: {}, said: extension => saidOf(tool, extension) }
}
