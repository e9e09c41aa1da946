/** Contents by reference, for handlers and for whoever has a signed address. What keeps them is loaded when first used. */
import type { Clock, Duration } from '../../../core/clock.ts'
import type { Grants } from '../../../core/grant/grants.ts'
import type { Seal } from '../../../core/handle.ts'
import type { UndoneParts } from '../../../core/journal/rollback.ts'
import type { Trace } from '../../../core/log.ts'
import type { Outbound } from '../../../core/outbound.ts'
import type { Exchange } from '../../../engine/exchange.ts'
import { declaration } from '../../../engine/extensions.ts'
import type { Side } from '../../../engine/plan.ts'
import { isRecord } from '../../../jsonrpc/message.ts'
import type { Blobs } from '../../../stores/blobs.ts'
import type { Store } from '../../../stores/store.ts'
import type { ContentBlock } from '../../mcp/content/messages.ts'
import { readResource } from '../../mcp/resources/messages.ts'
import { getReference, referenceScheme, referencesExtension } from './messages.ts'
import type { Imported, ImportOptions, References } from './runtime.ts'

export type { Imported, ImportOptions } from './runtime.ts'

/** How data references are offered and kept. */
export interface ReferencesOptions {
  /** The address of this server's endpoint as others reach it: `https://data.example/mcp`. Default: where it listens, on loopback. */
  readonly url?: string
  /** Where contents are kept: a folder, or blobs of your own. Default: in memory, 64 MiB in all. */
  readonly blobs?: string | Blobs
  /** How long a reference is good, unless it says otherwise. Default 15 minutes; at most 7 days. */
  readonly ttl?: Duration
  /** The largest content that is given or imported. Default 1 GiB. */
  readonly maxBytes?: number
  /** How many references there may be at once, in all. Default 10,000. One caller may hold as many as are still free. */
  readonly most?: number
  /** Bytes of all contents, shared in the same way. Default 16 GiB; where they are kept in memory, 64 MiB. */
  readonly totalBytes?: number
  /** How many may be read at the same time. Default 64. */
  readonly transfers?: number
  /** For clients that know no references: up to here a content is given whole. Default 64 KiB. */
  readonly inlineBytes?: number
  /** The servers whose references may be imported, by origin: `https://data.example`. Default: none. */
  readonly from?: readonly string[]
  /** Special addresses that may be meant by them all the same, such as a company's own network: `10.1.0.0/16`. */
  readonly allow?: readonly string[]
}

export interface ReferenceOptions {
  /** Default `application/octet-stream`. */
  readonly mime?: string
  /** What it is called, for people. Default `data`. */
  readonly name?: string
  /** What the data is, in a sentence. */
  readonly description?: string
  /** How long it can be read. */
  readonly ttl?: Duration
}

export interface ReferencesParts extends Omit<ReferencesOptions, 'blobs' | 'url'> {
  readonly server: string
  readonly store: () => Promise<Store>
  readonly blobs: () => Promise<Blobs>
  readonly seal: Seal
  readonly clock: Clock
  readonly trace: Trace
  readonly grants: () => Promise<Grants>
  /** Finds the grant that a call presents, where nothing has looked for it yet. */
  readonly admit: (exchange: Exchange) => Promise<void>
  /** The endpoint as others reach it; undefined where nobody does. */
  readonly url: () => string | undefined
  /** The way to one origin, for streams. */
  readonly reach: (origin: URL) => Promise<Outbound>
  /** The longest message, which a content that is read whole has to fit in. */
  readonly frameBytes: number
}

/** A request for a content, by its address alone. */
export interface ReferenceRequest {
  readonly method: string
  readonly name: string
  readonly query: URLSearchParams
  header(name: string): string | undefined
}

export interface Served {
  readonly status: number
  /** Flat: names and values. */
  readonly headers: string[]
  readonly body: ReadableStream<Uint8Array> | undefined
  /** To be called once nothing of it is read any more, however that came. */
  over?(): void
}

export interface ReferencesServer {
  readonly side: Side
  make(exchange: Exchange, source: () => ReadableStream<Uint8Array>, options: ReferenceOptions): Promise<ContentBlock>
  /** Takes over what another server has given. */
  take(exchange: Exchange, reference: unknown, options: ImportOptions): Promise<Imported>
  serve(asked: ReferenceRequest): Promise<Served>
  /** How what a step of a unit of work gave away is taken back. */
  revert(wrote: unknown): Promise<UndoneParts>
  close(): void
}

export function referencesServer(parts: ReferencesParts): ReferencesServer {
  let runtime: Promise<References> | undefined
  const load = (): Promise<References> => {
    runtime ??= Promise.all([import('./runtime.ts'), parts.store(), parts.blobs()])
      .then(([{ References }, store, blobs]) => new References({ ...parts, opened: store, blobs }))
      .catch(error => {
        runtime = undefined
        throw error
      })
    return runtime
  }
  return {
    make: async (exchange, source, options) => (await load()).make(exchange, source, options),
    take: async (exchange, reference, options) => (await load()).take(exchange, reference, options),
    serve: async asked => (await load()).serve(asked),
    revert: async wrote =>
      isRecord(wrote) && wrote['references'] !== undefined ? (await load()).revert(wrote['references']) : { ops: [] },
    close: () => {
      runtime?.then(
        loaded => loaded.close(),
        () => undefined,
      )
    },
    side: {
      handlers: [[getReference, async (exchange: Exchange) => (await load()).find(exchange, String(exchange.params['ref_id']))]],
      layers: [
        {
          stage: 'execute',
          methods: [readResource.name],
          when: ({ params }) => String(params['uri']).startsWith(referenceScheme),
          run: async exchange => (await load()).read(exchange, String(exchange.params['uri'])),
        },
      ],
      capabilities: revision => declaration(revision, referencesExtension),
    },
  }
}
