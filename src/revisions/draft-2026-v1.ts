/** The draft of SEP-2575 that preceded 2026-07-28: the same wire with other numbers and a few more members. */
import { rev20260728 } from './2026-07-28.ts'
import { requestEnvelope, requestHeaders } from './envelope.ts'
import type { Revision } from './revision.ts'

/** The draft of 2026-07-28. */
export const revDraft2026v1: Revision = {
  ...rev20260728,
  id: 'draft-2026-v1',
  wire: 'DRAFT-2026-v1',
  base: undefined,
  ordinal: 5,
  errors: {
    ...rev20260728.errors,
    'header-mismatch': -32001,
    'capability-missing': -32003,
    'version-unsupported': -32602,
  },
  http: {
    ...rev20260728.http,
    headers: (method, params, nameParam) => requestHeaders('DRAFT-2026-v1', method, params, nameParam),
  },
  clientInfo: 'required',
  requestMeta: (capabilities, info, logLevel) => requestEnvelope('DRAFT-2026-v1', capabilities, info, logLevel),
  // The draft names the server in the discover result's body instead.
  resultMeta: () => undefined,
}
