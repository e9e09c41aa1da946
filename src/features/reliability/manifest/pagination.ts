/** A tool whose results come in pages: believed where its schemas have what that takes. */
import { checkOptions } from '../../../core/options.ts'
import { clip } from '../../../jsonrpc/limits.ts'
import { isRecord } from '../../../jsonrpc/message.ts'
import { manifestExtension } from './messages.ts'

/** The option of a tool. */
export interface Paginated {
  /** Its results come in pages: which argument says where one begins, and which member of the output where the next one does. */
  readonly pagination?: { readonly cursor: string; readonly next: string }
}

interface Schemas {
  readonly inputSchema: Readonly<Record<string, unknown>>
  readonly outputSchema?: Readonly<Record<string, unknown>>
}

/** What a list tells of it. Throws where the schemas know no such thing. */
export function paginationMeta(
  tool: string,
  { pagination }: Paginated,
  { inputSchema, outputSchema }: Schemas,
): Readonly<Record<string, unknown>> | undefined {
  if (pagination === undefined) return undefined
  const where = `The pagination of tool "${clip(tool)}"`
  checkOptions(where, pagination, { cursor: 'string', next: 'string' })
  const { cursor, next } = pagination
  if (!declares(inputSchema, cursor)) throw new TypeError(`${where}: its input has no "${clip(String(cursor))}"`)
  if (!declares(outputSchema, next)) throw new TypeError(`${where}: its output has no "${clip(String(next))}"`)
  return { [manifestExtension]: { supports_pagination: true } }
}

function declares(schema: Readonly<Record<string, unknown>> | undefined, member: string): boolean {
  const properties = schema?.['properties']
  return isRecord(properties) && Object.hasOwn(properties, member)
}
