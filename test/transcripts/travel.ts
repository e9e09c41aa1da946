/** What travels beside the frames of a transcript: the headers and the stream that its revision has over HTTP. */
import { setImmediate as turn } from 'node:timers/promises'
import { mirroredParams, mirrorHeaders } from '../../src/features/mcp/tools/headers.ts'
import type { Connection, Outgoing } from '../../src/jsonrpc/connection.ts'
import { isRecord } from '../../src/jsonrpc/message.ts'
import { metaOf, type Revision, revisionById, revisions, versionKey } from '../../src/revisions/index.ts'
import type { RevisionId, Server } from '../../src/server/index.ts'

const names: Readonly<Record<string, 'name' | 'uri' | 'taskId' | 'transaction_id'>> = {
  'tools/call': 'name',
  'prompts/get': 'name',
  'resources/read': 'uri',
  'tasks/get': 'taskId',
  'tasks/update': 'taskId',
  'tasks/cancel': 'taskId',
  'transaction/begin': 'transaction_id',
  'transaction/commit': 'transaction_id',
  'transaction/rollback': 'transaction_id',
  'transaction/get': 'transaction_id',
}

export interface Travel {
  outgoing(frame: unknown): Outgoing
  /** Opens the stream for what the server says unasked, once the handshake is over, and waits until the server has it. */
  said(frame: unknown): Promise<void>
}

export function travelWith(id: RevisionId, connection: Connection, server: Server | undefined): Travel {
  if (connection.carrier !== 'http') return { outgoing: () => ({}), said: async () => {} }
  let session = revisionById(id)
  return {
    outgoing: frame => {
      const claim = claimOf(frame)
      if (claim === undefined && isRecord(frame) && frame['method'] === 'initialize') {
        const version = isRecord(frame['params']) ? frame['params']['protocolVersion'] : undefined
        session = revisions.find(({ wire, era }) => wire === version && era === 'session') ?? session
        return { session: true }
      }
      const revision = revisions.find(({ wire, era }) => wire === claim && era === 'request') ?? session
      const headers = { ...headersOf(revision, frame), ...(claim === undefined ? {} : { 'mcp-protocol-version': claim }) }
      return { session: revision.http.session, resume: revision.http.resume, headers }
    },
    said: async frame => {
      const opened = isRecord(frame) && /^(notifications\/)?initialized$/.test(String(frame['method']))
      if (!opened || server === undefined) return
      connection.listen?.({
        session: true,
        resume: session.http.resume,
        headers: session.http.headers(undefined, undefined, undefined),
      })
      for (
        let turns = 0;
        turns < 10_000 && ![...server.engine.sessions.all()].some(({ push }) => push?.closed === false);
        turns++
      )
        await turn()
    },
  }
}

/** The version that a frame names by itself. */
function claimOf(frame: unknown): string | undefined {
  const claim = isRecord(frame) && isRecord(frame['params']) ? metaOf(frame['params'])?.[versionKey] : undefined
  return typeof claim === 'string' ? claim : undefined
}

/** The one mirrored argument is that of the fixture's tool `count`. */
const mirrored = mirroredParams({ type: 'object', properties: { to: { type: 'integer', 'x-mcp-header': 'To' } } })

function headersOf(revision: Revision, frame: unknown): Record<string, string> {
  if (!isRecord(frame)) return revision.http.headers(undefined, undefined, undefined)
  const method = typeof frame['method'] === 'string' ? frame['method'] : undefined
  const params = isRecord(frame['params']) ? frame['params'] : undefined
  const headers = revision.http.headers(method, params, method === undefined ? undefined : names[method])
  if (revision.era !== 'request' || params?.['name'] !== 'count' || 'fault' in mirrored || !isRecord(params['arguments']))
    return headers
  return { ...headers, ...mirrorHeaders(mirrored, params['arguments']) }
}
