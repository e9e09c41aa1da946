/** The host's own tools: reading on in long results, and reading what servers offer as resources. */
import { problem } from '../../core/problem.ts'
import type { LiveBlock } from '../../features/live/content/messages.ts'
import type { ResourceContents } from '../../features/mcp/content/messages.ts'
import { clip } from '../../jsonrpc/limits.ts'
import { messageOf, type Store } from '../../stores/store.ts'
import type { BegunBy } from '../begun-by.ts'
import type { ModelTool } from '../models/model.ts'
import { fairLists } from '../servers/tool-list.ts'
import { contentsBlock, own, text } from './blocks.ts'
import type { LoopLimits } from './limits.ts'
import { permit } from './permit.ts'
import type { LoopPolicy, LoopServer } from './ports.ts'
import { publishHostTool } from './publish-tool.ts'
import { readResult } from './results.ts'

export interface HostToolContext {
  readonly store: Store
  readonly conversation: string
  readonly begunBy: BegunBy
  readonly limits: LoopLimits
  readonly policy: LoopPolicy
  readonly servers: readonly LoopServer[]
  /** Told of the rule that allows what the policy was asked about. */
  readonly permitted: (rule: string | undefined) => void
  readonly signal: AbortSignal
}

export interface HostTool {
  readonly tool: ModelTool
  /** Whether there is something that it could be used for. Default: always. */
  shown?(servers: readonly LoopServer[]): boolean
  run(args: Readonly<Record<string, unknown>>, context: HostToolContext): Promise<readonly LiveBlock[]>
}

/** Entries that one list of resources shows. */
const listed = 200

const readResultTool: HostTool = {
  tool: {
    name: 'read_result',
    description: 'Reads on in the result of an earlier tool call that was too long to be shown whole.',
    inputSchema: {
      type: 'object',
      properties: {
        id: { type: 'string', description: 'The id that the shortened result names' },
        offset: { type: 'integer', minimum: 0, description: 'The character to begin at' },
        length: { type: 'integer', minimum: 1, description: 'How many characters' },
      },
      required: ['id'],
    },
  },
  run: async (args, { store, conversation, limits }) => {
    const id = textArgument(args, 'id')
    const offset = countArgument(args, 'offset', 0)
    const length = Math.min(countArgument(args, 'length', limits.resultLength), limits.resultLength)
    const found = await readResult(store, conversation, id, offset, length)
    if (found === undefined) throw problem('RESOURCE_NOT_FOUND', `There is no kept result ${clip(id)} in this conversation`)
    const rest = found.end < found.of ? `[characters ${offset} to ${found.end} of ${found.of}]` : '[the end]'
    return [text(found.text), own(rest)]
  },
}

const listResourcesTool: HostTool = {
  tool: {
    name: 'list_resources',
    description: 'Lists the resources that servers offer: documents, records and files that read_resource can read.',
    inputSchema: { type: 'object', properties: { server: { type: 'string', description: 'Only those of this server' } } },
  },
  run: async (args, { servers, signal }) => {
    const only = args['server']
    const asked = servers.filter(({ name }) => typeof only !== 'string' || only === name)
    const lists = fairLists(await Promise.all(asked.map(server => resourceLines(server, signal))), listed)
    const lines = lists.flat()
    return [lines.length === 0 ? own('There are no resources.') : text(lines.join('\n'))]
  },
}

async function resourceLines({ name, client }: LoopServer, signal: AbortSignal): Promise<readonly string[]> {
  if (client?.capabilities['resources'] === undefined) return []
  const lines: string[] = []
  try {
    for await (const { uri, name: label, description } of client.resources({ signal })) {
      if (lines.length >= listed) break
      const about = description === undefined ? '' : `: ${clip(description, 200)}`
      lines.push(`${clip(name)}: ${clip(uri, 300)} (${clip(label)}${about})`)
    }
  } catch (error) {
    signal.throwIfAborted()
    lines.push(`${clip(name)}: its resources cannot be listed (${clip(messageOf(error), 200)})`)
  }
  return lines
}

const readResourceTool: HostTool = {
  tool: {
    name: 'read_resource',
    description: 'Reads a resource of a server.',
    inputSchema: {
      type: 'object',
      properties: { server: { type: 'string' }, uri: { type: 'string' } },
      required: ['server', 'uri'],
    },
  },
  run: async (args, { servers, policy, begunBy, conversation, permitted, signal }) => {
    const [name, uri] = [textArgument(args, 'server'), textArgument(args, 'uri')]
    const turn = { begunBy, conversation }
    await permit(permitted, policy, {
      kind: 'tool',
      server: name,
      tool: 'resources/read',
      payload: { uri },
      readOnly: true,
      ...turn,
    })
    return (await readContents(servers, name, uri, signal)).map(contentsBlock)
  },
}

export const hostTools: readonly HostTool[] = [readResultTool, listResourcesTool, readResourceTool, publishHostTool]

export function hostTool(name: string): HostTool | undefined {
  return hostTools.find(({ tool }) => tool.name === name)
}

export async function readContents(
  servers: readonly LoopServer[],
  name: string,
  uri: string,
  signal: AbortSignal | undefined,
): Promise<readonly ResourceContents[]> {
  const server = servers.find(one => one.name === name)
  if (server?.client === undefined)
    throw problem('SERVER_UNAVAILABLE', `The server ${clip(name)} is ${server === undefined ? 'not known' : 'down'}`, {
      suggestion: `There are ${servers.map(one => one.name).join(', ') || 'none'}`,
    })
  const { contents } = await server.client.readResource(uri, signal === undefined ? {} : { signal })
  return contents
}

function textArgument(args: Readonly<Record<string, unknown>>, name: string): string {
  const value = args[name]
  if (typeof value === 'string' && value !== '') return value
  throw problem('INVALID_INPUT', `${name} must be a text`, { suggestion: `Give ${name}` })
}

function countArgument(args: Readonly<Record<string, unknown>>, name: string, standard: number): number {
  const value = args[name] ?? standard
  if (typeof value === 'number' && Number.isSafeInteger(value) && value >= 0) return value
  throw problem('INVALID_INPUT', `${name} must be a whole number of at least 0`)
}
