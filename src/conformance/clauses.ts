/** Where a statement stands, for those who want to read it: an address for each kind of clause that has a public one. */
import type { RevisionId } from './scenario.ts'

const rpc: Readonly<Record<string, string>> = {
  '4': 'request_object',
  '4.1': 'notification',
  '5': 'response_object',
  '5.1': 'error_object',
  '6': 'batch',
}

/** Undefined where there is none. A clause that names no revision is meant of the one it was broken at. */
export function addressOf(statement: string, revision: RevisionId): string | undefined {
  const [, named, page] = /^MCP (?:(\d{4}-\d\d-\d\d) )?(\S+)$/.exec(statement) ?? []
  if (page !== undefined) return `https://modelcontextprotocol.io/specification/${named ?? published(revision)}/${page}`
  const [, rfc, section] = /^RFC (\d+)(?: §([\d.]+))?$/.exec(statement) ?? []
  if (rfc !== undefined) return `https://www.rfc-editor.org/rfc/rfc${rfc}${section === undefined ? '' : `#section-${section}`}`
  const [, part] = /^JSON-RPC ([\d.]+)$/.exec(statement) ?? []
  return part === undefined ? undefined : `https://www.jsonrpc.org/specification${rpc[part] === undefined ? '' : `#${rpc[part]}`}`
}

/** What is no release is read at the release that it became, or came of. */
function published(revision: RevisionId): string {
  if (revision === 'draft-2026-v1') return '2026-07-28'
  return revision === 's3' ? '2025-06-18' : revision
}
