/** What a server asks of a playground while it is called: forms, pages, inferences and confirmations go into the one queue of approvals. */
import type { ConnectOptions } from '../../client/index.ts'
import type { ElicitResult, ElicitValue } from '../../features/mcp/elicitation/messages.ts'
import type { ApprovalQueue, ApprovalRequest } from '../approvals.ts'

/** The handlers that a client is given. */
type QuestionHandlers = Required<Pick<ConnectOptions, 'onElicit' | 'onSample' | 'onConfirm' | 'onCost'>>

/** Makes the handlers of a server's questions. There is no model here: a person writes what one would answer. */
export function questionHandlers(queue: ApprovalQueue, server: string): QuestionHandlers {
  const confirmed = async (
    { message, tool, arguments: payload }: { readonly message: string; readonly tool: string; readonly arguments: unknown },
    signal: AbortSignal | undefined,
    more: Pick<ApprovalRequest, 'rule' | 'risk'>,
  ): Promise<boolean> => (await queue.ask({ kind: 'call', server, tool, text: message, payload, ...more }, signal)).yes
  return {
    onElicit: async (question, { signal }): Promise<ElicitResult> => {
      const { message: text } = question
      if (question.mode === 'url') {
        const payload = { message: text, url: question.url, domain: question.host }
        const { yes } = await queue.ask({ kind: 'page', server, text, rule: 'elicitation', payload }, signal)
        return { action: yes ? 'accept' : 'decline' }
      }
      const { schema, secrets } = question
      const payload = { message: text, schema, ...(secrets !== undefined && { secrets }) }
      const { yes, content = {} } = await queue.ask({ kind: 'form', server, text, rule: 'elicitation', payload }, signal)
      return yes ? { action: 'accept', content: content as Readonly<Record<string, ElicitValue>> } : { action: 'decline' }
    },
    onSample: async (params, { signal }) => {
      const text = 'The server asks a model. Write the answer in its place.'
      const payload = { stage: 'write', params }
      const { yes, content = {}, reason } = await queue.ask({ kind: 'sampling', server, text, rule: 'sampling', payload }, signal)
      if (!yes) throw new Error(reason ?? 'The user refused the inference')
      const { text: answer = '', model = 'a person' } = content
      return {
        ...{ role: 'assistant', model: String(model), stopReason: 'endTurn' },
        content: { type: 'text', text: String(answer) },
      }
    },
    onConfirm: (question, { signal }) => confirmed(question, signal, { rule: 'confirmation', risk: question.risk }),
    onCost: (question, { signal }) => confirmed(question, signal, { rule: 'cost' }),
  }
}
