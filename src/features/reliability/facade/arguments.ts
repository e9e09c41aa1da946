/**
 * Arguments beside a tool's own, for callers that have no other place for them. A tool that has an argument of that name keeps it: then
 * the name means what the tool says, and nothing else.
 */
import { problem } from '../../../core/problem.ts'
import { isRecord, type Params } from '../../../jsonrpc/message.ts'
import type { Tool } from '../../mcp/tools/messages.ts'
import { idempotencyExtension, keyPattern } from '../idempotency/messages.ts'
import { permissionsExtension } from '../permissions/messages.ts'
import { idPattern, transactionsExtension } from '../transactions/messages.ts'
import type { FacadePart } from './messages.ts'

/** What of a tool decides which of them it gets. */
export interface DressedTool {
  readonly tool: Tool
  readonly facts: { readonly scopes?: unknown; readonly scopesFor?: unknown }
}

export interface FacadeArgument {
  readonly name: string
  readonly part: FacadePart
  /** Where it belongs: the member of that name under this key of `_meta`. */
  readonly extension: string
  readonly schema: Readonly<Record<string, unknown>>
  suits(tool: DressedTool): boolean
}

const changes = ({ tool }: DressedTool): boolean => tool.annotations?.readOnlyHint !== true

export const facadeArguments: readonly FacadeArgument[] = [
  {
    name: 'transaction_id',
    part: 'transactions',
    extension: transactionsExtension,
    schema: {
      type: 'string',
      pattern: idPattern.source,
      description: 'The transaction that this call takes part in, if any: what begin_transaction gave',
    },
    suits: changes,
  },
  {
    name: 'idempotency_key',
    part: 'idempotency',
    extension: idempotencyExtension,
    schema: {
      type: 'string',
      pattern: keyPattern.source,
      description:
        'Names this one operation. Give the same key again only to repeat it after its answer was lost: then it is not done twice',
    },
    suits: changes,
  },
  {
    name: 'session_token',
    part: 'permissions',
    extension: permissionsExtension,
    schema: { type: 'string', description: 'The session.token that negotiate_scopes gave, if any' },
    suits: ({ facts }) => facts.scopes !== undefined || facts.scopesFor !== undefined,
  },
]

/** Words of a schema by which it may speak of arguments without naming them. */
const unnaming = ['patternProperties', 'propertyNames', 'unevaluatedProperties']

/** Whether an argument of that name may be the tool's own: it is named somewhere, or the tool takes whatever it is given. */
export function isOwn(schema: Readonly<Record<string, unknown>>, name: string): boolean {
  const { properties, additionalProperties: others } = schema
  if (others === undefined ? properties === undefined : others !== false) return true
  return unnaming.some(word => word in schema) || JSON.stringify(schema).includes(JSON.stringify(name))
}

/** The tool with these arguments beside its own. */
export function dressed(tool: Tool, more: readonly FacadeArgument[]): Tool {
  const { inputSchema } = tool
  const own = isRecord(inputSchema['properties']) ? inputSchema['properties'] : {}
  const properties = { ...own, ...Object.fromEntries(more.map(({ name, schema }) => [name, schema])) }
  return { ...tool, inputSchema: { ...inputSchema, properties } }
}

/** The params with those arguments where they belong. Throws where they are no text, or `_meta` says something else. */
export function moved(params: Params, meta: Params | undefined, more: readonly FacadeArgument[]): Params {
  const args = { ...(params['arguments'] as Params) }
  const said: Record<string, unknown> = { ...meta }
  for (const { name, extension } of more) {
    if (!Object.hasOwn(args, name)) continue
    const value = args[name]
    delete args[name]
    const there = Object.hasOwn(said, extension) ? said[extension] : {}
    const other = isRecord(there) ? there[name] : there
    if (typeof value !== 'string') throw problem('INVALID_INPUT', `${name} must be a string`)
    if (!isRecord(there) || (other !== undefined && other !== value))
      throw problem('INVALID_INPUT', `${name} and params._meta["${extension}"] say different things: say it in one place`)
    said[extension] = { ...there, [name]: value }
  }
  return { ...params, arguments: args, _meta: said }
}
