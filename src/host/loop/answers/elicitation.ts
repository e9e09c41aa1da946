/** Questions of servers to the user. They go to a person or nowhere: nothing here ever answers one. */
import type { OnElicit, OnQuestionRefused, Question } from '../../../features/mcp/elicitation/client.ts'
import type { ElicitResult } from '../../../features/mcp/elicitation/messages.ts'
import type { Awaitable } from '../../../jsonrpc/message.ts'
import { outcomeNoter } from '../permission.ts'
import type { LoopParts } from '../ports.ts'

/** A question, and who asks. Of a page, where it leads: the part of an address that cannot be dressed up. */
export type ServerQuestion = Question & { readonly server: string; readonly domain?: string }

export type OnServerQuestion = (question: ServerQuestion, context: { readonly signal: AbortSignal }) => Awaitable<ElicitResult>

export function elicitationFor(parts: LoopParts, server: string, ask: OnServerQuestion): OnElicit {
  return async (question, { signal }) => {
    const told = outcomeNoter(parts, { server, kind: 'elicit', began: parts.clock.now() })
    const say = (answer: ElicitResult): ElicitResult => {
      parts.refusals.answered(server, question.message, isYes(answer))
      return answer
    }
    const verdict = await parts.policy.decide({ kind: 'elicit', server, payload: { mode: question.mode } })
    if (verdict.do === 'deny' || verdict.do === 'hold') {
      told('refused', verdict.why)
      return say({ action: 'decline' })
    }
    const answer = await ask(question.mode === 'url' ? { ...question, server, domain: question.host } : { ...question, server }, {
      signal,
    })
    if (answer.action === 'accept') told('success', undefined, verdict.rule)
    else told('refused', unanswered(server, answer.action))
    return say(answer)
  }
}

/** A page that the client shows to nobody is noted all the same. */
export function refusedPagesOf(parts: LoopParts, server: string): OnQuestionRefused {
  return ({ message }) => {
    outcomeNoter(parts, { server, kind: 'elicit', began: parts.clock.now() })('refused', unfit(server))
    parts.refusals.answered(server, message, false)
  }
}

function unanswered(server: string, action: 'decline' | 'cancel') {
  return {
    code: 'USER_DECLINED',
    rule: 'the user',
    message: `The user ${action === 'decline' ? 'declined' : 'left unanswered'} what ${server} asked`,
    fix: 'Ask again, if it is still wanted',
  }
}

function unfit(server: string) {
  return {
    code: 'UNSAFE_ADDRESS',
    rule: 'elicit.url',
    message: `${server} wants a page opened that is not reached over https, or hides who it belongs to`,
    fix: `Let ${server} use an https address without a user name`,
  }
}

/** A form that asks for a yes alone is accepted with a no in it, too. */
function isYes({ action, content = {} }: ElicitResult): boolean {
  const values = Object.values(content)
  return action === 'accept' && !(values.length === 1 && values[0] === false)
}
