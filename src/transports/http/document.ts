/** A public JSON document beside the endpoint, such as the metadata of RFC 9728: for anyone, from any origin, by GET. */
import { clip } from '../../jsonrpc/limits.ts'
import type { Refusal } from './refusal.ts'

export interface DocumentAnswer {
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

/** The path of a request's address, without its query. */
export function pathOf(url: string | undefined): string {
  const text = url ?? ''
  const end = text.indexOf('?')
  return end === -1 ? text : text.slice(0, end)
}
