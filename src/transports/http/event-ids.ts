/**
 * The ids of events: `<stream>-<number>` says where a reader stands in a stream. Where a reader is also told what other processes
 * say in its session, it stands in several, and each id says where in all of them: `<stream>-<number>.<stream>-<number>`.
 */

/** Where a reader stands in one stream: it has seen the events up to this number. */
export interface StreamPlace {
  readonly stream: string
  readonly number: number
}

/** Streams in one id: as many processes may have had something to say in one session. More are forgotten, oldest first. */
export const mostPlaces = 8

/** The number of what is said in the place of an answer that will not come: after all events that there could have been. */
export const pastAll = 999_999_999_999_999

const one = /^([^.-]{1,64})-(\d{1,15})$/

export function eventId(stream: string, number: number, beside?: ReadonlyMap<string, number>): string {
  let id = `${stream}-${number}`
  if (beside !== undefined) for (const [other, seen] of beside) id += `.${other}-${seen}`
  return id
}

/** None, where it is no id of ours. */
export function placesIn(id: string): readonly StreamPlace[] {
  if (id.length > mostPlaces * 80) return []
  const places: StreamPlace[] = []
  for (const part of id.split('.')) {
    const [, stream, number] = one.exec(part) ?? []
    if (stream === undefined || places.length === mostPlaces) return []
    places.push({ stream, number: Number(number) })
  }
  return places
}
