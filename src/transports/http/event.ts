/** Server-sent events as text (WHATWG HTML, "Server-sent events"). */

/** One JSON-RPC frame as an event. A frame is JSON text, where a line break can only be white space between tokens. */
export function eventText(frame: string, id?: string): string {
  const data = frame.includes('\n') || frame.includes('\r') ? frame.replace(/\r\n|\r|\n/g, '\ndata: ') : frame
  return id === undefined ? `event: message\ndata: ${data}\n\n` : `id: ${id}\nevent: message\ndata: ${data}\n\n`
}

/** The first event of a stream that may be continued: an id to come back with, and nothing else. */
export function primingText(id: string): string {
  return `id: ${id}\ndata: \n\n`
}

/** Tells the reader how long to wait before it comes back. */
export function retryText(ms: number): string {
  return `retry: ${Math.max(0, Math.round(ms))}\n\n`
}

/** The event by which the pair of 2024-11-05 names the address for posts. */
export function endpointText(uri: string): string {
  return `event: endpoint\ndata: ${uri}\n\n`
}

/** A comment: keeps intermediaries from closing a silent stream. */
export const keepAliveText = ': keep-alive\n\n'

/** UTF-8 length, natively where the runtime can. */
export const byteLength: (text: string) => number =
  typeof Buffer === 'function' ? text => Buffer.byteLength(text) : text => encoder.encode(text).length

const encoder = new TextEncoder()

// The ids of events: `<stream>-<number>` says where a reader stands in a stream. Where a reader is also told what other
// processes say in its session, it stands in several, and each id says where in all of them:
// `<stream>-<number>.<stream>-<number>`.

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
