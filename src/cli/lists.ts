/** What a server offers, list by list: one that cannot be had hides none of the others, and is told by its name. */
import type { Client, ConnectOptions, EventType, Prompt, Resource, ResourceTemplate, Tool } from '../client/index.ts'
import { declaredSettings } from '../engine/extensions.ts'
import { eventsExtension } from '../features/reliability/events/messages.ts'
import { McpError } from '../jsonrpc/error.ts'
import { isRecord } from '../jsonrpc/message.ts'
import { revisionById } from '../revisions/index.ts'
import { Interrupted } from './io.ts'
import { errorWords } from './server-errors.ts'

/** The lists that a server can have: by which method and capability (of events the extension), and how the client gets them. */
const lists = {
  tools: { method: 'tools/list', capability: 'tools', items: client => client.tools() },
  resources: { method: 'resources/list', capability: 'resources', items: client => client.resources() },
  templates: { method: 'resources/templates/list', capability: 'resources', items: client => client.resourceTemplates() },
  prompts: { method: 'prompts/list', capability: 'prompts', items: client => client.prompts() },
  events: { method: 'event/list', capability: 'events', items: eventsOf },
} as const satisfies Record<string, ListFacts>

/** What is known of a kind of list. */
interface ListFacts {
  readonly method: string
  readonly capability: string
  readonly items: (client: Client) => AsyncIterable<unknown>
}

/** The name of a list, as it is typed. */
export type ListKind = keyof typeof lists
/** The kinds of lists that a server can have. */
export const listKinds = Object.keys(lists) as readonly ListKind[]

/** What was found, by kind. A kind that the server does not offer is absent. */
export interface Lists {
  readonly tools?: readonly Tool[]
  readonly resources?: readonly Resource[]
  readonly templates?: readonly ResourceTemplate[]
  readonly prompts?: readonly Prompt[]
  readonly events?: readonly EventType[]
}

/** A list that could not be had, or not whole. */
export interface FailedList {
  readonly kind: ListKind
  /** Why, in a sentence. */
  readonly message: string
  /** The server declares it, and does not know the method: it has none. */
  readonly unknown: boolean
}

/** All that an iteration gives; lists of servers are bounded by the client. */
export async function gather<T>(items: AsyncIterable<T>): Promise<readonly T[]> {
  const all: T[] = []
  for await (const item of items) all.push(item)
  return all
}

/** Whether the server says that it has the list. */
function declares({ capabilities, revision }: Client, kind: ListKind): boolean {
  if (kind !== 'events') return capabilities[lists[kind].capability] !== undefined
  return declaredSettings({ capabilities, revision: revisionById(revision) }, eventsExtension) !== undefined
}

/** Hears from the client which lists the server has declared and does not know. */
export function missingLists(): { readonly missing: Set<string>; readonly onTrace: NonNullable<ConnectOptions['onTrace']> } {
  const missing = new Set<string>()
  return {
    missing,
    onTrace: (event, detail) => {
      if (event === 'list-missing' && isRecord(detail)) missing.add(String(detail['method']))
    },
  }
}

/**
 * Only what the server declares is asked for; but one kind alone is asked for in any case, and its refusal thrown. All are asked for
 * at once, so that one that is never answered costs its time only once. Throws where nothing at all could be had.
 */
export async function listsOf(
  client: Client,
  missing: ReadonlySet<string>,
  wanted: readonly ListKind[] = listKinds,
): Promise<{ readonly lists: Lists; readonly failed: readonly FailedList[] }> {
  const asks = wanted.filter(kind => wanted.length === 1 || declares(client, kind))
  const gathered = await Promise.all(
    asks.map(async kind => {
      const { items, error } = await gatherPartly(lists[kind].items(client))
      const unknown = missing.has(lists[kind].method) || isUnknownMethod(error, client)
      return { kind, items, error: unknown ? undefined : error, unknown }
    }),
  )
  const stopped = gathered.find(({ error }) => error instanceof Interrupted)
  if (stopped !== undefined) throw stopped.error
  const first = gathered.find(({ error }) => error !== undefined)
  if (first !== undefined && gathered.every(({ items, error }) => error !== undefined && items.length === 0)) throw first.error
  const had = gathered.filter(({ items, error }) => error === undefined || items.length > 0)
  const failed = gathered.flatMap(({ kind, error, unknown }): readonly FailedList[] => {
    if (error !== undefined) return [{ kind, message: errorWords(error), unknown: false }]
    if (!unknown) return []
    const { capability, method } = lists[kind]
    return [{ kind, message: `The server declares ${capability} but does not implement ${method}`, unknown: true }]
  })
  return { lists: Object.fromEntries(had.map(({ kind, items }) => [kind, items])), failed }
}

/** The client says so itself of the lists of the protocol, by `missing`. */
function isUnknownMethod(error: unknown, { revision }: Client): boolean {
  return error instanceof McpError && error.code === revisionById(revision).errors['method-not-found']
}

/** The types of events as an iteration, like the other lists. */
async function* eventsOf(client: Client): AsyncIterable<EventType> {
  yield* await client.eventTypes()
}

/** All that an iteration gives until it ends or fails, and why. Lists of servers are bounded by the client. */
async function gatherPartly(
  list: AsyncIterable<unknown>,
): Promise<{ readonly items: readonly unknown[]; readonly error: unknown }> {
  const items: unknown[] = []
  try {
    for await (const item of list) items.push(item)
    return { items, error: undefined }
  } catch (error) {
    return { items, error }
  }
}
