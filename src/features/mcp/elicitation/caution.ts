/**
 * What calls for caution in a question before a user sees it: where a page really leads, fields that ask for secrets, and which
 * pages a server may say something about later.
 */
import { isSecretName } from '../../../core/redact.ts'
import { McpError } from '../../../jsonrpc/error.ts'
import { isRecord, type Params } from '../../../jsonrpc/message.ts'
import { elicit } from './messages.ts'

/**
 * The host that a page belongs to, port included; undefined for what may not be opened: only https, or http on this machine, and no
 * user name, behind which the host could hide.
 */
export function pageHost(address: string): string | undefined {
  const url = URL.parse(address)
  if (url === null || url.username !== '' || url.password !== '') return undefined
  const { protocol, host, hostname } = url
  const local = hostname === 'localhost' || hostname === '127.0.0.1' || hostname === '[::1]'
  return protocol === 'https:' || (protocol === 'http:' && local) ? host : undefined
}

/** Fields of a form that ask for a password, key or token, by their name, title or format. Such things belong on a page. */
export function secretFields(schema: Params): readonly string[] {
  const fields = isRecord(schema['properties']) ? schema['properties'] : {}
  return Object.entries(fields).flatMap(([name, field]) => {
    if (!isRecord(field) || field['type'] !== 'string') return []
    const title = typeof field['title'] === 'string' ? field['title'].trim() : ''
    return field['format'] === 'password' || isSecretName(name) || isSecretName(title) ? [name] : []
  })
}

/** The most pages whose end is waited for; then the oldest is forgotten. */
const mostAwaited = 1_000

/** Pages of one connection that somebody was sent to: the server may say once of each that it has done its work. */
export class AwaitedPages {
  readonly #ids = new Set<string>()

  add(id: unknown): void {
    if (typeof id !== 'string') return
    this.#ids.add(id)
    const [oldest] = this.#ids
    if (this.#ids.size > mostAwaited && oldest !== undefined) this.#ids.delete(oldest)
  }

  /** False where nobody was sent there, or it was said before. */
  take(id: unknown): boolean {
    return this.#ids.delete(id as string)
  }
}

/** The error by which a call is refused until pages were visited (2025-11-25 client/elicitation). */
const pagesFirst = -32042
const mostPages = 16

/** The pages that a refusal names; undefined where it names none. */
export function pagesIn(error: unknown): readonly Params[] | undefined {
  if (!(error instanceof McpError) || error.code !== pagesFirst || !isRecord(error.data)) return undefined
  const { elicitations } = error.data
  if (!Array.isArray(elicitations) || elicitations.length === 0 || elicitations.length > mostPages) return undefined
  const pages = elicitations.filter(page => isRecord(page) && elicit.params.check({ ...page, mode: 'url' }) === undefined)
  return pages.length === elicitations.length ? pages : undefined
}
