/** The runtime of data references: stores content in blobs and records in the store, signs URLs and serves downloads. */

import { isMime } from '../../../core/artifact.ts'
import { joinBytes, toBase64 } from '../../../core/base64.ts'
import { type Duration, endOfLife, toMilliseconds } from '../../../core/clock.ts'
import type { UndoneParts } from '../../../core/journal/rollback.ts'
import { problem } from '../../../core/problem.ts'
import type { Exchange } from '../../../engine/exchange.ts'
import { declaredSettings } from '../../../engine/extensions.ts'
import { accountOf, ownerOf } from '../../../engine/owner.ts'
import type { ExtraRoutes, ServerKit } from '../../../engine/server-feature.ts'
import { McpError } from '../../../jsonrpc/error.ts'
import { clip } from '../../../jsonrpc/limits.ts'
import type { BlobDraft, Blobs } from '../../../stores/blobs.ts'
import { type Store, StoreError } from '../../../stores/store.ts'
import { admission } from '../../mcp/authorization/messages.ts'
import { noCache } from '../../mcp/caching/messages.ts'
import type { ContentBlock, ResourceContents, ResourceLink } from '../../mcp/content/messages.ts'
import type { ReadResourceResult } from '../../mcp/resources/messages.ts'
import { permissionsPort } from '../permissions/messages.ts'
import { unitStep } from '../transactions/messages.ts'
import { type Imported, Importer, type ImportOptions, newDraft } from './import.ts'
import { Ledger, type StoredContent } from './ledger.ts'
import { type DataReference, referenceScheme, referencesExtension, wireReference } from './messages.ts'
import type { ReferenceOptions, ReferenceSource, ReferencesOptions } from './server.ts'
import { streamOf } from './sources.ts'

/** What references are made of: the server's kit, the options with defaults applied, and the stores, opened. */
export interface ReferencesParts extends ServerKit {
  readonly settings: ReferencesOptions & { readonly maxBytes: number }
  readonly opened: Store
  readonly blobs: Blobs
  /** The public URL; undefined if the server is not reachable. */
  readonly url: () => string | undefined
}

type Downloads = NonNullable<ExtraRoutes['downloads']>
/** A request for a download; `name`: the id in the path. */
type ReferenceRequest = Parameters<Downloads['open']>[0]
/** The response to it. Call `over` when the body is no longer read, for whatever reason. */
type DownloadResponse = Awaited<ReturnType<Downloads['open']>>

/** The longest lifetime; as long as usual for presigned URLs. */
const longestMs = 7 * 86_400_000
const defaultTotal = 16 * 1024 ** 3
const kind = 'reference/1'

/** Creates, serves and imports references on one server. */
export class References {
  readonly #parts: ReferencesParts
  readonly #ledger: Ledger
  readonly #importer: Importer
  /** References created by steps of transactions, which are rolled back together. */
  readonly #given = new WeakMap<Exchange, readonly string[]>()
  #reading = 0

  constructor(kit: ServerKit, options: ReferencesOptions, opened: Store, blobs: Blobs, url: () => string | undefined) {
    const { clock, trace } = kit
    const { most = 10_000, maxBytes = 1024 ** 3, totalBytes = blobs.capacity ?? defaultTotal } = options
    const parts: ReferencesParts = { ...kit, settings: { ...options, maxBytes }, opened, blobs, url }
    this.#parts = parts
    const beside = (): Promise<boolean> => this.#importer.sweep()
    this.#ledger = new Ledger({ store: opened, blobs, clock, trace, most, bytes: totalBytes, beside })
    this.#importer = new Importer({ ...parts, ledger: this.#ledger })
  }

  /** Stores content and returns the block that refers to it. */
  async make(
    exchange: Exchange,
    source: ReferenceSource,
    { mime = 'application/octet-stream', name = 'data', description, ttl }: ReferenceOptions,
  ): Promise<ContentBlock> {
    const open = await streamOf(source)
    if (!isMime(mime)) throw new TypeError(`"${clip(mime)}" is not a media type. Write type/subtype, such as text/plain`)
    const ttlMs = this.#ttl(ttl)
    await this.#parts.port(permissionsPort).admit(exchange)
    const account = await accountOf(exchange)
    const left = await this.#ledger.left(account)
    const draft = await newDraft(this.#parts.blobs, this.#ledger)
    try {
      const blob = await this.#put(draft, open(), left)
      const admitted = exchange.get(admission)
      const stored: StoredContent = {
        id: crypto.randomUUID(),
        ...blob,
        mime,
        name,
        owner: await ownerOf(exchange),
        account,
        expires: this.#ends(exchange, ttlMs),
        ...(admitted === undefined ? {} : { grant: admitted.id, by: admitted.owner }),
      }
      await this.#keep(exchange, stored, draft)
      return await this.#shown(exchange, stored, description)
    } catch (error) {
      await draft.discard()
      throw error
    }
  }

  async take(exchange: Exchange, reference: unknown, options: ImportOptions): Promise<Imported> {
    const signal = options.signal ?? exchange.signal
    return this.#importer.take(await ownerOf(exchange), await accountOf(exchange), reference, { ...options, signal })
  }

  /** Serves a download. Every invalid URL gets the same answer. */
  async serve(asked: ReferenceRequest): Promise<DownloadResponse> {
    const { transfers = 64 } = this.#parts.settings
    const stored = await this.#opened(asked)
    if (stored === undefined) return forbidden()
    if (this.#reading >= transfers)
      return plain(503, 'Too many downloads are in progress. Retry in 1 second', ['retry-after', '1'])
    this.#reading++
    let reading = true
    const over = (): void => {
      if (reading) this.#reading--
      reading = false
    }
    const found = await content(this.#parts.blobs, stored, asked).catch(error => {
      over()
      throw error
    })
    // Refusals do not occupy a transfer slot.
    if (found === undefined || found.status === 416) over()
    return found === undefined ? forbidden() : { ...found, over }
  }

  /** For clients without the extension: the whole content, if it fits into a message. */
  async read(exchange: Exchange, uri: string): Promise<ReadResourceResult> {
    const stored = await this.#alive(uri.slice(referenceScheme.length))
    if (stored === undefined || stored.owner !== (await ownerOf(exchange)))
      throw new McpError('resource-not-found', `There is no resource "${clip(uri)}", or it has expired`, {
        data: { uri: clip(uri) },
      })
    // Base64 needs 4/3 of the size, and the message has other members.
    const most = Math.floor((this.#parts.limits.frameBytes - 4_096) * 0.7)
    if (stored.size > most)
      throw problem('PAYLOAD_TOO_LARGE', `The content has ${stored.size} bytes. At most ${most} bytes fit into a message`, {
        suggestion: `Use a client that supports ${referencesExtension}, and download the content from its access_url`,
      })
    return { contents: [await this.#contents(stored, uri)], ...noCache }
  }

  /** `references/get`: only for the owner. */
  async find(exchange: Exchange, given: string): Promise<DataReference> {
    const id = given.startsWith(referenceScheme) ? given.slice(referenceScheme.length) : given
    const stored = await this.#alive(id)
    if (stored === undefined || stored.owner !== (await ownerOf(exchange)))
      throw problem('RESOURCE_NOT_FOUND', `You have no reference "${clip(given)}", or it has expired`, {
        suggestion: 'Repeat the call that created it',
      })
    return this.#reference(stored, `${referenceScheme}${id}`)
  }

  /** Store operations that revoke the references of a rolled-back step. */
  async revert(ids: unknown): Promise<UndoneParts> {
    const list = Array.isArray(ids) ? ids.filter(id => typeof id === 'string') : []
    return { ops: list.flatMap(id => this.#ledger.undoing(id, longestMs)) }
  }

  close(): void {
    this.#ledger.close()
  }

  #ttl(given: Duration | undefined): number {
    const ms = toMilliseconds(given ?? this.#parts.settings.ttl ?? '15m', 'ttl')
    if (ms <= longestMs) return ms
    throw new RangeError('The ttl of a reference is longer than 7 days (the limit). Create a new reference when it is needed')
  }

  /** A reference ends no later than the grant and the token of its caller. */
  #ends(exchange: Exchange, ttlMs: number): number {
    return endOfLife(this.#parts.clock.now(), ttlMs, exchange.get(admission)?.expires, exchange.caller.principal?.expiresAt)
  }

  async #put(draft: BlobDraft, source: ReadableStream<Uint8Array>, left: number): Promise<{ digest: string; size: number }> {
    const { maxBytes } = this.#parts.settings
    try {
      return await draft.append(source, { bytes: Math.min(maxBytes, left) })
    } catch (error) {
      if (!(error instanceof StoreError) || error.kind !== 'full') throw error
      if (left < maxBytes) throw this.#ledger.full(`${left} bytes are left`)
      throw problem('PAYLOAD_TOO_LARGE', error.message, {
        suggestion: 'Store less at once. The operator can raise references.maxBytes or set a folder in references.blobs',
        actor: 'operator',
        cause: error,
      })
    }
  }

  async #keep(exchange: Exchange, stored: StoredContent, draft: BlobDraft): Promise<void> {
    const step = exchange.get(unitStep)
    if (step !== undefined) {
      const ids = [...(this.#given.get(exchange) ?? []), stored.id]
      this.#given.set(exchange, ids)
      await step.wrote({ references: ids })
    }
    await this.#ledger.add(stored, () => draft.publish())
  }

  // Small content is inlined for clients without the extension.
  async #shown(exchange: Exchange, stored: StoredContent, description: string | undefined): Promise<ContentBlock> {
    const { inlineBytes = 65_536 } = this.#parts.settings
    const uri = `${referenceScheme}${stored.id}`
    const knows = declaredSettings(exchange.peer, referencesExtension) !== undefined
    if (!knows && stored.size <= inlineBytes) return { type: 'resource', resource: await this.#contents(stored, uri) }
    const { mime: mimeType, size, name } = stored
    const link: ResourceLink = { type: 'resource_link', uri, name, mimeType, size, ...(description && { description }) }
    return knows ? { ...link, _meta: { [referencesExtension]: await this.#reference(stored, uri) } } : link
  }

  async #reference(stored: StoredContent, uri: string): Promise<DataReference> {
    const { name: server, seal, url } = this.#parts
    const { id, expires } = stored
    const base = url()?.replace(/\/$/, '')
    const sealed = { kind, audience: server, bound: signedPath('GET', id), expiresAt: expires, data: id }
    const address = base && `${base}/references/${id}?signature=${await seal.seal(sealed)}`
    const { mime, size, digest } = stored
    return wireReference({ by: 'reference', id, origin: server, mime, size, digest, expires, uri: address ?? uri })
  }

  async #contents(stored: StoredContent, uri: string): Promise<ResourceContents> {
    const found = await this.#parts.blobs.get(stored.digest)
    if (found === undefined) throw problem('RESOURCE_NOT_FOUND', 'The content of the reference no longer exists')
    return contentsOf(found.stream, stored, uri)
  }

  async #opened({ method, name, query }: ReferenceRequest): Promise<StoredContent | undefined> {
    const { seal, name: server } = this.#parts
    const purpose = { kind, audience: server, bound: signedPath(method, name) }
    const id = await seal.open(query.get('signature') ?? '', purpose).catch(() => undefined)
    return id === name ? this.#alive(name) : undefined
  }

  /** The reference, if it and its grant still exist. */
  async #alive(id: string): Promise<StoredContent | undefined> {
    const stored = await this.#ledger.find(id)
    if (stored?.grant === undefined || stored.by === undefined) return stored
    return (await (await this.#parts.grants()).find(stored.by, stored.grant)) === undefined ? undefined : stored
  }
}

// HTTP responses for signed URLs.

/** What a signature covers, in an unambiguous form. */
function signedPath(method: string, id: string): string {
  return JSON.stringify([method, `/references/${id}`])
}

const forbidden = (): DownloadResponse => plain(403, 'This address is not valid or has expired')

/** Undefined if the content is gone. */
async function content(blobs: Blobs, stored: StoredContent, { header }: ReferenceRequest): Promise<DownloadResponse | undefined> {
  const etag = `"${stored.digest}"`
  // `If-Range` with another ETag: send the whole content.
  const same = header('if-range') === undefined || header('if-range') === etag
  const part = same ? partOf(header('range'), stored.size) : undefined
  if (part === 'none')
    return plain(416, 'The requested range is outside the content', ['content-range', `bytes */${stored.size}`])
  const found = await blobs.get(stored.digest, part ?? {}).catch(() => undefined)
  if (found === undefined) return undefined
  const { start, end } = part ?? { start: 0, end: stored.size }
  const range = part === undefined ? [] : ['content-range', `bytes ${start}-${end - 1}/${stored.size}`]
  const headers = ['content-length', `${end - start}`, 'etag', etag, ...range, ...factsOf(stored)]
  return { status: part === undefined ? 200 : 206, headers, body: found.stream }
}

function factsOf({ mime, digest, name }: StoredContent): string[] {
  const bytes = (digest.slice('sha256:'.length).match(/../g) ?? []).map(pair => Number.parseInt(pair, 16))
  return [
    'content-type',
    mime,
    'accept-ranges',
    'bytes',
    // RFC 9530: the digest of the whole content, even for a part.
    'repr-digest',
    `sha-256=:${toBase64(new Uint8Array(bytes))}:`,
    'content-disposition',
    `attachment; filename*=UTF-8''${encodeURIComponent(name.toWellFormed()).replace(/['()*]/g, each => `%${each.charCodeAt(0).toString(16)}`)}`,
    ...closed,
  ]
}

/** Prevents browsers from rendering or caching somebody's data. */
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

function plain(status: number, text: string, more: readonly string[] = []): DownloadResponse {
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

/** The whole content as resource contents; as text if it is valid UTF-8 of a text type. */
async function contentsOf(stream: ReadableStream<Uint8Array>, { mime }: StoredContent, uri: string): Promise<ResourceContents> {
  const chunks: Uint8Array[] = []
  for await (const chunk of stream) chunks.push(chunk)
  const bytes = joinBytes(chunks)
  try {
    if (texts.test(mime)) return { uri, mimeType: mime, text: new TextDecoder('utf-8', { fatal: true }).decode(bytes) }
  } catch {
    // Declared as text, but not valid UTF-8.
  }
  return { uri, mimeType: mime, blob: toBase64(bytes) }
}

/** One range of a `Range` header (RFC 9110 §14); `end` is exclusive. */
interface Part {
  readonly start: number
  readonly end: number
}

/** Undefined: send everything (no, several or invalid ranges). `none`: not satisfiable. */
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
