/** The tool `import_from_ref`: takes over what another server has given by reference, and says what became of it. */
import { type Duration, toMilliseconds } from '../../../core/duration.ts'
import { problem } from '../../../core/problem.ts'
import { jsonSchema } from '../../../core/schema/index.ts'
import { type CallContext, exchangeOf } from '../../../engine/context.ts'
import { ownerOf } from '../../../engine/owner.ts'
import type { ServerKit } from '../../../engine/server-feature.ts'
import type { Awaitable } from '../../../jsonrpc/message.ts'
import { type Reply, type ToolFacts, toolsPort } from '../../mcp/tools/messages.ts'
import { problemExtension } from '../problem/messages.ts'
import type { ReferencesContext } from './context.ts'
import { type DataReference, dataReferenceSchema, importResultSchema, type WireImport } from './messages.ts'
import type { ImportWish, Operations } from './operations.ts'
import type { Imported } from './server.ts'

/** What an author says of the tool, beside what other features let him say of one. */
export interface ImporterFacts extends Omit<ToolFacts, 'input' | 'output'> {
  /** An import that takes longer is answered as pending, with the id to ask about it by. Default 20 s. */
  readonly pendingAfter?: Duration
}

/** What became of a content. */
export interface ImportedAs {
  /** What it is called here. */
  readonly resourceId?: string
  readonly rows?: number
}

export type ImportHandler<C> = (
  data: Imported,
  wish: { readonly targetFormat: string | undefined },
  context: C,
) => Awaitable<ImportedAs | undefined>

interface Args {
  readonly reference?: DataReference
  readonly target_format?: string
  readonly operation_id?: string
}

/** As much of the context as it needs itself. */
type ImportContext = CallContext & ReferencesContext & { progress(progress: number, more: { readonly total: number }): void }

const input = jsonSchema<Args>({
  type: 'object',
  properties: {
    reference: dataReferenceSchema,
    target_format: { type: 'string', description: 'What to make of it, where there is a choice' },
    operation_id: { type: 'string', description: 'Instead of a reference: how an import that was pending stands' },
  },
})

/** The facts and the handler of the tool. */
export function importerOf<C>(kit: ServerKit, { pendingAfter = '20s', ...options }: ImporterFacts, handler: ImportHandler<C>) {
  const pendingMs = toMilliseconds(pendingAfter, 'pendingAfter')
  let opening: Promise<Operations> | undefined
  const open = async (): Promise<Operations> => {
    const [{ Operations: Table }, store, runners] = await Promise.all([import('./operations.ts'), kit.store(), kit.runners()])
    return new Table({ store, runners, clock: kit.clock, pendingMs })
  }
  const description = 'Imports what another server has returned as a data reference. The data does not pass through this call.'
  return {
    facts: { description, ...options, input, output: jsonSchema<WireImport>(importResultSchema) },
    handler: async ({ reference, target_format, operation_id }: Args, context: ImportContext): Promise<Reply> => {
      opening ??= open().catch(error => {
        opening = undefined
        throw error
      })
      const [operations, owner] = await Promise.all([opening, ownerOf(exchangeOf(context))])
      const work = (wish: ImportWish): Promise<WireImport> => imported(wish, handler as ImportHandler<never>, context)
      if (operation_id !== undefined) return told(kit, await operations.status(owner, operation_id, work))
      if (reference === undefined) throw problem('INVALID_INPUT', 'Give a reference, or the operation_id of a pending import')
      const wish = { reference, ...(target_format === undefined ? {} : { target_format }) }
      return told(kit, await operations.run(owner, wish, work))
    },
  }
}

async function imported(
  { reference, target_format }: ImportWish,
  handler: ImportHandler<never>,
  context: ImportContext,
): Promise<WireImport> {
  let told = 0
  const progress = (bytes: number, total: number): void => {
    // Callers have better uses for the rate at which they may be told something.
    if (bytes < total && bytes - told < total / 100) return
    told = bytes
    context.progress(bytes, { total })
  }
  const data = await context.importReference(reference, { progress })
  try {
    const made = await handler(data, { targetFormat: target_format }, context as never)
    const as = made?.resourceId === undefined ? {} : { imported_resource_id: made.resourceId }
    return { status: 'imported', ...as, ...(made?.rows === undefined ? {} : { rows_imported: made.rows }) }
  } finally {
    await data.release()
  }
}

function told(kit: ServerKit, result: WireImport): Reply {
  const { reply } = kit.port(toolsPort)
  if (result.status !== 'failed') return reply({ structured: result })
  return reply({ structured: result, isError: true, meta: { [problemExtension]: result.error } }, true)
}
