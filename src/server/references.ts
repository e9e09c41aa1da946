/** The references of a server: where contents lie, where they are served, and the way to those of others. Without the option there are none. */
import { checkOptions, type KindsOf } from '../core/options.ts'
import type { Engine } from '../engine/engine.ts'
import type { Exchange } from '../engine/exchange.ts'
import { type ContentBlock, wholeBlock } from '../features/mcp/content/messages.ts'
import {
  type Imported,
  type ImportOptions,
  type ReferenceOptions,
  type ReferencesOptions,
  type ReferencesParts,
  type ReferencesServer,
  referencesServer,
} from '../features/reliability/data-references/server.ts'
import { clip } from '../jsonrpc/limits.ts'
import type { Downloads } from '../transports/http/document.ts'
import type { ServerOptions } from './options.ts'

/** What a reference can be made of. A file by its path; what comes in pieces is never held whole. */
export type ReferenceSource =
  | string
  | Uint8Array
  | ReadableStream<Uint8Array>
  | AsyncIterable<Uint8Array>
  | Blob
  | { readonly file: string }

export interface ServerReferences {
  readonly server: ReferencesServer
  readonly downloads: Downloads
  /** Where it is reached by others, if the author said nothing else. */
  listens(url: string): void
}

const runtime = () => import('./reference-runtime.ts')

const kinds: KindsOf<ReferencesOptions> = {
  url: 'string',
  blobs: 'any',
  ttl: 'any',
  maxBytes: 'number',
  most: 'number',
  totalBytes: 'number',
  transfers: 'number',
  inlineBytes: 'number',
  from: 'list',
  allow: 'list',
}

type Parts = Pick<ReferencesParts, 'store' | 'seal' | 'clock' | 'trace' | 'grants' | 'admit'> & { readonly engine: () => Engine }

/** Undefined where none are wanted. */
export function serverReferences({ name, references }: ServerOptions, parts: Parts): ServerReferences | undefined {
  if (references === undefined || references === false) return undefined
  const { url, blobs, ...wanted } = checked(references)
  let listening: string | undefined
  let frameBytes: number | undefined
  const server = referencesServer({
    ...wanted,
    ...parts,
    server: name,
    blobs: async () => (await runtime()).blobsOf(blobs),
    url: () => url ?? listening,
    reach: async to => (await runtime()).reachOf(to, wanted.allow),
    get frameBytes() {
      frameBytes ??= parts.engine().limits.frameBytes
      return frameBytes
    },
  })
  return {
    server,
    downloads: { path: '/references/', open: server.serve },
    listens: where => {
      listening ??= where
    },
  }
}

/** What a handler does with references, or why it cannot. */
export async function makeReference(
  references: ServerReferences | undefined,
  exchange: Exchange,
  source: ReferenceSource,
  options: ReferenceOptions,
): Promise<ContentBlock> {
  const { server } = references ?? missing()
  const open = await (await runtime()).streamOf(source)
  // Returned alone it must not become text, for its address is nothing for models.
  return wholeBlock(await server.make(exchange, open, options))
}

export async function importReference(
  references: ServerReferences | undefined,
  exchange: Exchange,
  reference: unknown,
  options: ImportOptions,
): Promise<Imported> {
  return (references ?? missing()).server.take(exchange, reference, options)
}

function missing(): never {
  throw new TypeError('References are off. Turn them on with the option references: createServer({ …, references: true })')
}

function checked(references: true | ReferencesOptions): ReferencesOptions {
  if (references === true) return {}
  checkOptions('references', references, kinds)
  const { url, from = [], blobs } = references
  for (const each of [...from, ...(url === undefined ? [] : [url])])
    if (!(typeof each === 'string' && /^https?:\/\//.test(each) && URL.canParse(each)))
      throw new TypeError(`references: "${clip(String(each))}" is no http or https address`)
  if (blobs !== undefined && typeof blobs !== 'string' && typeof blobs.put !== 'function')
    throw new TypeError('references.blobs must be the path of a folder, or blobs: something with put, get, delete')
  return references
}
