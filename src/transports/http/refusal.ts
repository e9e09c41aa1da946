/** Refusals below the protocol: an HTTP status, and a JSON-RPC error body that names the rule and how to comply. */
import { failureFrame } from '../../jsonrpc/message.ts'
import { byteLength } from './event.ts'

/** A refusal by HTTP status, before a message is read. */
export interface Refusal {
  readonly status: number
  readonly message: string
  /** JSON-RPC error code of the body. Default −32600, invalid request. */
  readonly code?: number
  readonly headers?: Readonly<Record<string, string>>
  /** Additional data for callers known to read it. */
  readonly data?: unknown
}

const invalidRequest = -32600
const parseError = -32700
const internalError = -32603

/** The error body. It has no id: the request is refused before its id is known. */
export function refusalFrame(refusal: Refusal): string {
  const { code = invalidRequest, message, data } = refusal
  return failureFrame(undefined, data === undefined ? { code, message } : { code, message, data })
}

/** Writes a refusal by hand: an upgrade request has no response object. */
export function refuseUpgrade(socket: { end(text: string): unknown }, refusal: Refusal, reason: string): void {
  const body = refusalFrame(refusal)
  const headers = {
    'content-type': 'application/json',
    'content-length': `${byteLength(body)}`,
    connection: 'close',
    ...refusal.headers,
  }
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
  socket.end(`HTTP/1.1 ${refusal.status} ${reason}\r\n${lines.join('')}\r\n${body}`)
}

/** The refusal of a body beyond the limit. */
export function tooLarge(limit: number): Refusal {
  return {
    status: 413,
    message: `The body is longer than ${limit} bytes, which is this server's limit (frameBytes). Send less, or in parts`,
  }
}

/** The refusal of a body that is not UTF-8. */
export const notUtf8: Refusal = {
  status: 400,
  code: parseError,
  message: 'The body is not valid UTF-8. Send one JSON-RPC message as UTF-8 JSON text',
}

/** The refusal for a failure on our side. */
export const failed: Refusal = {
  status: 500,
  code: internalError,
  message: 'Internal server error; the log of the server has the cause',
}
