/** The tools of a turn: those of all servers that are up, and the host's own, each under one name. */
import { toolSetOf } from '../../features/live/dialects/messages.ts'
import type { Tool } from '../../features/mcp/tools/messages.ts'
import { clip } from '../../jsonrpc/limits.ts'
import type { Params } from '../../jsonrpc/message.ts'
import type { ModelTool } from '../models/model.ts'
import { hostTools } from './host-tools.ts'
import type { LoopLimits } from './limits.ts'
import type { LoopServer } from './ports.ts'
import { nameTools } from './tool-names.ts'

export interface ToolEntry {
  readonly server: string
  readonly tool: string
  readonly featureSet: string | undefined
  readonly definition: Tool
}

export interface Toolbox {
  /** As the model is told of them. */
  readonly tools: readonly ModelTool[]
  /** Undefined: it is the host's, or there is none. */
  find(name: string): ToolEntry | undefined
}

/** Servers whose tools cannot be read are left out: one that is broken harms no other. */
export async function openToolbox(servers: readonly LoopServer[], limits: LoopLimits): Promise<Toolbox> {
  const lists = await Promise.all(
    servers.map(async (server): Promise<readonly ToolEntry[]> => {
      if (server.client === undefined) return []
      const listed = await server.tools().catch(() => [])
      return listed
        .filter(({ tool }) => !isOff(server, tool))
        .map(({ tool, featureSet }) => ({ server: server.name, tool: tool.name, featureSet, definition: tool }))
    }),
  )
  const own = hostTools.map(({ tool }) => tool)
  const named = nameTools(lists.flat().slice(0, limits.tools), new Set(own.map(({ name }) => name)))
  const known = new Map(named.map(({ name, of }) => [name, of]))
  return {
    tools: [...named.map(({ name, of }) => modelTool(name, of)), ...own],
    find: name => known.get(name),
  }
}

/** Whether a tool says of itself that it belongs to a feature set that is not enabled. What is only guessed does not count. */
export function isOff({ live }: LoopServer, tool: Tool): boolean {
  const featureSet = toolSetOf(tool as unknown as Params, new Map())
  return featureSet !== undefined && live?.featureSets.get(featureSet)?.enabled === false
}

function modelTool(name: string, { server, definition }: ToolEntry): ModelTool {
  const { description, title } = definition
  const said = description ?? title
  // From the server, hence told as such.
  return { name, description: clip(`[${server}] ${said ?? ''}`.trim(), 2_000), inputSchema: definition.inputSchema }
}
