/** Client side of session state: sends the last token of each conversation back unchanged. */
import type { Problem } from '../../../core/problem.ts'
import { defineClientFeature, extend, type RequestWrapper, readRequests } from '../../../engine/client-feature.ts'
import { extensionCapability } from '../../../engine/extensions.ts'
import { McpError } from '../../../jsonrpc/error.ts'
import type { Params } from '../../../jsonrpc/message.ts'
import { toolCalls } from '../../mcp/tools/messages.ts'
import { problemsPort } from '../problem/messages.ts'
import { type ClientStates, readState, stateExtension, stateIn, statesPort, tokenLimit } from './messages.ts'

/** What the feature adds to the client. */
export interface StateClientApi {
  /** Forgets the state of a conversation; its next call starts without. */
  forgetState(conversation?: string): void
}

/** The client feature: sends state tokens. */
export const stateClient = defineClientFeature<object, ClientStates>({
  name: 'session-state',
  provides: statesPort,
  uses: [problemsPort],
  options: {},
  setup(kit) {
    const states = new StateTokens((event, detail) => kit.trace(event, detail))
    const client: StateClientApi = { forgetState: conversation => states.forget(conversation) }
    /** Sends the token, and stores the one in the answer. */
    const wrap: RequestWrapper = (options, work) => {
      const { conversation } = options
      const state = states.metaFor(conversation)
      return work(state === undefined ? options : { ...options, meta: { ...state, ...options.meta } }).then(
        answer => {
          const { meta, _meta, isError, problem } = answer as StatefulAnswer
          states.learn(conversation, meta ?? _meta)
          if (isError === true) states.failed(conversation, problem?.code)
          return answer
        },
        error => {
          if (state !== undefined) states.failed(conversation, kit.port(problemsPort).classify(error).code)
          throw error
        },
      )
    }
    return {
      client,
      port: states,
      side: { capabilities: revision => extensionCapability(revision, stateExtension) },
      extensions: [
        extend(readRequests, wrap),
        extend(toolCalls, {
          name: 'session-state',
          around: next => (name, args, options, manner) => wrap(options, sent => next(name, args, sent, manner)),
        }),
      ],
    }
  },
})

/** The part of an answer that matters here. */
interface StatefulAnswer {
  readonly meta?: Params | undefined
  readonly _meta?: Params
  readonly isError?: boolean
  readonly problem?: Problem | undefined
}

/** Limit of conversations; the least recently used is dropped. */
const most = 1_000
// Problems after which the token is useless.
const cleared: ReadonlySet<string> = new Set(['STATE_INVALID', 'STATE_EXPIRED'])

/** The tokens of one server. */
class StateTokens implements ClientStates {
  readonly #tokens = new Map<string, string>()
  readonly #trace: (event: string, detail: unknown) => void

  constructor(trace: (event: string, detail: unknown) => void) {
    this.#trace = trace
  }

  /** The `_meta` for a call. */
  metaFor(conversation = ''): Params | undefined {
    const token = this.#tokens.get(conversation)
    return token === undefined ? undefined : { [stateExtension]: { session_state: token } }
  }

  /** The current token. */
  at(conversation = ''): string | undefined {
    return this.#tokens.get(conversation)
  }

  /** After a rollback: restores an earlier token, unless a newer one arrived. */
  back(conversation: string, last: string | undefined, before: string | undefined): void {
    if (this.#tokens.get(conversation) !== last) return
    if (before === undefined) this.#tokens.delete(conversation)
    else this.#tokens.set(conversation, before)
  }

  /** Reads the token in an answer; without one the old token stays valid. */
  learn(conversation = '', meta: Params | undefined): void {
    const token = readState(stateIn(meta))?.session_state
    if (token === undefined) return
    this.#tokens.delete(conversation)
    if (token.length > tokenLimit) {
      const message = `The server sent a state of ${token.length} characters, which is dropped. The limit is ${tokenLimit}`
      return this.#trace('state-refused', new McpError('invalid-result', message))
    }
    this.#tokens.set(conversation, token)
    if (this.#tokens.size > most) this.#tokens.delete(this.#tokens.keys().next().value as string)
  }

  /** Drops the token if the server rejected it. */
  failed(conversation: string | undefined, code: string | undefined): void {
    if (code !== undefined && cleared.has(code)) this.forget(conversation)
  }

  forget(conversation = ''): void {
    this.#tokens.delete(conversation)
  }
}
