/** What clients are told of a tool, made of what its server says and what the gateway adds. */
import { liveExtension } from '../features/live/feature-sets/messages.ts'
import type { TaskFacts } from '../features/mcp/tasks/messages.ts'
import type { TaskSupport, Tool, ToolAnnotations } from '../features/mcp/tools/messages.ts'
import { operationalExtension } from '../features/reliability/cost/messages.ts'
import { streamingExtension } from '../features/reliability/streaming/messages.ts'
import { transactionsExtension } from '../features/reliability/transactions/messages.ts'
import { definitionMeta } from './trust/foreign.ts'
import type { AddedOptions } from './trust/options.ts'

/** Whoever cannot wait for a task gets its result from the gateway, which can. Where the server decides, the gateway follows it. */
export function taskOf(support: TaskSupport | undefined, decides: boolean): TaskFacts | undefined {
  if (support === 'optional' || support === 'required') return { support: 'optional' }
  return decides ? { support: 'optional', deferred: true } : undefined
}

/** What the gateway says of a price stands for what its server says. */
export function shownMeta(tool: Tool, { cost, meta }: AddedOptions): Readonly<Record<string, unknown>> {
  const { [operationalExtension]: priced, ...rest } = definitionMeta(tool._meta) ?? {}
  return { ...rest, ...(cost === undefined && priced !== undefined && { [operationalExtension]: priced }), ...meta }
}

/** Where a rule says whether it may be done twice, that counts for whoever reads it. What may not is none that only reads. */
export function repeated(hints: ToolAnnotations | undefined, idempotent: boolean): ToolAnnotations {
  return { ...hints, idempotentHint: idempotent, ...(!idempotent && hints?.readOnlyHint === true && { readOnlyHint: false }) }
}

/** What a server says of a tool that only those can use who speak with it directly: it is not said of the gateway's. */
const direct: ReadonlySet<string> = new Set([transactionsExtension, streamingExtension, liveExtension])

export function crossing(meta: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  return Object.fromEntries(Object.entries(meta).filter(([key]) => !direct.has(key)))
}
