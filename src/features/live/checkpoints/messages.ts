/**
 * State that tools leave behind (MCP Live 0.2 §8). It rides on `tools/call`: `state` or `checkpoint` with the request, `state` with the
 * result, each with a copy in `_meta` under the extension's name, because libraries drop members that they do not know.
 */
import { officialIds, request, sessionIds } from '../../../engine/method.ts'
import { anything, array, object, optional, type Shape, string } from '../../../jsonrpc/shape.ts'
import { speakingLive, type WireSelection } from '../feature-sets/messages.ts'

/** The state of a feature set at a checkpoint, whole or as a patch of its parent. */
export interface StateReport {
  readonly checkpoint: string
  /** Undefined: not said. Null: a root. */
  readonly parent?: string | null
  readonly data?: unknown
  /** RFC 6902, on the state at `parent`. */
  readonly patch?: readonly unknown[]
  readonly featureSet?: string
}

/** What a tool call of MCP Live carries beside its arguments: members of `params`, and of `_meta` under the extension's name. */
export interface WireCallState {
  readonly state?: unknown
  readonly checkpoint?: string
  readonly scope?: { readonly label: string; readonly payload?: Readonly<Record<string, unknown>> }
}

/** The same in `_meta`, with what has no member of its own. */
export interface WireCallMeta extends WireCallState {
  /** The checkpoint at which `state` was: what the result is built upon. */
  readonly parent?: string
  /** The set that the host takes the tool for: it has no state for it where none comes along. */
  readonly featureSet?: string
  /** Stateless wires: what the host has selected, and which listening host calls. */
  readonly policy?: WireSelection
  readonly hostId?: string
}

/** In the `_meta` of a result, a copy of its `state`, and the set whose state it is. */
export interface WireResultMeta {
  readonly state?: StateReport
  readonly featureSet?: string
}

const parent: Shape<string | null | undefined> = {
  optional: true,
  schema: () => ({ type: ['string', 'null'] }),
  check: value =>
    value === undefined || value === null || typeof value === 'string' ? undefined : { path: '', expected: 'a string or null' },
}

/** The server's answer to a rollback. */
export interface RollbackResult {
  readonly checkpoint: string
  readonly success: boolean
  readonly reason?: string
}

/** Asks a server to go back to a checkpoint of a feature set. */
export const rollbackState = request<RollbackResult>()({
  name: 'state/rollback',
  to: 'server',
  in: officialIds,
  params: object({ featureSet: string, checkpoint: string }),
  declares: speakingLive,
})

/** Servers of other dialects report state outside of calls, and ask for it. */
export const updateState = request<{ readonly accepted: boolean }>()({
  name: 'state/update',
  to: 'client',
  in: sessionIds,
  params: object({
    featureSet: string,
    checkpoint: string,
    parent,
    data: optional(anything),
    patch: optional(array(anything)),
  }),
})

/** Asks the host for the state of a feature set. */
export const getState = request<Readonly<Record<string, unknown>>>()({
  name: 'state/get',
  to: 'client',
  in: sessionIds,
  params: object({ featureSet: optional(string), checkpoint: optional(string) }),
})
