/** A request that every server of a revision answers and that changes nothing. */
import type { Json, RevisionId } from '../scenario.ts'
import { isStateless, requestMeta } from '../wire/envelope.ts'

export function harmlessMethod(revision: RevisionId): string {
  if (isStateless(revision)) return 'server/discover'
  return revision === 's3' ? 'tools/list' : 'ping'
}

/** The same as a whole message, to be sent as text. */
export function harmless(revision: RevisionId, id: unknown, more: Json = {}): Json {
  const meta = requestMeta(revision, {}, undefined)
  const params = meta === undefined ? {} : { _meta: meta }
  return { jsonrpc: '2.0', id, method: harmlessMethod(revision), params, ...more }
}
