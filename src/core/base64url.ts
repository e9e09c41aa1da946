/** Bytes ⇄ base64url without padding. Strict: exactly one text stands for given bytes. Also plain base64, one way. */

/** Arguments a call may have; runtimes differ, this is safe on all. */
const chunk = 8_192

/** With padding, as content on the wire has it. */
export function toBase64(bytes: Uint8Array): string {
  let binary = ''
  for (let at = 0; at < bytes.length; at += chunk) binary += String.fromCharCode(...bytes.subarray(at, at + chunk))
  return btoa(binary)
}

export function toBase64Url(bytes: Uint8Array): string {
  return toBase64(bytes).replaceAll('+', '-').replaceAll('/', '_').replace(/=+$/, '')
}

/** Undefined for whatever `toBase64Url` would not have written. */
export function fromBase64Url(text: string): Uint8Array<ArrayBuffer> | undefined {
  if (!/^[A-Za-z0-9_-]*$/.test(text)) return undefined
  if (text.length % 4 === 1) return undefined
  const binary = atob(text.replaceAll('-', '+').replaceAll('_', '/'))
  const bytes = new Uint8Array(binary.length)
  for (let at = 0; at < binary.length; at++) bytes[at] = binary.charCodeAt(at)
  // The last character has bits that stand for nothing: set, they would make a second text for the same bytes.
  return toBase64Url(bytes) === text ? bytes : undefined
}
