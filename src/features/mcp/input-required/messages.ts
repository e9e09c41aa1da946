/** Results that ask: `input_required` carries questions; the retry carries the answers (2026-07-28 basic/patterns/mrtr). */
import { type ExtensionPoint, extensionPoint } from '../../../engine/client-feature.ts'
import type { Method } from '../../../engine/method.ts'
import { type Port, port } from '../../../engine/ports.ts'
import type { Params } from '../../../jsonrpc/message.ts'

/** A question inside a result: method and params, without envelope. */
export interface InputRequest {
  /** What is asked: a form, the model, the roots. */
  readonly method: string
  readonly params?: Params
}

/** A result that asks for more: its questions, and the state that comes back with the answers. */
export interface InputRequiredResult {
  readonly resultType: 'input_required'
  /** By keys, under which the answers come back. */
  readonly inputRequests?: Readonly<Record<string, InputRequest>>
  /** Comes back as it is. */
  readonly requestState?: string
}

/** Whether a result asks for more instead of answering. */
export function isInputRequired(result: unknown): result is InputRequiredResult {
  return typeof result === 'object' && result !== null && (result as { resultType?: unknown }).resultType === 'input_required'
}

/** The methods that may be answered so. */
export const askingMethods = ['tools/call', 'prompts/get', 'resources/read'] as const

/** Answers a question of a server, whichever way it came. */
interface QuestionHandler {
  readonly method: Method
  answer(params: Params, signal: AbortSignal): Promise<unknown>
}

/** Where features of a client say which questions they answer. */
export const questionHandlers: ExtensionPoint<QuestionHandler> = extensionPoint('question-handlers')

/** Answers questions that came inside results. */
export interface ClientQuestions {
  /** Whether a result is what its call was made for. */
  isFinal(result: unknown): boolean
  /** Answers and asks `again` until the call comes to an end; `kinds`: results of other kinds that are an end too. */
  drive(
    first: unknown,
    again: (more: Params) => Promise<unknown>,
    options: { readonly signal?: AbortSignal | undefined; readonly kinds?: readonly string[] },
  ): Promise<unknown>
  /** The same for a request whose wire may put questions into results; on other wires the first result is the end. */
  settle(first: unknown, again: (more: Params) => Promise<unknown>, send: { readonly signal?: AbortSignal }): Promise<unknown>
  /** Answers one question. */
  answer(request: InputRequest, signal: AbortSignal): Promise<unknown>
}

/** The client's answers to questions inside results, for features whose requests may be answered so. */
export const questionsPort: Port<ClientQuestions> = port('questions')
