/** The stateless wire: every request names its version and its sender's capabilities; questions travel inside results. */

import { requestEnvelope, requestHeaders, serverInfoKey } from './envelope.ts'
import { type Revision, requestStatuses, statelessErrorCodes } from './revision.ts'

/** Revision 2026-07-28. */
export const rev20260728: Revision = {
  id: '2026-07-28',
  wire: '2026-07-28',
  base: undefined,
  era: 'request',
  ordinal: 4,
  dialect: false,
  batch: false,
  unknownId: 'omit',
  asks: 'result',
  wrongArguments: 'result',
  pages: true,
  detailedCapabilities: true,
  extensionsIn: 'extensions',
  logLevelBy: 'request',
  answersCancelled: false,
  errors: statelessErrorCodes,
  http: {
    session: false,
    sessionRequired: false,
    authorizesItself: false,
    announcesPkce: true,
    resume: false,
    prime: false,
    disconnectCancels: true,
    status: requestStatuses,
    headers: (method, params, nameParam) => requestHeaders('2026-07-28', method, params, nameParam),
  },
  cancels: carrier => (carrier === 'http' ? 'abort' : 'notify'),
  clientInfo: 'optional',
  requestMeta: (capabilities, info, logLevel) => requestEnvelope('2026-07-28', capabilities, info, logLevel),
  resultMeta: info => ({ [serverInfoKey]: info }),
}
