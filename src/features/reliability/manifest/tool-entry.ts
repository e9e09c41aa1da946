/**
 * A tool as the manifest shows it, and back. Whoever has something to say of a tool says it in the tool's `_meta` under its own
 * extension, by the manifest's names: so the manifest knows no other feature, and a client can read as much from a plain list.
 */
import { NS } from '../../../engine/method.ts'
import { isRecord } from '../../../jsonrpc/message.ts'
import type { Shape } from '../../../jsonrpc/shape.ts'
import type { Tool, ToolAnnotations } from '../../mcp/tools/messages.ts'
import { manifestExtension, type WireManifestTool } from './messages.ts'
import { toolFacts } from './shape.ts'

type Members = Readonly<Record<string, unknown>>

const prefix = `${NS}/`
const facts: ReadonlyMap<string, Shape<unknown>> = new Map(Object.entries(toolFacts))
/** What an entry says by itself, whatever stands in `_meta`. */
const own: ReadonlySet<string> = new Set(['name', 'description', 'input_schema', 'output_schema'])
const common = /^[a-z][a-z0-9_]*$/

/** `shown`: the same tool as a wire has it, whose schemas count. `more`: what is known of it elsewhere. */
export function entryOf(tool: Tool, shown: Tool = tool, more: Members = {}): WireManifestTool {
  const { name, description = '', annotations, execution } = tool
  const { inputSchema, outputSchema } = shown
  const said = saidOf(tool._meta)
  const risk = said['risk_level'] === undefined ? riskOf(annotations, said['compensation']) : undefined
  return {
    name,
    description,
    input_schema: inputSchema,
    ...(outputSchema === undefined ? {} : { output_schema: outputSchema }),
    ...(annotations?.idempotentHint === undefined ? {} : { idempotent: annotations.idempotentHint }),
    ...(risk === undefined ? {} : { risk_level: risk }),
    ...(execution === undefined ? {} : { task_support: execution.taskSupport }),
    ...more,
    ...said,
    ...(common.test(name) ? {} : { nonconforming_name: true }),
  }
}

/** The members of the manifest in all that extensions say of a tool. What is of another type than it must be is not said. */
function saidOf(meta: Members | undefined): Members {
  const said: Record<string, unknown> = {}
  for (const [extension, members] of Object.entries(meta ?? {})) {
    if (!extension.startsWith(prefix) || !isRecord(members)) continue
    for (const [name, value] of Object.entries(members)) {
      const shape = facts.get(name)
      if (shape === undefined ? extension === manifestExtension && !own.has(name) : shape.check(value) === undefined)
        said[name] = value
    }
  }
  return said
}

function riskOf(annotations: ToolAnnotations | undefined, compensation: unknown): WireManifestTool['risk_level'] {
  if (compensation !== undefined) return 'reversible'
  if (annotations?.readOnlyHint === true) return 'safe'
  return annotations?.destructiveHint === true ? 'destructive' : undefined
}

/** By name: the extension that says it. What nobody owns stays with the manifest's own. */
const owners: ReadonlyMap<string, string> = new Map([
  ...['cost', 'latency'].map(name => [name, `${NS}/operational`] as const),
  ...['input_types', 'output_types', 'max_input_size_bytes'].map(name => [name, `${NS}/media`] as const),
  ...['requires_confirmation', 'confirmation_message', 'risk_level'].map(name => [name, `${NS}/confirmation`] as const),
  ['required_scopes', `${NS}/permissions`],
  ['supports_streaming', `${NS}/streaming`],
  ['compensation', `${NS}/transactions`],
])

/** The tool that an entry shows, as a list would have it. */
export function toolOf(entry: WireManifestTool): Tool {
  const { name, description, input_schema, output_schema, idempotent, task_support, nonconforming_name, ...rest } = entry
  const meta: Record<string, Record<string, unknown>> = {}
  for (const [member, value] of Object.entries(rest)) {
    const owner = owners.get(member) ?? manifestExtension
    meta[owner] = { ...meta[owner], [member]: value }
  }
  return {
    name,
    description,
    inputSchema: input_schema,
    ...(output_schema === undefined ? {} : { outputSchema: output_schema }),
    ...(idempotent === undefined ? {} : { annotations: { idempotentHint: idempotent } }),
    ...(task_support === undefined ? {} : { execution: { taskSupport: task_support } }),
    ...(Object.keys(meta).length === 0 ? {} : { _meta: meta }),
  }
}
