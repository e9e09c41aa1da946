/** What a handler returned → the canonical result. A string is enough: it is what the user says. */
import { withAuthored } from '../../../engine/reserved.ts'
import { isRecord } from '../../../jsonrpc/message.ts'
import type { ContentBlock, Role } from '../content/messages.ts'
import type { GetPromptResult, PromptMessage } from './messages.ts'

/** Text may stand for a text block, and the user for the role. */
interface MessageParts {
  readonly role?: Role
  readonly content: string | ContentBlock
}

export type PromptOutput = string | MessageParts | readonly (string | MessageParts)[] | PromptParts

interface PromptParts {
  readonly description?: string
  readonly messages: readonly (string | MessageParts)[]
}

/** `server` is how it names itself; `description` is the prompt's own, for results that have none. */
export function toPromptResult(value: unknown, server: string, description: string | undefined): GetPromptResult {
  const parts: PromptParts = isParts(value) ? value : { messages: Array.isArray(value) ? value : [value] }
  const told = parts.description ?? description
  return { ...(told === undefined ? {} : { description: told }), messages: parts.messages.map(part => toMessage(part, server)) }
}

function isParts(value: unknown): value is PromptParts {
  return isRecord(value) && Array.isArray(value['messages'])
}

function toMessage(part: unknown, server: string): PromptMessage {
  if (typeof part === 'string') return { role: 'user', content: { type: 'text', text: part } }
  if (isRecord(part)) {
    const { role = 'user', content } = part as Partial<MessageParts>
    if (typeof content === 'string') return { role, content: { type: 'text', text: content } }
    if (isRecord(content)) return { role, content: withAuthored(content, server) }
  }
  throw new TypeError('The handler of a prompt must return text, messages with content, or { description, messages }')
}
