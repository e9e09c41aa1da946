/** What a failed first message proves about a server's era, and what it does not. */
import { ConnectionError } from '../jsonrpc/connection.ts'
import { McpError } from '../jsonrpc/error.ts'
import { isRecord } from '../jsonrpc/message.ts'
import type { Opener } from './target.ts'

/** Numbers that only stateless wires have. */
const modernCodes: ReadonlySet<number | undefined> = new Set([-32020, -32021, -32022])

/** Over HTTP: who may call, and whether the server has time, says nothing about what it speaks. */
const unrelated: ReadonlySet<number> = new Set([401, 403, 407, 408, 425, 429])

/** The server understood the envelope, and refuses all the same. */
export function isModernRefusal(error: unknown): boolean {
  return error instanceof McpError && modernCodes.has(error.code)
}

/** Whether the failure tells that the server does not know the message; else it must be passed on as it is. */
export function isEvidence(error: unknown, kind: Opener['kind']): boolean {
  const status = statusOf(error)
  if (status !== undefined && (unrelated.has(status) || status >= 500)) return false
  if (error instanceof McpError) return error.kind !== 'timeout' || kind !== 'http'
  if (!(error instanceof ConnectionError)) return false
  return kind === 'http' ? status !== undefined && status >= 400 : error.kind === 'lost'
}

export function statusOf(error: unknown): number | undefined {
  return error instanceof McpError || error instanceof ConnectionError ? error.status : undefined
}

/** Versions that a refusal names. */
export function offeredBy(error: unknown): readonly string[] {
  const supported = error instanceof McpError && isRecord(error.data) ? error.data['supported'] : undefined
  return Array.isArray(supported) ? supported.filter(version => typeof version === 'string') : []
}
