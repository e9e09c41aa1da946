/** Base64 (RFC 4648 §4 and §5) as content and tokens have it: measured and checked before anything is decoded. */

/** The bytes that a text stands for, by its length and padding alone; undefined where it breaks off, or ends in too much. */
export function base64Size(text: string): number | undefined {
  const padding = text.endsWith('==') ? 2 : text.endsWith('=') ? 1 : 0
  const digits = text.length - padding
  if (digits % 4 === 1 || (padding > 0 && text.length % 4 !== 0)) return undefined
  return Math.floor((digits * 3) / 4)
}

/** Whether it is base64 to its end. Looks at every character once, and decodes none. */
export function isBase64(text: string): boolean {
  if (base64Size(text) === undefined) return false
  const padding = text.endsWith('==') ? 2 : text.endsWith('=') ? 1 : 0
  // The search for one wrong character takes no memory, however long the text is.
  return !/[^A-Za-z0-9+/]/.test(padding === 0 ? text : text.slice(0, -padding))
}

/** The first bytes, at most so many; those before the first character that is none of base64's. */
export function base64Head(text: string, most = 512): Uint8Array<ArrayBuffer> {
  const part = text.slice(0, Math.ceil(most / 3) * 4)
  const end = part.search(/[^A-Za-z0-9+/]/)
  const digits = end === -1 ? part : part.slice(0, end)
  return decode(digits.length % 4 === 1 ? digits.slice(0, -1) : digits).subarray(0, most)
}

/** Undefined where it is no base64. */
export function fromBase64(text: string): Uint8Array<ArrayBuffer> | undefined {
  return isBase64(text) ? decode(text) : undefined
}

function decode(text: string): Uint8Array<ArrayBuffer> {
  const binary = atob(text)
  const bytes = new Uint8Array(binary.length)
  for (let at = 0; at < binary.length; at++) bytes[at] = binary.charCodeAt(at)
  return bytes
}

// Bytes ⇄ base64url without padding. Strict: exactly one text stands for given bytes. Also plain base64, one way.

/** Arguments a call may have; runtimes differ, this is safe on all. */
const chunk = 8_192

/** With padding, as content on the wire has it. */
export function toBase64(bytes: Uint8Array): string {
  let binary = ''
  for (let at = 0; at < bytes.length; at += chunk) binary += String.fromCharCode(...bytes.subarray(at, at + chunk))
  return btoa(binary)
}

/** Base64url without padding, as tokens have it. */
export function toBase64Url(bytes: Uint8Array): string {
  return toBase64(bytes).replaceAll('+', '-').replaceAll('/', '_').replace(/=+$/, '')
}

/** Undefined for whatever `toBase64Url` would not have written. */
export function fromBase64Url(text: string): Uint8Array<ArrayBuffer> | undefined {
  if (!/^[A-Za-z0-9_-]*$/.test(text)) return undefined
  if (text.length % 4 === 1) return undefined
  const bytes = decode(text.replaceAll('-', '+').replaceAll('_', '/'))
  // The last character has bits that stand for nothing: set, they would make a second text for the same bytes.
  return toBase64Url(bytes) === text ? bytes : undefined
}

/** Several runs of bytes as one. */
export function joinBytes(parts: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  const whole = new Uint8Array(parts.reduce((length, part) => length + part.length, 0))
  let at = 0
  for (const part of parts) {
    whole.set(part, at)
    at += part.length
  }
  return whole
}
