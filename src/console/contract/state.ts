/** The states of feature sets: trees of checkpoints, their content and differences. */
import type { Why } from './servers.ts'

/** A feature set with checkpoints. */
export interface StateSetRow {
  readonly server: string
  readonly featureSet: string
  /** How many checkpoints are known. */
  readonly checkpoints: number
  /** The checkpoint that counts; absent: none does. */
  readonly head?: string
  /** When the newest checkpoint was recorded. */
  readonly last?: number
  /** Whether the server says that it can go back. */
  readonly rollsBack: boolean
}

/** A checkpoint: also in the payload of the event `checkpoint`. */
export interface StateNode {
  /** The id that its server gave. It may hold any characters. */
  readonly checkpoint: string
  /** The checkpoint before it; `null`: it is a first one. */
  readonly parent: string | null
  readonly at: number
  /** `kept`: the host has its content. `server`: the server has it. `orphan`: its parent is unknown. `broken`: it could not be computed. */
  readonly state: 'kept' | 'server' | 'orphan' | 'broken'
  /** Whether it is the head. */
  readonly current: boolean
  /** The call that made it, where this process knows it. */
  readonly turn?: { readonly conversation: string; readonly seq: number; readonly call: number; readonly tool: string }
}

/** `GET /state/:server/:set/at`. */
export interface StateAtQuery {
  readonly checkpoint: string
}

/** The content at a checkpoint. */
export interface StateContent {
  readonly checkpoint: string
  /** Characters as JSON. */
  readonly length: number
  /** Absent for more than 4,000,000 characters, and for sessions that may not see payloads. */
  readonly value?: unknown
}

/** `GET /state/:server/:set/diff`. */
export interface StateDiffQuery {
  readonly from: string
  readonly to: string
}

/** A step of a JSON Patch (RFC 6902). */
export interface PatchStep {
  readonly op: 'add' | 'remove' | 'replace' | 'move' | 'copy' | 'test'
  readonly path: string
  readonly from?: string
  /** Left out for sessions that may not see payloads. */
  readonly value?: unknown
}

/** What changed from one checkpoint to another. */
export interface StateDifference {
  readonly from: string
  readonly to: string
  /** At most 5,000. */
  readonly steps: readonly PatchStep[]
  /** How many steps there are. */
  readonly count: number
}

/** `POST /state/:server/:set/rollback`. The server is asked first. */
export interface StateRollback {
  /** The checkpoint to go back to. */
  readonly to: string
}

/** What came of a rollback. */
export interface StateRolledBack {
  readonly success: boolean
  /** The head afterwards. */
  readonly head?: string
  /** The server does not know rollbacks; it gets the earlier state with the next call. */
  readonly hostOnly?: boolean
  /** Why it was not done. */
  readonly why?: Why
}
