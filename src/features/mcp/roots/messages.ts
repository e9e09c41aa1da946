/** Which folders the client works in. */
import { notification, officialIds, request, sessionRevisionIds } from '../../../engine/method.ts'
import { isRecord } from '../../../jsonrpc/message.ts'
import { record } from '../../../jsonrpc/shape.ts'
import type { Wire } from '../../../revisions/index.ts'
import { without } from '../content/messages.ts'

/** A directory or file that the client lets the server work in. */
export interface Root {
  /** A `file:` URI. */
  readonly uri: string
  /** The name that people see. */
  readonly name?: string
  /** Further facts about it (`_meta` on the wire). Names carry a prefix: `example.com/kind`. */
  readonly _meta?: Readonly<Record<string, unknown>>
}

/** The result of `roots/list`. */
interface ListRootsResult {
  readonly roots: readonly Root[]
}

/** `roots/list`: asks the client for its roots. */
export const listRoots = request<ListRootsResult>()({
  name: 'roots/list',
  to: 'client',
  in: officialIds,
  params: record,
  resultDown: {
    '2025-03-26': result => ({ ...result, roots: (result['roots'] as readonly Wire[]).map(root => without(root, '_meta')) }),
  },
})

/** `notifications/roots/list_changed`: the roots are other ones now. */
export const rootsChanged = notification({
  name: 'notifications/roots/list_changed',
  to: 'server',
  in: sessionRevisionIds,
  params: record,
})

/** Whether a value is a result of `roots/list`. */
export function isRoots(value: unknown): value is ListRootsResult {
  return (
    isRecord(value) &&
    Array.isArray(value['roots']) &&
    value['roots'].every(root => isRecord(root) && typeof root['uri'] === 'string')
  )
}
