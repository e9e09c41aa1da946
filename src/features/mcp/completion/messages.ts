/** Suggestions while an argument is being typed: for prompts and for the variables of resource templates. */
import { everyId, request } from '../../../engine/method.ts'
import { clip } from '../../../jsonrpc/limits.ts'
import { type Awaitable, isRecord } from '../../../jsonrpc/message.ts'
import { dictionary, object, optional, string, tagged } from '../../../jsonrpc/shape.ts'
import type { Revision, Wire } from '../../../revisions/index.ts'
import type { Reference } from '../authorization/messages.ts'
import { without } from '../content/messages.ts'

/** Proposed values for an argument. */
export interface Completion {
  /** The proposals, at most 100. */
  readonly values: readonly string[]
  /** How many proposals there are in total, if known. */
  readonly total?: number
  /** Whether there are more proposals than these. */
  readonly hasMore?: boolean
}

/** The result of `completion/complete`. */
export interface CompletionResult {
  readonly completion: Completion
}

/**
 * Proposes values for an argument. More than 100 are cut off, and the client gets their total.
 * @example (value, { arguments: { project } }) => branchesOf(project).filter((name) => name.startsWith(value))
 */
export type Completer<C = unknown> = (
  value: string,
  more: {
    /** The arguments that the user has already filled in. */
    readonly arguments: Readonly<Record<string, string>>
    /** The context of the call. */
    readonly ctx: C
  },
) => Awaitable<readonly string[] | Completion>

/** By argument; undefined for one that exists but has nobody to complete it. */
export type Completers<C = unknown> = ReadonlyMap<string, Completer<C> | undefined>

/** Throws unless all that shall suggest can be called. */
export function checkCompleters(where: string, completers: ReadonlyMap<string, unknown>): void {
  for (const [name, completer] of completers) {
    if (completer !== undefined && typeof completer !== 'function')
      throw new TypeError(`${where}: complete.${clip(name)} must be a function such as value => ['one', 'two']`)
  }
}

/** `completion/complete`: proposals for an argument of a prompt or a variable of a template. */
export const complete = request<CompletionResult>()({
  name: 'completion/complete',
  to: 'server',
  in: everyId,
  params: object({
    ref: tagged<Reference>('type', { 'ref/prompt': { name: string }, 'ref/resource': { uri: string } }),
    argument: object({ name: string, value: string }),
    context: optional(object({ arguments: optional(dictionary(string)) })),
  }),
  paramsDown: { '2025-03-26': plain },
  paramsUp: { '2025-03-26': plain },
})

/** The first wire has the method, but no capability to announce it by. */
export function completesUnannounced({ id }: Revision): boolean {
  return id === '2024-11-05'
}

/** Below 2025-06-18 a question stands alone, and what it refers to has no title. */
function plain(params: Wire): Wire {
  const { ref } = params
  return { ...without(params, 'context'), ref: isRecord(ref) ? without(ref, 'title') : ref }
}
