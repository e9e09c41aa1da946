/** A small early dialect that calls itself 2025-06-18 under another key: tools by `tools/invoke`, bare arrays, no asking. */
import { sessionRevision } from './revision.ts'

/** The dialect. */
export const revS3 = sessionRevision({
  id: 's3',
  wire: '2025-06-18',
  base: '2025-06-18',
  ordinal: 6,
  dialect: true,
  asks: 'none',
  // It has a number of its own for them.
  wrongArguments: 'error',
  pages: false,
  detailedCapabilities: false,
  extensionsIn: undefined,
  logLevelBy: undefined,
  answersCancelled: true,
  http: { resume: false, sessionRequired: false },
  errors: { 'header-mismatch': -32603, 'capability-missing': -32603, 'version-unsupported': -32603 },
})
