/** One object per wire revision: envelope, HTTP manners, error numbers. What a feature owns stays with the feature. */
export { metaOf } from './common.ts'
export {
  capabilitiesKey,
  checkNameHeader,
  decodeHeaderValue,
  encodeHeaderValue,
  envelopeKeys,
  headerFault,
  serverInfoKey,
  versionKey,
} from './envelope.ts'
export { checkVersionHeader, identify, unsupported, versionHeader } from './identify.ts'
export { officialRevisions, revisionById, revisions, Spoken } from './registry.ts'
export type {
  Capabilities,
  CommonKind,
  HttpPolicy,
  Icon,
  Implementation,
  Peer,
  Revision,
  RevisionId,
} from './revision.ts'
export { inherited, lineage, type Step, type Steps, stepsDown, stepsUp, type Wire } from './steps.ts'
