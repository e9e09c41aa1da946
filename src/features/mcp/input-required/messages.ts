/** Results that ask: `input_required` carries questions; the retry carries the answers (2026-07-28 basic/patterns/mrtr). */
import type { Params } from '../../../jsonrpc/message.ts'

/** A question inside a result: method and params, without envelope. */
export interface InputRequest {
  readonly method: string
  readonly params?: Params
}

export interface InputRequiredResult {
  readonly resultType: 'input_required'
  readonly inputRequests?: Readonly<Record<string, InputRequest>>
  readonly requestState?: string
}

export function isInputRequired(result: unknown): result is InputRequiredResult {
  return typeof result === 'object' && result !== null && (result as { resultType?: unknown }).resultType === 'input_required'
}

/** The methods that may be answered so. */
export const askingMethods = ['tools/call', 'prompts/get', 'resources/read'] as const
