/** Using state: the last token of each conversation is sent back as it came, and never looked into. */
import { declaration } from '../../../engine/extensions.ts'
import type { Side } from '../../../engine/plan.ts'
import { McpError } from '../../../jsonrpc/error.ts'
import type { Params } from '../../../jsonrpc/message.ts'
import { readState, stateExtension, stateIn, tokenLimit } from './messages.ts'

export function stateClient(): Side {
  return { capabilities: revision => declaration(revision, stateExtension) }
}

/** Conversations whose token is kept; the longest unused gives way. */
const most = 1_000
const cleared: ReadonlySet<string> = new Set(['STATE_INVALID', 'STATE_EXPIRED'])

/** The tokens of one server, which go to no other. */
export class StateTokens {
  readonly #tokens = new Map<string, string>()
  readonly #trace: (event: string, detail: unknown) => void

  constructor(trace: (event: string, detail: unknown) => void) {
    this.#trace = trace
  }

  /** What a call of the conversation carries in its `_meta`. */
  metaFor(conversation = ''): Params | undefined {
    const token = this.#tokens.size === 0 ? undefined : this.#tokens.get(conversation)
    return token === undefined ? undefined : { [stateExtension]: { session_state: token } }
  }

  /** The token that a conversation has now. */
  at(conversation = ''): string | undefined {
    return this.#tokens.get(conversation)
  }

  /** What was written since then was undone: the token of then is good again, unless another came meanwhile. */
  back(conversation: string, last: string | undefined, before: string | undefined): void {
    if (this.#tokens.get(conversation) !== last) return
    if (before === undefined) this.#tokens.delete(conversation)
    else this.#tokens.set(conversation, before)
  }

  /** What the `_meta` of an answer says. Without a token in it the old one stays good. */
  learn(conversation = '', meta: Params | undefined): void {
    const given = stateIn(meta)
    if (given === undefined) return
    const token = readState(given)?.session_state
    if (token === undefined) return
    this.#tokens.delete(conversation)
    if (token.length > tokenLimit) {
      const message = `The server gave a state of ${token.length} characters; the limit is ${tokenLimit}. It is dropped`
      return this.#trace('state-refused', new McpError('invalid-result', message))
    }
    this.#tokens.set(conversation, token)
    if (this.#tokens.size > most) this.#tokens.delete(this.#tokens.keys().next().value as string)
  }

  /** A problem with this code came of a call: what is not good, or no longer, is not sent again. */
  failed(conversation: string | undefined, code: string | undefined): void {
    if (code !== undefined && cleared.has(code)) this.forget(conversation)
  }

  forget(conversation = ''): void {
    this.#tokens.delete(conversation)
  }
}
