/** The tool `import_from_ref`: takes over what another server has given by reference, and says what became of it. */
import type { Clock } from '../core/clock.ts'
import { type Duration, toMilliseconds } from '../core/duration.ts'
import type { Runners } from '../core/journal/runners.ts'
import { problem } from '../core/problem.ts'
import { jsonSchema } from '../core/schema/index.ts'
import { type Reply, RuntimeReply, reply } from '../features/mcp/tools/result.ts'
import type { ToolFacts } from '../features/mcp/tools/server.ts'
import {
  type DataReference,
  dataReferenceSchema,
  importResultSchema,
  importTool,
  type WireImport,
} from '../features/reliability/data-references/messages.ts'
import type { ImportWish, Operations } from '../features/reliability/data-references/operations.ts'
import type { Imported } from '../features/reliability/data-references/server.ts'
import { problemExtension } from '../features/reliability/problem/messages.ts'
import type { Awaitable } from '../jsonrpc/message.ts'
import type { Store } from '../stores/store.ts'
import type { Context } from './context.ts'
import type { ReliableFacts } from './reliability.ts'

export interface ImporterOptions extends ReliableFacts, Omit<ToolFacts, 'input' | 'output'> {
  /** An import that takes longer is answered as pending, with the id to ask about it by. Default 20 s. */
  readonly pendingAfter?: Duration
}

/** What became of a content. */
export interface ImportedAs {
  /** What it is called here. */
  readonly resourceId?: string
  readonly rows?: number
}

export type ImportHandler = (
  data: Imported,
  wish: { readonly targetFormat: string | undefined },
  context: Context,
) => Awaitable<ImportedAs | undefined>

interface Args {
  readonly reference?: DataReference
  readonly target_format?: string
  readonly operation_id?: string
}

export interface ImporterParts {
  readonly store: () => Promise<Store>
  readonly runners: () => Promise<Runners>
  readonly clock: Clock
  /** Whose call it is. */
  readonly owner: (context: Context) => Promise<string>
}

export const importerName = importTool

const input = jsonSchema<Args>({
  type: 'object',
  properties: {
    reference: dataReferenceSchema,
    target_format: { type: 'string', description: 'What to make of it, where there is a choice' },
    operation_id: { type: 'string', description: 'Instead of a reference: how an import that was pending stands' },
  },
})

/** The facts and the handler of the tool. */
export function importerOf(parts: ImporterParts, { pendingAfter = '20s', ...options }: ImporterOptions, handler: ImportHandler) {
  const pendingMs = toMilliseconds(pendingAfter, 'pendingAfter')
  let opening: Promise<Operations> | undefined
  const open = async (): Promise<Operations> => {
    const [{ Operations: Table }, store, runners] = await Promise.all([
      import('../features/reliability/data-references/operations.ts'),
      parts.store(),
      parts.runners(),
    ])
    return new Table({ store, runners, clock: parts.clock, pendingMs })
  }
  const description = 'Imports what another server has returned as a data reference. The data does not pass through this call.'
  return {
    facts: { description, ...options, input, output: jsonSchema<WireImport>(importResultSchema) },
    handler: async ({ reference, target_format, operation_id }: Args, context: Context): Promise<Reply> => {
      opening ??= open().catch(error => {
        opening = undefined
        throw error
      })
      const [operations, owner] = await Promise.all([opening, parts.owner(context)])
      const work = (wish: ImportWish): Promise<WireImport> => imported(wish, handler, context)
      if (operation_id !== undefined) return told(await operations.status(owner, operation_id, work))
      if (reference === undefined) throw problem('INVALID_INPUT', 'Give a reference, or the operation_id of a pending import')
      const wish = { reference, ...(target_format === undefined ? {} : { target_format }) }
      return told(await operations.run(owner, wish, work))
    },
  }
}

async function imported({ reference, target_format }: ImportWish, handler: ImportHandler, context: Context): Promise<WireImport> {
  let told = 0
  const progress = (bytes: number, total: number): void => {
    // Callers have better uses for the rate at which they may be told something.
    if (bytes < total && bytes - told < total / 100) return
    told = bytes
    context.progress(bytes, { total })
  }
  const data = await context.importReference(reference, { progress })
  try {
    const made = await handler(data, { targetFormat: target_format }, context)
    const as = made?.resourceId === undefined ? {} : { imported_resource_id: made.resourceId }
    return { status: 'imported', ...as, ...(made?.rows === undefined ? {} : { rows_imported: made.rows }) }
  } finally {
    await data.release()
  }
}

function told(result: WireImport): Reply {
  if (result.status !== 'failed') return reply({ structured: result })
  return new RuntimeReply({ structured: result, isError: true, meta: { [problemExtension]: result.error } })
}
