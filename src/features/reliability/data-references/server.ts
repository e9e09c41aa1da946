/**
 * Server side of data references: the option `references`, `ctx.reference`, `ctx.importReference` and `server.importer`. The runtime is
 * loaded on first use.
 */
import { type Duration, toMilliseconds } from '../../../core/clock.ts'
import type { UndoneParts } from '../../../core/journal/rollback.ts'
import { checkOptions, type KindsOf } from '../../../core/options.ts'
import { problem } from '../../../core/problem.ts'
import { jsonSchema } from '../../../core/schema/index.ts'
import { type CallContext, exchangeOf } from '../../../engine/context.ts'
import type { Exchange } from '../../../engine/exchange.ts'
import { extensionCapability } from '../../../engine/extensions.ts'
import { ownerOf } from '../../../engine/owner.ts'
import type { Side } from '../../../engine/plan.ts'
import { port } from '../../../engine/ports.ts'
import { defineServerFeature, provide, type ServerKit } from '../../../engine/server-feature.ts'
import { clip } from '../../../jsonrpc/limits.ts'
import { type Awaitable, given, isRecord } from '../../../jsonrpc/message.ts'
import type { Blobs } from '../../../stores/blobs.ts'
import { type ContentBlock, wholeBlock } from '../../mcp/content/messages.ts'
import { readResource, resourcesPort } from '../../mcp/resources/messages.ts'
import { type Reply, type ToolFacts, toolsPort } from '../../mcp/tools/messages.ts'
import { problemExtension } from '../problem/messages.ts'
import { transactionsPort } from '../transactions/messages.ts'
import type { Imported, ImportOptions } from './import.ts'
import {
  type DataReference,
  dataReferenceSchema,
  getReference,
  referenceScheme,
  referencesExtension,
  type WireImport,
} from './messages.ts'
import type { BackgroundImports, ImportWish } from './operations.ts'
import type { References } from './runtime.ts'

/** What a reference can be created from. `{ file }` is a path. Streams and iterables are never held in memory as a whole. */
export type ReferenceSource =
  | string
  | Uint8Array
  | ReadableStream<Uint8Array>
  | AsyncIterable<Uint8Array>
  | Blob
  | {
      /** The path of a file on this machine. */
      readonly file: string
    }

/** The options of `createServer` that this feature reads. */
export interface ReferencesServerOptions {
  /** Enables `ctx.reference` and `ctx.importReference`. Content is served next to the endpoint by signed URLs. Default: off. */
  readonly references?: boolean | ReferencesOptions
}

/** Imports of data references. */
export interface ImporterApi<C, O extends ImporterFacts> {
  /**
   * Adds the tool `import_from_ref`, by which clients hand over content of other servers by reference. The handler gets the
   * fetched and verified content, which is released afterwards.
   * @example server.importer({}, async data => ({ rows: await load(await data.open()) }))
   */
  importer(
    options: O,
    handler: ImportHandler<C>,
  ): {
    /** Removes the tool. */
    remove(): void
  }
}

/** Data references. */
export interface ReferencesContext {
  /**
   * Stores content and returns a content block that refers to it: clients fetch it by a signed URL instead of through the model.
   * Clients without references get small content inline, and larger content as a resource.
   * @example return ctx.reference({ file: path }, { mime: 'text/csv', name: 'sales.csv' })
   */
  reference(source: ReferenceSource, options?: ReferenceOptions): Promise<ContentBlock>
  /**
   * Fetches the content behind a reference of another server, from the origins in `references.from` only. Size and digest are
   * verified before it can be read.
   * @example
   * await using data = await ctx.importReference(reference)
   * for await (const chunk of await data.open()) hash.update(chunk)
   */
  importReference(reference: unknown, options?: ImportOptions): Promise<Imported>
}

/** Access to the runtime; missing if references are off. */
const referencesPort = port<{ load(): Promise<References> }>('references')

/** The server feature: `ctx.reference`, `ctx.importReference` and `server.importer`. */
export const referencesFeature = defineServerFeature<ReferencesServerOptions, ImporterApi<CallContext, ImporterFacts>>({
  name: 'data-references',
  options: { references: 'any' },
  context: {
    async reference(source, options = {}) {
      const exchange = exchangeOf(this)
      // Marked as a block, so that a sole return value is not converted to text: models must not see the signed URL.
      return wholeBlock(await (await runtimeOf(exchange)).make(exchange, source, options))
    },
    async importReference(reference, options = {}) {
      const exchange = exchangeOf(this)
      return (await runtimeOf(exchange)).take(exchange, reference, options)
    },
  } satisfies ReferencesContext & ThisType<CallContext>,
  setup: (kit, { references }) => {
    const importer: ImporterApi<CallContext, ImporterFacts>['importer'] = (options, handler) => addImporter(kit, options, handler)
    if (references === undefined || references === false) return { server: { importer } }
    const options = checked(references)
    let listening: string | undefined
    let loading: Promise<References> | undefined
    const open = async (): Promise<References> => {
      const blobs = import('./sources.ts').then(({ blobsOf }) => blobsOf(options.blobs))
      const [{ References }, store, opened] = await Promise.all([import('./runtime.ts'), kit.store(), blobs])
      return new References(kit, options, store, opened, () => options.url ?? listening)
    }
    const load = (): Promise<References> => {
      loading ??= open().catch(error => {
        loading = undefined
        throw error
      })
      return loading
    }
    // Revokes what a rolled-back step created.
    const revert = async (wrote: unknown): Promise<UndoneParts> =>
      isRecord(wrote) && wrote['references'] !== undefined ? (await load()).revert(wrote['references']) : { ops: [] }
    kit.port(transactionsPort).revertBy(revert)
    const side: Side = {
      handlers: [[getReference, async (exchange: Exchange) => (await load()).find(exchange, String(exchange.params['ref_id']))]],
      layers: [
        {
          stage: 'execute',
          methods: [readResource.name],
          when: ({ params }) => String(params['uri']).startsWith(referenceScheme),
          run: async exchange => (await load()).read(exchange, String(exchange.params['uri'])),
        },
      ],
      capabilities: revision => extensionCapability(revision, referencesExtension),
    }
    return {
      sides: [side],
      provides: provide(referencesPort, { load }),
      server: { importer },
      beside: { downloads: { path: '/references/', open: async asked => (await load()).serve(asked) } },
      // Listed as a resource template for clients without the extension; a layer answers the reads before this handler.
      installed: () => void kit.port(resourcesPort).add('ref:{id}', listedAs, () => undefined),
      listens: where => {
        listening ??= where
      },
      close: () => {
        loading?.then(runtime => runtime.close()).catch(() => {})
      },
    }
  },
})

const listedAs = { name: 'references', title: 'Data references', description: 'Contents that tools have returned by reference' }

function runtimeOf({ engine }: Exchange): Promise<References> {
  const found = engine.ports.find(referencesPort)
  if (found !== undefined) return found.load()
  throw new TypeError('References are turned off. Turn them on with createServer({ …, references: true })')
}

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

function checked(references: true | ReferencesOptions): ReferencesOptions {
  if (references === true) return {}
  checkOptions('references', references, kinds)
  const { url, from = [], blobs } = references
  for (const each of [...from, ...(url === undefined ? [] : [url])])
    if (!(typeof each === 'string' && /^https?:\/\//.test(each) && URL.canParse(each)))
      throw new TypeError(`references: "${clip(String(each))}" is not an http or https URL`)
  if (blobs !== undefined && typeof blobs !== 'string' && typeof blobs.put !== 'function')
    throw new TypeError('references.blobs must be the path of a folder, or an object with put, get and delete')
  return references
}

// The tool `import_from_ref`.

/** Options of the import tool. */
export interface ImporterFacts extends Omit<ToolFacts, 'input' | 'output'> {
  /** An import that takes longer is answered as pending, with an id. Default 20 s. */
  readonly pendingAfter?: Duration
}

/** What the handler returns about imported content. */
interface ImportedAs {
  /** The id of the content on this server. */
  readonly resourceId?: string
  /** How many rows were imported, if the content has rows. */
  readonly rows?: number
}

/** Takes over imported content, and may return facts about it for the caller. */
type ImportHandler<C> = (
  data: Imported,
  wish: {
    /** The format that the caller wants. Undefined if it names none. */
    readonly targetFormat: string | undefined
  },
  context: C,
) => Awaitable<ImportedAs | undefined>

interface Args {
  readonly reference?: DataReference
  readonly target_format?: string
  readonly operation_id?: string
}

/** The part of `ctx` that the tool uses. */
type ImportContext = CallContext & ReferencesContext & { progress(progress: number, more: { readonly total: number }): void }

const input = jsonSchema<Args>({
  type: 'object',
  properties: {
    reference: dataReferenceSchema,
    target_format: { type: 'string', description: 'The format to import the data as, if the tool offers a choice' },
    operation_id: { type: 'string', description: 'Instead of a reference: the id of a pending import, to get its status' },
  },
})

const output = jsonSchema<WireImport>({
  type: 'object',
  required: ['status'],
  properties: {
    status: { type: 'string', enum: ['imported', 'pending', 'failed'] },
    operation_id: { type: 'string' },
    imported_resource_id: { type: 'string' },
    rows_imported: { type: 'integer' },
    error: { type: 'object' },
  },
})

/** Offers the tool. */
function addImporter<C>(kit: ServerKit, { pendingAfter = '20s', ...options }: ImporterFacts, handler: ImportHandler<C>) {
  const pendingMs = toMilliseconds(pendingAfter, 'pendingAfter')
  let opening: Promise<BackgroundImports> | undefined
  const open = async (): Promise<BackgroundImports> => {
    const [{ BackgroundImports: Table }, store, runners] = await Promise.all([
      import('./operations.ts'),
      kit.store(),
      kit.runners(),
    ])
    return new Table({ store, runners, clock: kit.clock, pendingMs })
  }
  const description =
    'Imports data that another server has returned as a data reference. The servers transfer the data directly, not through this call.'
  const facts = { description, ...options, input, output }
  return kit
    .port(toolsPort)
    .add(
      'import_from_ref',
      facts,
      async ({ reference, target_format, operation_id }: Args, context: ImportContext): Promise<Reply> => {
        opening ??= open().catch(error => {
          opening = undefined
          throw error
        })
        const [operations, owner] = await Promise.all([opening, ownerOf(exchangeOf(context))])
        const work = (wish: ImportWish): Promise<WireImport> => imported(wish, handler as ImportHandler<never>, context)
        if (operation_id !== undefined) return told(kit, await operations.status(owner, operation_id, work))
        if (reference === undefined)
          throw problem('INVALID_INPUT', 'The call needs a reference, or the operation_id of a pending import')
        const wish = { reference, ...given({ target_format }) }
        return told(kit, await operations.run(owner, wish, work))
      },
    )
}

async function imported(
  { reference, target_format }: ImportWish,
  handler: ImportHandler<never>,
  context: ImportContext,
): Promise<WireImport> {
  let told = 0
  const progress = (bytes: number, total: number): void => {
    // At most 100 progress notifications, because their rate is limited.
    if (bytes < total && bytes - told < total / 100) return
    told = bytes
    context.progress(bytes, { total })
  }
  const data = await context.importReference(reference, { progress })
  try {
    const made = await handler(data, { targetFormat: target_format }, context as never)
    return { status: 'imported', ...given({ imported_resource_id: made?.resourceId, rows_imported: made?.rows }) }
  } finally {
    await data.release()
  }
}

function told(kit: ServerKit, result: WireImport): Reply {
  const { reply } = kit.port(toolsPort)
  if (result.status !== 'failed') return reply({ structured: result })
  return reply({ structured: result, isError: true, meta: { [problemExtension]: result.error } }, true)
}

export type { Imported } from './import.ts'

/** Options of data references. */
export interface ReferencesOptions {
  /** The public URL of this server's endpoint: `https://data.example/mcp`. Default: where it listens, on loopback. */
  readonly url?: string
  /** Where content is stored: a folder, or your own blob store. Default: in memory, 64 MiB in total. */
  readonly blobs?: string | Blobs
  /** The default lifetime of a reference. Default 15 minutes; at most 7 days. */
  readonly ttl?: Duration
  /** The largest content. Default 1 GiB. */
  readonly maxBytes?: number
  /** Total limit of references. Default 10,000. One caller may hold at most as many as are still free. */
  readonly most?: number
  /** Bytes of all contents, shared in the same way. Default 16 GiB; where they are kept in memory, 64 MiB. */
  readonly totalBytes?: number
  /** Limit of concurrent downloads. Default 64. */
  readonly transfers?: number
  /** For clients without the extension: up to this size content is inlined. Default 64 KiB. */
  readonly inlineBytes?: number
  /** The origins from which references may be imported: `https://data.example`. Default: none. */
  readonly from?: readonly string[]
  /** Private networks that imports may reach nevertheless: `10.1.0.0/16`. Default: none. */
  readonly allow?: readonly string[]
}

/** Options of one reference. */
export interface ReferenceOptions {
  /** The media type. Default `application/octet-stream`. */
  readonly mime?: string
  /** The name shown to people. Default `data`. */
  readonly name?: string
  /** A description in one sentence. Default: none. */
  readonly description?: string
  /** How long it can be read. Default: `ttl` of the references. */
  readonly ttl?: Duration
}
