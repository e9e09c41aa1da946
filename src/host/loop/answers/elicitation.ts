/** Questions of servers to the user. They go to a person or nowhere: nothing here ever answers one. */
import type { OnElicit, Question } from '../../../features/mcp/elicitation/client.ts'
import type { ElicitResult } from '../../../features/mcp/elicitation/messages.ts'
import type { Awaitable } from '../../../jsonrpc/message.ts'
import type { LoopParts } from '../loop-parts.ts'
import { noted } from './refuse.ts'

/** A question, and who asks. Of a page, where it leads: the part of an address that cannot be dressed up. */
export type ServerQuestion = Question & { readonly server: string; readonly domain?: string }

export type OnServerQuestion = (question: ServerQuestion, context: { readonly signal: AbortSignal }) => Awaitable<ElicitResult>

export function elicitationFor(parts: LoopParts, server: string, ask: OnServerQuestion): OnElicit {
  return async (question, { signal }) => {
    const told = noted(parts, { server, kind: 'elicit', began: parts.clock.now() })
    const say = (answer: ElicitResult): ElicitResult => {
      parts.refusals.answered(server, question.message, isYes(answer))
      return answer
    }
    const verdict = await parts.policy.decide({ kind: 'elicit', server, payload: { mode: question.mode } })
    if (verdict.do === 'deny' || verdict.do === 'hold') {
      told('refused', verdict.why)
      return say({ action: 'decline' })
    }
    const domain = question.mode === 'url' ? domainOf(question.url) : undefined
    if (question.mode === 'url' && domain === undefined) {
      told('refused', unfit(server))
      return say({ action: 'decline' })
    }
    const answer = await ask({ ...question, server, ...(domain !== undefined && { domain }) }, { signal })
    told('success')
    return say(answer)
  }
}

/** A form that asks for a yes alone is accepted with a no in it, too. */
function isYes({ action, content = {} }: ElicitResult): boolean {
  const values = Object.values(content)
  return action === 'accept' && !(values.length === 1 && values[0] === false)
}

/** Only what a browser opens as a page; undefined for anything else. */
function domainOf(address: string): string | undefined {
  if (!URL.canParse(address)) return undefined
  const { protocol, host, hostname, username, password } = new URL(address)
  const local = hostname === 'localhost' || hostname === '127.0.0.1' || hostname === '[::1]'
  const safe = protocol === 'https:' || (protocol === 'http:' && local)
  return safe && username === '' && password === '' ? host : undefined
}

function unfit(server: string) {
  return {
    code: 'UNSAFE_ADDRESS',
    rule: 'elicit.url',
    message: `${server} wants a page opened that is not reached over https, or hides who it belongs to`,
    fix: `Let ${server} use an https address without a user name`,
  }
}
