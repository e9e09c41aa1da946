/** One object per wire revision: envelope, HTTP manners, error numbers. What a feature owns stays with the feature. */
export {
  capabilitiesKey,
  checkNameHeader,
  decodeHeaderValue,
  encodeHeaderValue,
  envelopeKeys,
  headerFault,
  metaOf,
  openEnvelope,
  serverInfoKey,
  versionKey,
} from './envelope.ts'
export {
  checkVersionHeader,
  identify,
  officialRevisions,
  revisionById,
  revisions,
  Spoken,
  unsupported,
  versionHeader,
} from './registry.ts'
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
export { inherited, lineage, type Steps, stepsDown, stepsUp, type VersionStep, type Wire } from './steps.ts'
