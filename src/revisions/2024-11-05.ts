/** The first wire: handshake, HTTP+SSE pair, everything pushed. */
import { sessionRevision } from './revision.ts'

/** Revision 2024-11-05. */
export const rev20241105 = sessionRevision({
  id: '2024-11-05',
  wire: '2024-11-05',
  base: '2025-03-26',
  ordinal: 0,
})
