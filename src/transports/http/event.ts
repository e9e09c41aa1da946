/**
 * Server-sent events as text (WHATWG HTML, "Server-sent events"), and the ids of events, which encode the position of a reader.
 * The server carriers and the stream logs share both.
 */

/**
 * One JSON-RPC frame as an event. In JSON text a line break can only be white space between tokens, so splitting there is safe.
 */
export function eventText(frame: string, id?: string): string {
  const data = frame.includes('\n') || frame.includes('\r') ? frame.replace(/\r\n|\r|\n/g, '\ndata: ') : frame
  return id === undefined ? `event: message\ndata: ${data}\n\n` : `id: ${id}\nevent: message\ndata: ${data}\n\n`
}

/** The first event of a resumable stream: only an id to reconnect with. */
export function primingText(id: string): string {
  return `id: ${id}\ndata: \n\n`
}

/** Tells the reader how long to wait before it reconnects. */
export function retryText(ms: number): string {
  return `retry: ${Math.max(0, Math.round(ms))}\n\n`
}

/** The `endpoint` event of HTTP+SSE (2024-11-05), which names the address for POSTs. */
export function endpointText(uri: string): string {
  return `event: endpoint\ndata: ${uri}\n\n`
}

/** A comment line, which keeps intermediaries from closing a silent stream. */
export const keepAliveText = ': keep-alive\n\n'

/** Length in UTF-8, by a native function where the runtime has one. */
export const byteLength: (text: string) => number =
  typeof Buffer === 'function' ? text => Buffer.byteLength(text) : text => encoder.encode(text).length

const encoder = new TextEncoder()

// Event ids: `<stream>-<number>` is a position in a stream. A reader that also receives what other processes send in its
// session has a position in several streams: `<stream>-<number>.<stream>-<number>`.

/** A position in one stream: the reader has seen the events up to this number. */
export interface EventPosition {
  readonly stream: string
  readonly number: number
}

/** The most streams in one id. More processes are unlikely in one session; the oldest positions are dropped. */
export const mostPlaces = 8

/** The number of the event that replaces an answer which will not come: higher than any real one. */
export const finalEventNumber = 999_999_999_999_999

const one = /^([^.-]{1,64})-(\d{1,15})$/

/** Makes an id from a position and, if given, positions in other streams. */
export function eventId(stream: string, number: number, beside?: ReadonlyMap<string, number>): string {
  let id = `${stream}-${number}`
  if (beside !== undefined) for (const [other, seen] of beside) id += `.${other}-${seen}`
  return id
}

/** Parses an id; empty if it is not one of ours. */
export function parseEventId(id: string): readonly EventPosition[] {
  if (id.length > mostPlaces * 80) return []
  const places: EventPosition[] = []
  for (const part of id.split('.')) {
    const [, stream, number] = one.exec(part) ?? []
    if (stream === undefined || places.length === mostPlaces) return []
    places.push({ stream, number: Number(number) })
  }
  return places
}
