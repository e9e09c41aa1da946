/** Structured results, elicitation, and the version named in a header after the handshake. */
import { sessionRevision } from './revision.ts'

/** Revision 2025-06-18. */
export const rev20250618 = sessionRevision({
  id: '2025-06-18',
  wire: '2025-06-18',
  base: '2025-11-25',
  ordinal: 2,
  http: { headers: () => ({ 'mcp-protocol-version': '2025-06-18' }) },
})
