/** The limits of the wire, both directions. Every one has a default; each refusal names the limit it hit. */

/** The limits of one frame. */
export interface FrameLimits {
  /** Bytes of one request body, stdio line, WebSocket frame or SSE event that a server takes. */
  readonly frameBytes: number
  /** Nesting of objects and arrays. */
  readonly depth: number
  /** Members and items in all. */
  readonly elements: number
  /** Different names of members in all. */
  readonly names: number
  /** Messages in one batch. */
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
