/** `vivarium/stores`: open what lasts, or write a driver of your own. */
export type { AppendOptions, Blob, BlobDraft, BlobRange, Blobs, DraftPart, Drafts, PutBlobOptions } from './blobs.ts'
export { type DirectoryBlobsOptions, directoryBlobs } from './directory-blobs.ts'
export { type MemoryStoreOptions, memoryStore } from './memory.ts'
export { memoryBlobs } from './memory-blobs.ts'
export { type OpenOptions, openStore } from './open.ts'
export { type AddOptions, add, append, check, type PutOptions, put, remove, trim } from './ops.ts'
export type {
  Committed,
  Conflict,
  Entry,
  LogEntry,
  Op,
  OpResult,
  Position,
  ReadOptions,
  ScanOptions,
  Store,
} from './store.ts'
export { StoreError } from './store.ts'
