/** The limits of the wire, both directions. Every one has a default; each refusal names the limit it hit. */

/** Limits on one message. */
export interface FrameLimits {
  /**
   * The most bytes of one message: a request body, stdio line, WebSocket frame or SSE event. Default 4 MiB for servers, 16 MiB
   * for clients.
   */
  readonly frameBytes: number
  /** The deepest nesting of objects and arrays in a message. Default 128. */
  readonly depth: number
  /** The most members and items in a message. Default 200,000. */
  readonly elements: number
  /** The most different member names in a message. Default 20,000. */
  readonly names: number
  /** The most messages in one batch. Default 100. */
  readonly batch: number
}

/** The defaults of what a server takes. */
export const frameLimits: FrameLimits = {
  frameBytes: 4 * 1024 * 1024,
  depth: 128,
  elements: 200_000,
  names: 20_000,
  batch: 100,
}

/** What a client takes from a server: results may be larger than requests. */
export const clientFrameLimits: FrameLimits = { ...frameLimits, frameBytes: 16 * 1024 * 1024 }

/** The most characters of foreign text that an error message or a log line repeats. */
export const echoLength = 80

/** Clips foreign text for an error message and keeps control characters out of logs. */
export function clip(text: string, length = echoLength): string {
  const safe = /[\u0000-\u001f\u007f-\u009f\u2028\u2029]/.test(text)
    ? text.replace(/[\u0000-\u001f\u007f-\u009f\u2028\u2029]/g, '\ufffd')
    : text
  return safe.length <= length ? safe : `${safe.slice(0, length - 1)}…`
}

/** The same for a foreign value that may be anything: an object from JSON may have a `toString` that is no function. */
export function echo(value: unknown, length = echoLength): string {
  return clip(typeof value === 'string' ? value : (JSON.stringify(value) ?? typeof value), length)
}
