/** One descriptor per method: from it routes, checks, headers and version steps are compiled. */
import type { Shape } from '../jsonrpc/shape.ts'
import { type Capabilities, type Revision, type RevisionId, revisions, type Steps } from '../revisions/index.ts'

/** The two ends of the protocol. */
export type PeerRole = 'server' | 'client'

/** The descriptor of one method: `P` are its canonical params, `R` is its canonical result. */
export interface Method<P = unknown, R = unknown> {
  /** The name in the canonical model. */
  readonly name: string
  readonly kind: 'request' | 'notification'
  /** Who receives it. */
  readonly to: PeerRole | 'both'
  /** The wires that have it. */
  readonly in: readonly RevisionId[]
  /** Other spellings of the name, per wire. */
  readonly names?: Readonly<Partial<Record<RevisionId, string>>>
  readonly params: Shape<P>
  /** May be answered with questions that travel inside the result. */
  readonly asks?: boolean
  /** Stays open until one end lets go: no call in flight, but a stream that its feature bounds itself. */
  readonly lasting?: boolean
  /** Answered at once, however much is in flight. */
  readonly instant?: boolean
  /** The extension it belongs to: refused unless the peer declared that. */
  readonly extension?: string
  /** Opens the conversation: nothing that a handshake settles is said with it. */
  readonly opening?: boolean
  /** The list in its result whose entries stand each for itself: one that is too deep to be read is cut and marked, not the answer refused. */
  readonly entries?: string
  /** What its sender declares with each such request, on wires where requests do that. */
  readonly declares?: Capabilities
  /** The member of params that names the target (mirrored in a header where the wire wants it). */
  readonly nameParam?: 'name' | 'uri' | 'taskId' | 'transaction_id'
  /** Version steps, canonical → wire (`down`) and wire → canonical (`up`). */
  readonly paramsDown?: Steps
  readonly paramsUp?: Steps
  readonly resultDown?: Steps
  readonly resultUp?: Steps
  /** The canonical result of a cancelled call, for wires that answer those too. */
  readonly cancelled?: unknown
  /** Carries the result type; never set. */
  readonly result?: R
}

/** Declares a request. `R` is the canonical result type. */
export function request<R>() {
  return <P>(parts: Omit<Method<P, R>, 'kind' | 'result'>): Method<P, R> => ({ ...parts, kind: 'request' })
}

/** Declares a notification. */
export function notification<P>(parts: Omit<Method<P, undefined>, 'kind' | 'result'>): Method<P, undefined> {
  return { ...parts, kind: 'notification' }
}

/** The name of a method on a wire. */
export function wireName(method: Method, revision: Revision): string {
  return method.names?.[revision.id] ?? method.name
}

const idsOf = (fits: (revision: Revision) => boolean): readonly RevisionId[] => revisions.filter(fits).map(({ id }) => id)

/** Session wires up to and including the last with a handshake, without the dialect. */
export const sessionRevisionIds = idsOf(({ era, dialect }) => era === 'session' && !dialect)
/** The wires on which each request stands for itself. */
export const statelessRevisionIds = idsOf(({ era }) => era === 'request')
/** All wires but the dialect. */
export const officialIds = idsOf(({ dialect }) => !dialect)
/** All wires there are. */
export const everyId = idsOf(() => true)

/** The prefix of everything that this runtime adds to the protocol: extension ids and keys of `_meta`. */
export const NS = 'dev.vivarium'
