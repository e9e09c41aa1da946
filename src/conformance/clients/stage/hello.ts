/** How a server of each revision opens, by hand. */
import type { RevisionId } from '../../../revisions/index.ts'
import type { Frame } from './book.ts'
import type { Stage } from './open.ts'
import { type Handler, isStateless, Refusal } from './script.ts'

export const serverInfo = { name: 'scripted', version: '1.0.0' }

/** What a revision calls itself on the wire. */
export function wireOf(revision: RevisionId): string {
  if (revision === 'draft-2026-v1') return 'DRAFT-2026-v1'
  return revision === 's3' ? '2025-06-18' : revision
}

export function opening(stage: Stage): Record<string, Handler> {
  const { revision, play } = stage
  const capabilities = play.capabilities?.(revision) ?? { tools: {} }
  if (isStateless(revision)) return { ...discovers(stage, capabilities), initialize: refuseOld(stage) }
  if (revision === 's3') return dialect(stage)
  return {
    initialize: ({ book }) => {
      if (stage.carrier === 'http') book.notes.set('session', `session-${book.of('initialize').length}`)
      return { protocolVersion: stage.wire, capabilities, serverInfo }
    },
    ping: () => ({}),
  }
}

function discovers({ wire, revision }: Stage, capabilities: Frame): Record<string, Handler> {
  const named = revision === '2026-07-28' ? { _meta: { 'io.modelcontextprotocol/serverInfo': serverInfo } } : { serverInfo }
  return { 'server/discover': () => ({ supportedVersions: [wire], capabilities, ...named }) }
}

/** A server without a handshake names its versions when somebody begins with one. */
function refuseOld({ wire, revision }: Stage): Handler {
  const code = revision === '2026-07-28' ? -32022 : -32602
  return ({ params }) => {
    throw new Refusal(code, 'No handshake here', { supported: [wire], requested: params['protocolVersion'] }, 400)
  }
}

function dialect(_: Stage): Record<string, Handler> {
  return {
    initialize: ({ params }) => {
      if (typeof params['protocolVersion'] === 'string') throw new Refusal(-32602, 'mcpVersion is missing')
      return {
        server: serverInfo,
        serverCapabilities: { supportsToolDiscovery: true, supportsResourceDiscovery: false, supportsNotifications: true },
      }
    },
    shutdown: () => null,
  }
}
