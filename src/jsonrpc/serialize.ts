/** Message → frame. Answers are spliced from their parts, so that a result that is already text is not serialised again. */
import type { ErrorBody, Id, Params } from './message.ts'

export function idText(id: Id): string {
  return typeof id === 'number' ? `${id}` : JSON.stringify(id)
}

/** `result` is JSON text. */
export function successFrame(id: Id, result: string): string {
  return `{"jsonrpc":"2.0","id":${idText(id)},"result":${result}}`
}

/** An undefined id is left out; null is written, for wires that demand the member. */
export function failureFrame(id: Id | null | undefined, error: ErrorBody): string {
  const member = id === undefined ? '' : `"id":${id === null ? 'null' : idText(id)},`
  return `{"jsonrpc":"2.0",${member}"error":${JSON.stringify(error)}}`
}

/** `params` is JSON text. */
export function requestFrame(id: Id, method: string, params: string): string {
  return `{"jsonrpc":"2.0","id":${idText(id)},"method":${JSON.stringify(method)},"params":${params}}`
}

export function notificationFrame(method: string, params: Params | undefined): string {
  const tail = params === undefined ? '' : `,"params":${JSON.stringify(params)}`
  return `{"jsonrpc":"2.0","method":${JSON.stringify(method)}${tail}}`
}
