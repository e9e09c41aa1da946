/**
 * Wire types and methods of tool state (MCP Live 0.2 §8). State travels with `tools/call`: `state` or `checkpoint` in the request,
 * `state` in the result. Each has a copy in `_meta`, because libraries drop members they do not know.
 */
import { officialIds, request, sessionRevisionIds } from '../../../engine/method.ts'
import { anything, array, object, optional, type Shape, string } from '../../../jsonrpc/shape.ts'
import { liveDeclaration, type WireSelection } from '../feature-sets/messages.ts'

/** The state of a feature set at a checkpoint, whole or as a patch of its parent. */
export interface StateReport {
  /** The id of the checkpoint. */
  readonly checkpoint: string
  /** Undefined: unknown. Null: this is the first state. */
  readonly parent?: string | null
  /** The whole state. */
  readonly data?: unknown
  /** RFC 6902 patch on the state at `parent`. */
  readonly patch?: readonly unknown[]
  /** The feature set. Absent: that of the call. */
  readonly featureSet?: string
}

/** What a live tool call carries beside its arguments, in `params` and as a copy in `_meta`. */
export interface WireCallState {
  /** The state, if the host keeps it. */
  readonly state?: unknown
  /** The current checkpoint, if the server keeps the state. */
  readonly checkpoint?: string
  /** The scope that the host grants the call. */
  readonly scope?: { readonly label: string; readonly payload?: Readonly<Record<string, unknown>> }
}

/** The copy in `_meta`, with members that exist only there. */
export interface WireCallMeta extends WireCallState {
  /** The checkpoint of `state`; the parent of the resulting state. */
  readonly parent?: string
  /** The set that the host assigns the tool to; without `state` there is none yet. */
  readonly featureSet?: string
  /** On stateless wires: the current selection. */
  readonly policy?: WireSelection
  /** On stateless wires: which listening host makes the call. */
  readonly hostId?: string
}

/** The copy of `state` in a result's `_meta`, with the set it belongs to. */
export interface WireResultMeta {
  readonly state?: StateReport
  readonly featureSet?: string
}

// Three values: absent (unknown), null (first state) and a checkpoint id.
const parent: Shape<string | null | undefined> = {
  optional: true,
  schema: () => ({ type: ['string', 'null'] }),
  check: value =>
    value === undefined || value === null || typeof value === 'string' ? undefined : { path: '', expected: 'a string or null' },
}

/** The server's answer to a rollback. */
interface RollbackResult {
  /** The checkpoint at which the server now stands. */
  readonly checkpoint: string
  readonly success: boolean
  readonly reason?: string
}

/** Asks a server to roll a feature set back to a checkpoint. */
export const rollbackState = request<RollbackResult>()({
  name: 'state/rollback',
  to: 'server',
  in: officialIds,
  params: object({ featureSet: string, checkpoint: string }),
  declares: liveDeclaration,
})

/** A server reports state outside of a call. */
export const updateState = request<{ readonly accepted: boolean }>()({
  name: 'state/update',
  to: 'client',
  in: sessionRevisionIds,
  params: object({
    featureSet: string,
    checkpoint: string,
    parent,
    data: optional(anything),
    patch: optional(array(anything)),
  }),
})

/** A server asks the host for the state of a feature set. */
export const getState = request<Readonly<Record<string, unknown>>>()({
  name: 'state/get',
  to: 'client',
  in: sessionRevisionIds,
  params: object({ featureSet: optional(string), checkpoint: optional(string) }),
})
