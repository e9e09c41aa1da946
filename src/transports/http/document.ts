/**
 * What can be read by GET beside the MCP endpoint: public JSON documents such as the metadata of RFC 9728, documents for
 * callers, and downloads of referenced data. Independent of node:http and fetch.
 */
import type { HeaderReader } from '../../core/credentials.ts'
import type { Caller } from '../../jsonrpc/connection.ts'
import { clip } from '../../jsonrpc/limits.ts'
import type { Refusal } from './refusal.ts'

/** A document for authorized callers; its content may depend on the caller. */
export interface CallerDocument {
  /** Below the endpoint address, such as `/capabilities`. */
  readonly path: string
  read(caller: Caller): Promise<DocumentText>
}

/** The content, and how it may be cached. */
export interface DocumentText {
  readonly text: string
  /** The ETag. Equal content has an equal tag, even if counters in it differ. */
  readonly tag: string
  readonly maxAgeMs: number
  readonly cacheScope: 'public' | 'private'
}

/** The refusal for methods other than GET and HEAD; undefined for those two. */
export function refuseUnlessGet(method: string | undefined): Refusal | undefined {
  if (method === 'GET' || method === 'HEAD') return undefined
  const message = `Method ${clip(method ?? '')} is not allowed here. Read this document with GET`
  return { status: 405, message, headers: { allow: 'GET, HEAD' } }
}

/** The path of a request URL, without its query. */
export function pathOf(url: string | undefined): string {
  const text = url ?? ''
  const end = text.indexOf('?')
  return end === -1 ? text : text.slice(0, end)
}

/** Downloads by signed address. The signature alone authorizes: the caller is not identified. */
export interface Downloads {
  /** Below the address of the endpoint: `/references/`. */
  readonly path: string
  open(asked: DownloadRequest): Promise<Download>
}

/** A request for a download. */
interface DownloadRequest {
  readonly method: string
  /** What follows `path` in the address. */
  readonly name: string
  readonly query: URLSearchParams
  readonly header: HeaderReader
}

/** The answer to a request for a download. */
export interface Download {
  readonly status: number
  /** Flat: names and values. */
  readonly headers: string[]
  readonly body: ReadableStream<Uint8Array> | undefined
  /** Must be called once nothing of the body is read any more, for whatever reason. */
  over?(): void
}

/** The name of the download in a path; undefined if the path is not one of a download. */
export function downloadName(downloads: Downloads | undefined, path: string): string | undefined {
  if (downloads === undefined) return undefined
  const at = path.lastIndexOf(downloads.path)
  const name = at === -1 ? '' : path.slice(at + downloads.path.length)
  return name === '' || name.includes('/') ? undefined : name
}
