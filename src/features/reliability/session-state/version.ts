/** One version of a state, as it lies sealed in a token or under a key of the store. */
import { toBase64Url } from '../../../core/base64.ts'
import { problem } from '../../../core/problem.ts'
import { isRecord } from '../../../jsonrpc/message.ts'

export interface StateVersion {
  /** Names its session to operators. No authority: only a token, a session or a principal gets at a state. */
  readonly session: string
  /** How many were written before it on its way, from 1; 0: none yet. */
  readonly depth: number
  /** Tells it from others at that depth. */
  readonly tag: string
  /** How often its session had been rolled back when it was written. */
  readonly epoch: number
  /** From when on it is too old, in milliseconds since the epoch. */
  readonly expires: number
  /** Absent: nothing, or kept on the store. */
  readonly data?: unknown
  /** It is kept on the store. */
  readonly elsewhere?: true
  /** The unit of work whose step wrote it: undone with that. */
  readonly unit?: string
}

export function firstVersion(): StateVersion {
  return { session: randomName(16), depth: 0, tag: '', epoch: 0, expires: 0 }
}

export function nextTag(): string {
  return randomName(9)
}

/** Undefined for whatever else was sealed or stored there. */
export function readStateVersion(value: unknown): StateVersion | undefined {
  if (!isRecord(value) || typeof value['session'] !== 'string' || typeof value['tag'] !== 'string') return undefined
  const numbers = [value['depth'], value['epoch'], value['expires']]
  return numbers.every(Number.isSafeInteger) ? (value as unknown as StateVersion) : undefined
}

/** What was written after a cut, and before it was made. `cuts` are depths, by epoch. */
export function isCut({ depth, epoch }: StateVersion, cuts: readonly number[]): boolean {
  return cuts.slice(epoch).some(cut => depth > cut)
}

/** So many are told apart; the oldest cut holds for all before it. */
const mostCuts = 1_000

export function withCut(cuts: readonly number[], depth: number): readonly number[] {
  if (cuts.length < mostCuts) return [...cuts, depth]
  throw problem('STATE_CONFLICT', `This session was rolled back ${mostCuts} times`, { category: 'permanent' })
}

export function invalidState(message: string): Error {
  return problem('STATE_INVALID', message, restart)
}

export function expiredState(): Error {
  return problem('STATE_EXPIRED', 'The state that this call came with is too old', restart)
}

export function stateConflict(): Error {
  return problem('STATE_CONFLICT', 'Another call wrote the same state meanwhile', {
    // The same call with the same state would meet the same conflict.
    category: 'permanent',
    suggestion: 'Make the call again with the newest state, or start again without one',
  })
}

const restart = { suggestion: 'Start again without session_state', details: { recovery: 'restart' } }

function randomName(bytes: number): string {
  return toBase64Url(crypto.getRandomValues(new Uint8Array(bytes)))
}
