/** The tools of a turn: those of all connected servers and the host's own, each under a unique name that is remembered in the store. */

import { hash } from 'node:crypto'
import { digest } from '../../core/digest.ts'
import { type Why, why } from '../../core/suggestion.ts'
import { toolSetOf } from '../../features/live/dialects/messages.ts'
import type { Tool } from '../../features/mcp/tools/messages.ts'
import { clip } from '../../jsonrpc/limits.ts'
import type { Params } from '../../jsonrpc/message.ts'
import type { Asked } from '../../policy/rules/rule.ts'
import { entriesUnder, type Op, put, remove, type Store } from '../../stores/store.ts'
import type { ModelTool } from '../models/model.ts'
import { quoteTool } from '../models/quoted.ts'
import { assignNames, type Names } from '../servers/names.ts'
import type { CallParts } from './calls.ts'
import type { PlannedCall } from './conversation-log.ts'
import { hostTools } from './host-tools.ts'
import type { LoopLimits } from './limits.ts'
import type { LoopServer } from './ports.ts'

/** A server's tool that is offered to the model. */
export interface ToolboxEntry {
  readonly server: string
  readonly tool: string
  /** The feature set that it belongs to, if any. */
  readonly featureSet: string | undefined
  /** The feature set that the config assigns. */
  readonly assigned: string | undefined
  /** The feature set whose state is sent, where it is only guessed. */
  readonly stateSet: string | undefined
  readonly definition: Tool
}

/** The tools of one turn, by the names that the model sees. */
export interface Toolbox {
  /** Definitions for the model. */
  readonly tools: readonly ModelTool[]
  /** A server's tool by the model's name; undefined for host tools and unknown names. */
  find(name: string): ToolboxEntry | undefined
  /** A tool by server and own name. */
  of(server: string, tool: string): ToolboxEntry | undefined
}

/** Collects the tools. Servers whose tools cannot be listed are left out. */
export async function openToolbox(servers: readonly LoopServer[], limits: LoopLimits, names: ToolNames): Promise<Toolbox> {
  const lists = await Promise.all(
    servers.map(async (server): Promise<readonly ToolboxEntry[]> => {
      if (server.client === undefined) return []
      const listed = await server.tools().catch(() => [])
      return listed
        .map(({ tool, featureSet, assigned, stateSet }) => {
          return { server: server.name, tool: tool.name, featureSet, assigned, stateSet, definition: tool }
        })
        .filter(entry => !isToolDisabled(server, entry))
    }),
  )
  const offered = lists.flat().slice(0, limits.tools)
  const given = await names.of(offered)
  const known = new Map<string, ToolboxEntry>()
  for (const entry of offered) {
    const name = given.get(entry.server)?.get(entry.tool)
    // A server that lists a name twice gets only the first.
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

/** Whether a tool's declared or configured feature set is disabled. A guessed one does not count. */
export function isToolDisabled(
  { live }: LoopServer,
  { definition, assigned }: Pick<ToolboxEntry, 'definition' | 'assigned'>,
): boolean {
  const said = [toolSetOf(definition as unknown as Params, new Map()), assigned]
  return said.some(name => name !== undefined && live?.featureSets.get(name)?.enabled === false)
}

/** The definition for the model; the server's description is quoted. */
function modelTool(name: string, { server, definition }: ToolboxEntry): ModelTool {
  const { description, title } = definition
  const said = clip(description ?? title ?? '', 2_000)
  return quoteTool(name, server, { description: said, inputSchema: definition.inputSchema })
}

/** Whether a tool declares that it changes nothing. Pinning makes this stable: a changed definition is held until approved. */
export function isReadOnly({ annotations }: Tool): boolean {
  return annotations?.readOnlyHint === true && annotations.destructiveHint !== true
}

/** A tool call as a request to the policy. */
export async function toolRequest(call: PlannedCall, server: string, tool: Tool, turn: CallParts): Promise<Asked> {
  const { begunBy, conversation, inferenceId } = turn
  return {
    ...{ kind: 'tool', server, tool: call.tool },
    ...(call.featureSet !== undefined && { featureSet: call.featureSet }),
    payload: call.arguments,
    definition: await definitionOf(tool),
    readOnly: isReadOnly(tool),
    ...{ begunBy, conversation, inferenceId },
  }
}

/** Cached digests of definitions. */
const digests = new WeakMap<Tool, Promise<string>>()

/** The digest of a definition. */
function definitionOf(tool: Tool): Promise<string> {
  const known = digests.get(tool) ?? digest(tool)
  digests.set(tool, known)
  return known
}

/** Why an approved call is not made: the tool changed or disappeared while the question was open. */
export async function toolChangedSince(server: LoopServer, { tool, definition }: Asked): Promise<Why | undefined> {
  const listed = await server.tools().catch(() => [])
  const now = listed.find(each => each.tool.name === tool)?.tool
  if (now !== undefined && (await definitionOf(now)) === definition) return undefined
  const what = `The definition of the tool ${clip(tool ?? '')} of ${clip(server.name)}`
  const message = `${what} changed while the question was open. The call was not made`
  return why('TOOL_CHANGED', 'approval', message, 'Repeat the call. The user is then asked about the new definition')
}

// Tool names for models, assigned as in the gateway: a name that two servers want goes to neither. All offered names are remembered in the
// store, even of servers that are gone, so that a name never changes its meaning.

type OfferedTool = Pick<ToolboxEntry, 'server' | 'tool'>

/** Names that model providers accept. */
const fit = /^[A-Za-z0-9_-]{1,64}$/
/** Names that differ only in case count as equal. */
const folded = (name: string): string => name.toLowerCase()
/** Remembered names per server; the oldest are forgotten. */
const perServer = 1_000
/** Operations per commit. */
const perCommit = 500
const prefix = 'tool-name/'

/** Assigns tool names, and remembers in the store what each server has offered. */
export class ToolNames {
  readonly #store: Store
  readonly #taken: ReadonlySet<string>
  /** Offered names by server, oldest first. */
  #claims: Map<string, Set<string>> | undefined = undefined
  #names: Names = new Map()

  /** `taken`: names that must not be assigned. */
  constructor(store: Store, taken: Iterable<string> = []) {
    this.#store = store
    this.#taken = new Set([...taken].map(folded))
  }

  /** The names of everything that was ever offered, including these. */
  async of(tools: readonly OfferedTool[]): Promise<Names> {
    const claims = this.#claims ?? (await this.#load())
    const fresh = tools.filter(({ server, tool }) => claims.get(server)?.has(tool) !== true)
    if (fresh.length === 0) return this.#names
    const ops = fresh.flatMap(one => claim(claims, one))
    this.#names = assignNames(claims, { fits: name => fit.test(name), folded, taken: this.#taken })
    for (let at = 0; at < ops.length; at += perCommit) await this.#store.commit(ops.slice(at, at + perCommit))
    return this.#names
  }

  /** Reads the remembered names. */
  async #load(): Promise<Map<string, Set<string>>> {
    const claims = new Map<string, Set<string>>()
    for await (const { value } of entriesUnder(this.#store, prefix)) {
      const [server, tool] = JSON.parse(value) as [string, string]
      claims.set(server, (claims.get(server) ?? new Set()).add(tool))
    }
    // Of two concurrent loads the first counts, because it may have learned more since.
    if (this.#claims !== undefined) return this.#claims
    this.#names = assignNames(claims, { fits: name => fit.test(name), folded, taken: this.#taken })
    this.#claims = claims
    return claims
  }
}

/** Remembers a name and returns the operations that store it. */
function claim(claims: Map<string, Set<string>>, { server, tool }: OfferedTool): readonly Op[] {
  const known = claims.get(server) ?? new Set<string>()
  claims.set(server, known)
  if (known.has(tool)) return []
  const [oldest] = known.size >= perServer ? known : []
  if (oldest !== undefined) known.delete(oldest)
  known.add(tool)
  const written = put(keyOf(server, tool), JSON.stringify([server, tool]))
  return oldest === undefined ? [written] : [remove(keyOf(server, oldest)), written]
}

/** The store key of a name. */
function keyOf(server: string, tool: string): string {
  return `${prefix}${hash('sha256', JSON.stringify([server, tool]), 'base64url')}`
}
