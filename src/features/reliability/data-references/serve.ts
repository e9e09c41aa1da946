/** Answers to those who come with a signed address. */
import { joinBytes, toBase64 } from '../../../core/base64.ts'
import type { Blobs } from '../../../stores/blobs.ts'
import type { ResourceContents } from '../../mcp/content/messages.ts'
import type { KeptContent } from './ledger.ts'
import type { ReferenceRequest, Served } from './server.ts'

/** What a signature is for, with nothing that could be read in two ways. */
export function signedPath(method: string, id: string): string {
  return JSON.stringify([method, `/references/${id}`])
}

export const served = {
  forbidden: (): Served => plain(403, 'This address is not valid, or no longer'),
  busy: (): Served => plain(503, 'Too many contents are being read. Try again', ['retry-after', '1']),
  content,
}

/** Undefined where it is gone. */
async function content(blobs: Blobs, kept: KeptContent, { header }: ReferenceRequest): Promise<Served | undefined> {
  const etag = `"${kept.digest}"`
  // Whoever has a part of something else begins anew.
  const same = header('if-range') === undefined || header('if-range') === etag
  const part = same ? partOf(header('range'), kept.size) : undefined
  if (part === 'none') return plain(416, 'Nothing of the content lies there', ['content-range', `bytes */${kept.size}`])
  const found = await blobs.get(kept.digest, part ?? {}).catch(() => undefined)
  if (found === undefined) return undefined
  const { start, end } = part ?? { start: 0, end: kept.size }
  const range = part === undefined ? [] : ['content-range', `bytes ${start}-${end - 1}/${kept.size}`]
  const headers = ['content-length', `${end - start}`, 'etag', etag, ...range, ...factsOf(kept)]
  return { status: part === undefined ? 200 : 206, headers, body: found.stream }
}

function factsOf({ mime, digest, name }: KeptContent): string[] {
  const bytes = (digest.slice('sha256:'.length).match(/../g) ?? []).map(pair => Number.parseInt(pair, 16))
  return [
    'content-type',
    mime,
    'accept-ranges',
    'bytes',
    // RFC 9530: of the whole content, also where a part is given.
    'repr-digest',
    `sha-256=:${toBase64(new Uint8Array(bytes))}:`,
    'content-disposition',
    `attachment; filename*=UTF-8''${encodeURIComponent(name.toWellFormed()).replace(/['()*]/g, each => `%${each.charCodeAt(0).toString(16)}`)}`,
    ...closed,
  ]
}

/** A content is somebody's data: no browser is to make a page of it, or keep it. */
const closed = [
  'x-content-type-options',
  'nosniff',
  'content-security-policy',
  "sandbox; default-src 'none'",
  'cache-control',
  'private, no-store',
  'referrer-policy',
  'no-referrer',
]

function plain(status: number, text: string, more: readonly string[] = []): Served {
  const bytes = new TextEncoder().encode(text)
  const body = new ReadableStream<Uint8Array>({
    start(controller) {
      controller.enqueue(bytes)
      controller.close()
    },
  })
  return { status, headers: ['content-type', 'text/plain', 'content-length', `${bytes.length}`, ...more, ...closed], body }
}

const texts = /^(text\/|application\/(json|xml|.+\+(json|xml))\b)/i

/** The content whole, as resources have it: text where it is one. */
export async function contentsOf(
  stream: ReadableStream<Uint8Array>,
  { mime }: KeptContent,
  uri: string,
): Promise<ResourceContents> {
  const chunks: Uint8Array[] = []
  for await (const chunk of stream) chunks.push(chunk)
  const bytes = joinBytes(chunks)
  try {
    if (texts.test(mime)) return { uri, mimeType: mime, text: new TextDecoder('utf-8', { fatal: true }).decode(bytes) }
  } catch {
    // It says that it is a text, and is none in UTF-8.
  }
  return { uri, mimeType: mime, blob: toBase64(bytes) }
}

/** One part that a `Range` header names (RFC 9110 §14): from `start` up to, not including, `end`. */
interface Part {
  readonly start: number
  readonly end: number
}

/** Undefined: the whole content, also for several parts or what is not understood. `none`: nothing of it is there. */
function partOf(range: string | undefined, size: number): Part | 'none' | undefined {
  const [, first, last] = /^bytes=(\d{0,15})-(\d{0,15})$/i.exec(range?.trim() ?? '') ?? []
  if (first === undefined || last === undefined || (first === '' && last === '')) return undefined
  if (first === '') {
    const length = Math.min(Number(last), size)
    return length === 0 ? 'none' : { start: size - length, end: size }
  }
  const start = Number(first)
  const end = last === '' ? size : Math.min(Number(last) + 1, size)
  if (last !== '' && Number(last) < start) return undefined
  return start >= size ? 'none' : { start, end }
}
