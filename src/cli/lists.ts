/** What a server offers, list by list: one that cannot be had hides none of the others, and is told by its name. */
import type { Client, ConnectOptions, Prompt, Resource, ResourceTemplate, Tool } from '../client/index.ts'
import { isRecord } from '../jsonrpc/message.ts'
import { errorWords } from './failures.ts'
import { Interrupted } from './io.ts'

export const kinds = ['tools', 'resources', 'templates', 'prompts'] as const
export type Kind = (typeof kinds)[number]

/** What was found, by kind. A kind that the server does not offer is absent. */
export interface Lists {
  readonly tools?: readonly Tool[]
  readonly resources?: readonly Resource[]
  readonly templates?: readonly ResourceTemplate[]
  readonly prompts?: readonly Prompt[]
}

/** A list that could not be had, or not whole. */
export interface FailedList {
  readonly kind: Kind
  readonly message: string
  /** The server declares it, and does not know the method: it has none. */
  readonly unknown: boolean
}

export interface Listed {
  readonly lists: Lists
  readonly failed: readonly FailedList[]
}

const method: Readonly<Record<Kind, string>> = {
  tools: 'tools/list',
  resources: 'resources/list',
  templates: 'resources/templates/list',
  prompts: 'prompts/list',
}

/** Which capability stands for which list. */
const capability: Readonly<Record<Kind, string>> = {
  tools: 'tools',
  resources: 'resources',
  templates: 'resources',
  prompts: 'prompts',
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
export async function listsOf(client: Client, missing: ReadonlySet<string>, wanted: readonly Kind[] = kinds): Promise<Listed> {
  const asks = wanted.filter(kind => wanted.length === 1 || client.capabilities[capability[kind]] !== undefined)
  const gathered = await Promise.all(asks.map(async kind => ({ kind, ...(await gather<unknown>(listOf(client, kind))) })))
  const stopped = gathered.find(({ error }) => error instanceof Interrupted)
  if (stopped !== undefined) throw stopped.error
  const first = gathered.find(({ error }) => error !== undefined)
  if (first !== undefined && gathered.every(({ items, error }) => error !== undefined && items.length === 0)) throw first.error
  const lists = Object.fromEntries(
    gathered.filter(({ items, error }) => error === undefined || items.length > 0).map(({ kind, items }) => [kind, items]),
  )
  const failed = gathered.flatMap(({ kind, error }): readonly FailedList[] => {
    if (error !== undefined) return [{ kind, message: errorWords(error), unknown: false }]
    if (!missing.has(method[kind])) return []
    return [{ kind, message: `The server declares ${capability[kind]} and does not know ${method[kind]}`, unknown: true }]
  })
  return { lists, failed }
}

function listOf(client: Client, kind: Kind): AsyncIterable<unknown> {
  switch (kind) {
    case 'tools':
      return client.tools()
    case 'resources':
      return client.resources()
    case 'templates':
      return client.resourceTemplates()
    case 'prompts':
      return client.prompts()
  }
}

interface Gathered<T> {
  readonly items: readonly T[]
  /** Why there are no more, or none. */
  readonly error: unknown
}

/** All that an iteration gives until it ends or fails. Lists of servers are bounded by the client. */
async function gather<T>(list: AsyncIterable<T>): Promise<Gathered<T>> {
  const items: T[] = []
  try {
    for await (const item of list) items.push(item)
    return { items, error: undefined }
  } catch (error) {
    return { items, error }
  }
}
