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
