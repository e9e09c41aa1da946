/** What one upstream offers, as it was last listed. */
import type { Client } from '../../client/client.ts'
import type { Prompt } from '../../features/mcp/prompts/messages.ts'
import type { Resource, ResourceTemplate } from '../../features/mcp/resources/messages.ts'
import { tasksExtension } from '../../features/mcp/tasks/messages.ts'
import type { Tool } from '../../features/mcp/tools/messages.ts'
import { isRecord } from '../../jsonrpc/message.ts'

export interface Offer {
  readonly tools: readonly Tool[]
  readonly resources: readonly Resource[]
  readonly templates: readonly ResourceTemplate[]
  readonly prompts: readonly Prompt[]
  /** It suggests values of arguments. */
  readonly completes: boolean
  /** It may answer any call with a task. */
  readonly tasks: boolean
}

export const nothing: Offer = { tools: [], resources: [], templates: [], prompts: [], completes: false, tasks: false }

/** A list that cannot be read is told and counts as empty: the others are of use all the same. */
export async function readOffer(
  client: Client,
  tools: () => Promise<readonly Tool[]>,
  failed: (list: string, error: unknown) => void,
): Promise<Offer> {
  const { capabilities, revision } = client
  const has = (name: string): boolean => isRecord(capabilities[name]) || revision === 's3'
  const list = <T>(name: string, read: () => Promise<readonly T[]>): Promise<readonly T[]> =>
    read().catch(error => {
      failed(name, error)
      return []
    })
  const [offered, resources, templates, prompts] = await Promise.all([
    has('tools') ? list('tools', tools) : [],
    has('resources') ? list('resources', () => gathered(client.resources())) : [],
    has('resources') ? list('resource templates', () => gathered(client.resourceTemplates())) : [],
    has('prompts') ? list('prompts', () => gathered(client.prompts())) : [],
  ])
  // The first wire has the method and no word for it.
  const completes = isRecord(capabilities['completions']) || revision === '2024-11-05'
  const extensions = capabilities['extensions']
  const tasks = isRecord(extensions) && isRecord(extensions[tasksExtension])
  return { tools: offered, resources, templates, prompts, completes, tasks }
}

async function gathered<T>(items: AsyncIterable<T>): Promise<readonly T[]> {
  const all: T[] = []
  for await (const item of items) all.push(item)
  return all
}
