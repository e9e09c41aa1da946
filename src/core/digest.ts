/** One text and one digest for equal JSON values, whatever the order in which their members were written. */
import { type Awaitable, isRecord } from '../jsonrpc/message.ts'
import { toBase64Url } from './base64.ts'

/** Above this the digest of a text takes so long that it is left to another thread. */
const shortText = 64 * 1024

/** Where the runtime has it: for short texts the web's way takes ten times as long, nearly all of it in coming and going. */
const hashAtOnce = typeof process === 'object' ? process.getBuiltinModule?.('crypto')?.hash : undefined

/** Frames are shallower by default; deeper than this is a cycle or a mistake. */
const maxDepth = 512

/**
 * JSON text by RFC 8785 (JCS): members sorted by the UTF-16 units of their names, numbers and text as ECMAScript writes them,
 * which is what `JSON.stringify` does. Beyond that RFC, which refuses them: what JSON drops is dropped, what it writes as null
 * (NaN) is null, half a surrogate pair is its escape; a parsed message has only the last of these. Undefined for what JSON has
 * no text for.
 */
export function canonicalJson(value: unknown): string | undefined {
  return write(value, 0)
}

/** SHA-256 over the canonical JSON, base64url. */
export function digest(value: unknown): Promise<string> {
  return digestText(canonicalJson(value) ?? '')
}

/** A digest of what is called, with what, as part of which unit: two calls under one idempotency key are the same if it is. */
export function fingerprint(target: string, args: Readonly<Record<string, unknown>>, unit: string | undefined): Promise<string> {
  return digest([target, args, unit ?? null])
}

/** A digest of what an approval is good for: this target, as it is defined now, with these arguments. */
export function approvalDigest(
  target: string,
  args: Readonly<Record<string, unknown>>,
  definition: string | undefined,
): Promise<string> {
  return digest([target, args, definition ?? null])
}

/** The same, at once where that takes no longer than to wait for it. */
export function digestSoon(value: unknown): Awaitable<string> {
  const text = canonicalJson(value) ?? ''
  return hashAtOnce !== undefined && text.length <= shortText ? hashAtOnce('sha256', text, 'base64url') : digestText(text)
}

/** SHA-256 over UTF-8 text, base64url. */
export async function digestText(text: string): Promise<string> {
  if (hashAtOnce !== undefined && text.length <= shortText) return hashAtOnce('sha256', text, 'base64url')
  return toBase64Url(new Uint8Array(await crypto.subtle.digest('SHA-256', new TextEncoder().encode(text))))
}

function write(value: unknown, depth: number): string | undefined {
  if (depth > maxDepth)
    throw new TypeError(
      `The value is nested deeper than ${maxDepth} levels or contains itself, so it cannot be serialised as JSON`,
    )
  if (Array.isArray(value)) return `[${Array.from(value, item => write(item, depth + 1) ?? 'null').join(',')}]`
  if (!isRecord(value)) return JSON.stringify(value)
  // Dates and the like say themselves how they are written.
  if (typeof value.toJSON === 'function') return write(value.toJSON(), depth + 1)
  let text = ''
  for (const key of Object.keys(value).sort()) {
    const member = write(value[key], depth + 1)
    if (member !== undefined) text += `${text === '' ? '' : ','}${JSON.stringify(key)}:${member}`
  }
  return `{${text}}`
}
