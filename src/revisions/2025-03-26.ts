/** Streamable HTTP with sessions; the one wire that has batches. */
import { sessionRevision } from './revision.ts'

/** Revision 2025-03-26. */
export const rev20250326 = sessionRevision({
  id: '2025-03-26',
  wire: '2025-03-26',
  base: '2025-06-18',
  ordinal: 1,
  batch: true,
  http: { authorizesItself: true },
})
