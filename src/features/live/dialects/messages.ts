/** The dialects of MCP Live, 0.2 to 0.5: codecs between what peers write and the canonical model, pure, and known to all its features. */
export {
  type Announced,
  announcedBy,
  type DialectLabel,
  hasTools,
  mostSets,
  readAnnounced,
  readDeclarations,
} from './announced.ts'
export { type ContentForm, readContent, writeContent } from './content.ts'
export { readIncoming, readPush } from './pushes.ts'
export {
  type EnabledSet,
  type HostSelection,
  type ReadReceipt,
  readReceipt,
  type ToldSelection,
  writeSelection,
} from './selection.ts'
export {
  readLiveState,
  readRollback,
  refusedRollback,
  type ServerRollback,
  stateOf,
  toolSetOf,
  writeCallState,
} from './states.ts'
export { readBefore, readInference, writeInference, writeTurn } from './turns.ts'
export { carriesState, declaredUses, isConsented, type SetUse, setUses, usesUnder } from './uses.ts'
