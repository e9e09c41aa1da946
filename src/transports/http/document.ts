/** What is read by GET beside the endpoint: JSON documents, such as the metadata of RFC 9728, and downloads of referenced data. */
import type { HeaderReader } from '../../core/credentials.ts'
import type { Caller } from '../../jsonrpc/connection.ts'
import { clip } from '../../jsonrpc/limits.ts'
import type { Refusal } from './refusal.ts'

interface DocumentAnswer {
  readonly status: number
  /** Flat: names and values. */
  readonly headers: string[]
  readonly body: string
}

const open = ['access-control-allow-origin', '*']
const allowed = 'GET, HEAD, OPTIONS'

export function documentAnswer(method: string | undefined, text: string): DocumentAnswer | Refusal {
  if (method === 'OPTIONS') {
    const headers = [...open, 'access-control-allow-methods', allowed, 'access-control-allow-headers', '*']
    return { status: 204, headers: [...headers, 'access-control-max-age', '600'], body: '' }
  }
  if (method === 'GET' || method === 'HEAD') {
    return { status: 200, headers: [...open, 'content-type', 'application/json', 'cache-control', 'max-age=300'], body: text }
  }
  return {
    status: 405,
    message: `Method ${clip(method ?? '')} is not served here. Read this document by GET`,
    headers: { allow: allowed },
  }
}

/** A document for whoever may call the server; it may be another one for each. */
export interface OwnDocument {
  /** Below the address of the endpoint: `/capabilities`. */
  readonly path: string
  read(caller: Caller): Promise<DocumentText>
}

interface DocumentText {
  readonly text: string
  /** Names what it says; counters may differ. */
  readonly tag: string
  readonly maxAgeMs: number
  readonly cacheScope: 'public' | 'private'
}

/** `kept`: the tags that the reader has already (If-None-Match). */
export function ownAnswer({ text, tag, maxAgeMs, cacheScope }: DocumentText, kept: string | undefined): DocumentAnswer {
  const etag = `"${tag}"`
  const headers = ['etag', etag, 'cache-control', `${cacheScope}, max-age=${Math.floor(maxAgeMs / 1000)}`]
  const known = kept?.split(',').some(each => each.trim().replace(/^W\//, '') === etag || each.trim() === '*')
  if (known === true) return { status: 304, headers, body: '' }
  return { status: 200, headers: ['content-type', 'application/json', ...headers], body: text }
}

export function notRead(method: string | undefined): Refusal | undefined {
  if (method === 'GET' || method === 'HEAD') return undefined
  const message = `Method ${clip(method ?? '')} is not served here. Read this document by GET`
  return { status: 405, message, headers: { allow: 'GET, HEAD' } }
}

/** The path of a request's address, without its query. */
export function pathOf(url: string | undefined): string {
  const text = url ?? ''
  const end = text.indexOf('?')
  return end === -1 ? text : text.slice(0, end)
}

/** Contents beside the endpoint, for whoever has their signed address: that alone lets in, and nobody is asked who he is. */
export interface Downloads {
  /** Below the address of the endpoint: `/references/`. */
  readonly path: string
  open(asked: DownloadRequest): Promise<Download>
}

interface DownloadRequest {
  readonly method: string
  /** What follows the path. */
  readonly name: string
  readonly query: URLSearchParams
  readonly header: HeaderReader
}

export interface Download {
  readonly status: number
  /** Flat: names and values. */
  readonly headers: string[]
  readonly body: ReadableStream<Uint8Array> | undefined
  /** To be called once nothing of it is read any more, however that came. */
  over?(): void
}

/** The name in the path of a request; undefined where the path is no download's. */
export function downloadName(downloads: Downloads | undefined, path: string): string | undefined {
  if (downloads === undefined) return undefined
  const at = path.lastIndexOf(downloads.path)
  const name = at === -1 ? '' : path.slice(at + downloads.path.length)
  return name === '' || name.includes('/') ? undefined : name
}

/** The query of an address. */
export function queryOf(url: string): URLSearchParams {
  const at = url.indexOf('?')
  return new URLSearchParams(at === -1 ? '' : url.slice(at + 1))
}

/** The body of a download, which tells when it is over by itself. */
export function watchedBody({ body, over }: Download): ReadableStream<Uint8Array> | undefined {
  if (body === undefined || over === undefined) return body
  const reader = body.getReader()
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const { done, value } = await reader.read().catch(error => {
          over()
          throw error
        })
        if (!done) return controller.enqueue(value)
        over()
        controller.close()
      },
      cancel(reason) {
        over()
        return reader.cancel(reason)
      },
    },
    { highWaterMark: 0 },
  )
}
