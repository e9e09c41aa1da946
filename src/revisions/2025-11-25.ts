/** The last wire with a handshake: tasks in the core, URL elicitation, streams that may be polled. */
import { sessionRevision } from './revision.ts'

/** Revision 2025-11-25. */
export const rev20251125 = sessionRevision({
  id: '2025-11-25',
  wire: '2025-11-25',
  base: undefined,
  ordinal: 3,
  unknownId: 'omit',
  extensionsIn: 'extensions',
  http: { prime: true, announcesPkce: true, headers: () => ({ 'mcp-protocol-version': '2025-11-25' }) },
})
