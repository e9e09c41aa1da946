/** The tools of a turn: those of all servers that are up, and the host's own, each under one name. */
import { toolSetOf } from '../../features/live/dialects/messages.ts'
import type { Tool } from '../../features/mcp/tools/messages.ts'
import { clip } from '../../jsonrpc/limits.ts'
import type { Params } from '../../jsonrpc/message.ts'
import type { ModelTool } from '../models/model.ts'
import { toolFromServer } from './foreign.ts'
import { hostTools } from './host-tools.ts'
import type { LoopLimits } from './limits.ts'
import type { LoopServer } from './ports.ts'
import type { ToolNames } from './tool-names.ts'

export interface ToolEntry {
  readonly server: string
  readonly tool: string
  readonly featureSet: string | undefined
  /** As the config says, where it does. */
  readonly assigned: string | undefined
  /** Whose state goes along, where it is only guessed. */
  readonly stateSet: string | undefined
  readonly definition: Tool
}

export interface Toolbox {
  /** As the model is told of them. */
  readonly tools: readonly ModelTool[]
  /** Undefined: it is the host's, or there is none. */
  find(name: string): ToolEntry | undefined
  /** A tool of this very server, whatever the model calls it. */
  of(server: string, tool: string): ToolEntry | undefined
}

/** Servers whose tools cannot be read are left out: one that is broken harms no other. */
export async function openToolbox(servers: readonly LoopServer[], limits: LoopLimits, names: ToolNames): Promise<Toolbox> {
  const lists = await Promise.all(
    servers.map(async (server): Promise<readonly ToolEntry[]> => {
      if (server.client === undefined) return []
      const listed = await server.tools().catch(() => [])
      return listed
        .map(({ tool, featureSet, assigned, stateSet }) => {
          return { server: server.name, tool: tool.name, featureSet, assigned, stateSet, definition: tool }
        })
        .filter(entry => !isOff(server, entry))
    }),
  )
  const offered = lists.flat().slice(0, limits.tools)
  const given = await names.of(offered)
  const known = new Map<string, ToolEntry>()
  for (const entry of offered) {
    const name = given.get(entry.server)?.get(entry.tool)
    // Of two tools of one name that one server lists, only the first can be meant by it.
    if (name !== undefined && !known.has(name)) known.set(name, entry)
  }
  return {
    tools: [
      ...[...known].map(([name, entry]) => modelTool(name, entry)),
      ...hostTools.filter(({ shown }) => shown?.(servers) ?? true).map(({ tool }) => tool),
    ],
    find: name => known.get(name),
    of: (server, tool) => offered.find(entry => entry.server === server && entry.tool === tool),
  }
}

/** Whether a tool says, or is said in the config, to belong to a feature set that is not enabled. What is only guessed does not count. */
export function isOff({ live }: LoopServer, { definition, assigned }: Pick<ToolEntry, 'definition' | 'assigned'>): boolean {
  const said = [toolSetOf(definition as unknown as Params, new Map()), assigned]
  return said.some(name => name !== undefined && live?.featureSets.get(name)?.enabled === false)
}

function modelTool(name: string, { server, definition }: ToolEntry): ModelTool {
  const { description, title } = definition
  const said = clip(description ?? title ?? '', 2_000)
  return toolFromServer(name, server, { description: said, inputSchema: definition.inputSchema })
}
