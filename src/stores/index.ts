/** `vivarium/stores`: open what lasts, or write a driver of your own. */
export type { AppendOptions, Blob, BlobDraft, BlobRange, Blobs, DraftPart, Drafts, PutBlobOptions } from './blobs.ts'
export { memoryBlobs } from './blobs.ts'
export { type DirectoryBlobsOptions, directoryBlobs } from './directory-blobs.ts'
export { type MemoryStoreOptions, memoryStore } from './memory.ts'
export { type OpenOptions, openStore } from './open.ts'
export {
  type AddOptions,
  add,
  append,
  type Committed,
  type Conflict,
  check,
  type Entry,
  type LogEntry,
  type LogPosition as Position,
  type Op,
  type OpResult,
  type PutOptions,
  put,
  type ReadOptions,
  remove,
  type ScanOptions,
  type Store,
  StoreError,
  trim,
} from './store.ts'
