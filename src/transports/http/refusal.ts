/** A request refused below the protocol: the HTTP status, and an error body that names the rule and the way out. */
import { failureFrame } from '../../jsonrpc/serialize.ts'

export interface Refusal {
  readonly status: number
  readonly message: string
  /** JSON-RPC error code of the body. Default −32600, invalid request. */
  readonly code?: number
  readonly headers?: Readonly<Record<string, string>>
}

const invalidRequest = -32600
const parseError = -32700
const internalError = -32603

/** The error body. It has no id: the request was refused before its id could be known. */
export function refusalFrame(refusal: Refusal): string {
  return failureFrame(undefined, { code: refusal.code ?? invalidRequest, message: refusal.message })
}

export function tooLarge(limit: number): Refusal {
  return {
    status: 413,
    message: `The body is longer than ${limit} bytes, which is this server's limit (frameBytes). Send less, or in parts`,
  }
}

export const notUtf8: Refusal = {
  status: 400,
  code: parseError,
  message: 'The body is not UTF-8. Send one JSON-RPC message as UTF-8 JSON text',
}

export const failed: Refusal = { status: 500, code: internalError, message: 'The server failed while answering' }
