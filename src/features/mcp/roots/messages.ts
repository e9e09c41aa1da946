/** Which folders the client works in. */
import { notification, officialIds, request, sessionIds } from '../../../engine/method.ts'
import { isRecord } from '../../../jsonrpc/message.ts'
import { record } from '../../../jsonrpc/shape.ts'
import type { Wire } from '../../../revisions/index.ts'
import { without } from '../content/messages.ts'

export interface Root {
  readonly uri: string
  readonly name?: string
  readonly _meta?: Readonly<Record<string, unknown>>
}

export interface ListRootsResult {
  readonly roots: readonly Root[]
}

export const listRoots = request<ListRootsResult>()({
  name: 'roots/list',
  to: 'client',
  in: officialIds,
  params: record,
  resultDown: {
    '2025-03-26': result => ({ ...result, roots: (result['roots'] as readonly Wire[]).map(root => without(root, '_meta')) }),
  },
})

export const rootsChanged = notification({
  name: 'notifications/roots/list_changed',
  to: 'server',
  in: sessionIds,
  params: record,
})

export function isRoots(value: unknown): value is ListRootsResult {
  return (
    isRecord(value) &&
    Array.isArray(value['roots']) &&
    value['roots'].every(root => isRecord(root) && typeof root['uri'] === 'string')
  )
}
