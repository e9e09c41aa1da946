/** What one upstream offers: reading its lists, comparing them with the previous ones, and reporting what is left out. */
import { Client } from '../../client/client.ts'
import { quoted, type Why, why } from '../../core/suggestion.ts'
import { declaredSettings } from '../../engine/extensions.ts'
import { completesUnannounced } from '../../features/mcp/completion/messages.ts'
import type { Prompt } from '../../features/mcp/prompts/messages.ts'
import type { Resource, ResourceTemplate } from '../../features/mcp/resources/messages.ts'
import { tasksExtension } from '../../features/mcp/tasks/messages.ts'
import type { Tool } from '../../features/mcp/tools/messages.ts'
import { confirmationExtension } from '../../features/reliability/confirmation/messages.ts'
import { operationalExtension } from '../../features/reliability/cost/messages.ts'
import { referencesExtension } from '../../features/reliability/data-references/messages.ts'
import { idempotencyExtension } from '../../features/reliability/idempotency/messages.ts'
import { mediaExtension } from '../../features/reliability/media/messages.ts'
import { problemExtension } from '../../features/reliability/problem/messages.ts'
import { provenanceExtension } from '../../features/reliability/provenance/messages.ts'
import { stateExtension } from '../../features/reliability/session-state/messages.ts'
import { clip } from '../../jsonrpc/limits.ts'
import { isRecord } from '../../jsonrpc/message.ts'
import type { Capabilities } from '../../revisions/index.ts'

/** The lists and abilities of one upstream. */
export interface Offer {
  readonly tools: readonly Tool[]
  readonly resources: readonly Resource[]
  readonly templates: readonly ResourceTemplate[]
  readonly prompts: readonly Prompt[]
  /** It completes arguments. */
  readonly completes: boolean
  /** It may answer any call with a task. */
  readonly tasks: boolean
  /** It keeps session state. */
  readonly stateful: boolean
  /** Extensions that only work on a direct connection. */
  readonly direct: readonly string[]
  /** Lists that could not be read completely. */
  readonly unread: readonly Unread[]
}

/** An incomplete list, and why. */
interface Unread {
  readonly list: string
  /** The reason. */
  readonly said: string
  /** The list could not be read at all. */
  readonly whole?: true
}

/** The offer of an upstream that was never listed. */
export const emptyOffer: Offer = {
  tools: [],
  resources: [],
  templates: [],
  prompts: [],
  completes: false,
  tasks: false,
  stateful: false,
  direct: [],
  unread: [],
}

/** Reads all lists. One that fails is reported and counts as empty, so that the others are still usable. */
export async function readOffer(
  client: Client,
  tools: () => Promise<readonly Tool[]>,
  failed: (list: string, error: unknown) => void,
): Promise<Offer> {
  const { capabilities } = client
  const { session } = Client.caller(client)
  const { revision } = session.opened
  // Without detailed capabilities every list is tried.
  const has = (name: string): boolean => isRecord(capabilities[name]) || !revision.detailedCapabilities
  const unread: Unread[] = []
  const list = async <T>(name: string, key: keyof T, read: () => Promise<readonly T[]>): Promise<readonly T[]> => {
    try {
      const all = await read()
      const fit = all.filter(item => isNamed(item, key))
      if (fit.length < all.length) unread.push({ list: name, said: `${all.length - fit.length} without ${String(key)}` })
      return fit
    } catch (error) {
      failed(name, error)
      unread.push({ list: name, said: clip(error instanceof Error ? error.message : String(error), 300), whole: true })
      return []
    }
  }
  const [offered, resources, templates, prompts] = await Promise.all([
    has('tools') ? list('tools', 'name', tools) : [],
    has('resources') ? list('resources', 'uri', () => gathered(client.resources())) : [],
    has('resources') ? list(listNames.templates, 'uriTemplate', () => gathered(client.resourceTemplates())) : [],
    has('prompts') ? list('prompts', 'name', () => gathered(client.prompts())) : [],
  ])
  const completes = isRecord(capabilities['completions']) || completesUnannounced(revision)
  const { peer } = session.opened.conversation
  const tasks = isRecord(capabilities['extensions']) && isRecord(capabilities['extensions'][tasksExtension])
  const stateful = peer !== undefined && declaredSettings(peer, stateExtension) !== undefined
  const direct = directIn(capabilities)
  return { tools: offered, resources, templates, prompts, completes, tasks, stateful, direct, unread }
}

/** Extensions that the gateway passes on or implements itself. */
const crossing: ReadonlySet<string> = new Set([
  tasksExtension,
  confirmationExtension,
  idempotencyExtension,
  mediaExtension,
  operationalExtension,
  problemExtension,
  provenanceExtension,
  referencesExtension,
  stateExtension,
])
/** Extensions that are named in the report. */
const mostNamed = 20

/** The upstream's extensions that the gateway does not carry. */
function directIn(capabilities: Capabilities): readonly string[] {
  const { extensions, experimental } = capabilities
  const ids = [extensions, experimental].flatMap(place => (isRecord(place) ? Object.keys(place) : []))
  return [...new Set(ids)].filter(id => !crossing.has(id)).slice(0, mostNamed)
}

/** Whether an item has a name; without one it cannot be used. */
function isNamed(item: unknown, key: PropertyKey): boolean {
  if (!isRecord(item)) return false
  const name = item[String(key)]
  return typeof name === 'string' && name !== ''
}

async function gathered<T>(items: AsyncIterable<T>): Promise<readonly T[]> {
  const all: T[] = []
  for await (const item of items) all.push(item)
  return all
}

/** What the lists are called in reports. */
const listNames = { tools: 'tools', resources: 'resources', templates: 'resource templates', prompts: 'prompts' } as const

/**
 * The new offer, with the old objects for items that did not change: the catalog compares by identity. A list that could not be read stays
 * the previous one, so that its names stay reserved.
 */
export function laidOver(before: Offer, now: Offer): Offer {
  const failed = new Set(now.unread.flatMap(({ list, whole }) => (whole === true ? [list] : [])))
  const laid = <T>(list: keyof typeof listNames, old: readonly T[], items: readonly T[]): readonly T[] => {
    if (failed.has(listNames[list])) return old
    const texts = new Map(old.map(item => [JSON.stringify(item), item]))
    return items.map(item => texts.get(JSON.stringify(item)) ?? item)
  }
  return {
    ...now,
    tools: laid('tools', before.tools, now.tools),
    resources: laid('resources', before.resources, now.resources),
    templates: laid('templates', before.templates, now.templates),
    prompts: laid('prompts', before.prompts, now.prompts),
  }
}

/** What of an upstream is not offered, and why. */
export function omittedFrom(upstream: string, { unread, direct }: Offer): readonly Why[] {
  const lists = unread.map(({ list, said }) =>
    why(
      'LIST_NOT_READ',
      'gateway.lists',
      `Listing the ${list} of ${quoted(upstream)} failed in part, and the missing ones are not offered: ${said}`,
      'Correct it at its server, or raise connect.limits of its entry if a limit was reached. Everything else of the server is offered',
    ),
  )
  if (direct.length === 0) return lists
  const named = direct.map(id => clip(id)).join(', ')
  const fix = 'Clients that need them must connect to the server directly. Its tools, resources and prompts are offered'
  return [
    ...lists,
    why(
      'NOT_CARRIED',
      'gateway.extensions',
      `The gateway does not forward these extensions of ${quoted(upstream)}: ${named}`,
      fix,
    ),
  ]
}
