/**
 * One type for every position that is given away: a place in a journal, a feed or a state, named by a sealed handle. Cursors,
 * savepoints, checkpoints and state tokens are all this.
 */
import { HandleError, type HandlePurpose, type Seal } from './handle.ts'

export interface Place {
  readonly in: 'journal' | 'feed' | 'state'
  /** Which of them. */
  readonly of: string
  /** How far: a position of a log, the id of a version. */
  readonly at: number
}

/** Who may come back with it. */
export type PlaceHolder = Pick<HandlePurpose, 'principal' | 'audience' | 'bound'>

export function sealPlace(seal: Seal, place: Place, holder: PlaceHolder, expiresAt: number): Promise<string> {
  return seal.seal({ ...holder, kind: kindOf(place.in), expiresAt, data: [place.of, place.at] })
}

/** Rejects with `HandleError`, also where it is a place in another one than the wanted. */
export async function openPlace(
  seal: Seal,
  token: unknown,
  wanted: { readonly in: Place['in']; readonly of?: string },
  holder: PlaceHolder,
): Promise<Place> {
  const data = await seal.open(token, { ...holder, kind: kindOf(wanted.in) })
  const [of, at] = Array.isArray(data) ? data : []
  if (typeof of !== 'string' || !Number.isSafeInteger(at) || (wanted.of !== undefined && wanted.of !== of))
    throw new HandleError()
  return { in: wanted.in, of, at }
}

function kindOf(what: Place['in']): string {
  return `place/${what}`
}
