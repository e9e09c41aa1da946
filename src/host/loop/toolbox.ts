/** The tools of a turn: those of all servers that are up, and the host's own, each under one name. */

import { hash } from 'node:crypto'
import { digest } from '../../core/digest.ts'
import { type Why, why } from '../../core/suggestion.ts'
import { toolSetOf } from '../../features/live/dialects/messages.ts'
import type { Tool } from '../../features/mcp/tools/messages.ts'
import { clip } from '../../jsonrpc/limits.ts'
import type { Params } from '../../jsonrpc/message.ts'
import type { BegunBy } from '../../policy/rules/rule.ts'
import { type Op, put, remove, type Store } from '../../stores/store.ts'
import type { ModelTool } from '../models/model.ts'
import { quoteTool } from '../models/quoted.ts'
import { assignNames, type Names } from '../servers/names.ts'
import type { PlannedCall } from './conversation-log.ts'
import { hostTools } from './host-tools.ts'
import type { LoopLimits } from './limits.ts'
import type { LoopRequest, LoopServer } from './ports.ts'

/** A tool of a server that is offered to the model. */
export interface ToolboxEntry {
  readonly server: string
  readonly tool: string
  readonly featureSet: string | undefined
  /** As the config says, where it does. */
  readonly assigned: string | undefined
  /** Whose state goes along, where it is only guessed. */
  readonly stateSet: string | undefined
  readonly definition: Tool
}

/** The tools of one turn, by the names that the model sees. */
export interface Toolbox {
  /** As the model is told of them. */
  readonly tools: readonly ModelTool[]
  /** Undefined: it is the host's, or there is none. */
  find(name: string): ToolboxEntry | undefined
  /** A tool of this very server, whatever the model calls it. */
  of(server: string, tool: string): ToolboxEntry | undefined
}

/** Servers whose tools cannot be read are left out: one that is broken harms no other. */
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
export function isToolDisabled(
  { live }: LoopServer,
  { definition, assigned }: Pick<ToolboxEntry, 'definition' | 'assigned'>,
): boolean {
  const said = [toolSetOf(definition as unknown as Params, new Map()), assigned]
  return said.some(name => name !== undefined && live?.featureSets.get(name)?.enabled === false)
}

function modelTool(name: string, { server, definition }: ToolboxEntry): ModelTool {
  const { description, title } = definition
  const said = clip(description ?? title ?? '', 2_000)
  return quoteTool(name, server, { description: said, inputSchema: definition.inputSchema })
}

/** The turn that a call belongs to. */
export interface CallingTurn {
  readonly conversation: string
  readonly inferenceId?: string
  readonly begunBy: BegunBy
}

/**
 * Whether a tool says of itself that it changes nothing. It is its server's word, and one that stays the same: a definition that says
 * otherwise later is held until somebody approves it.
 */
export function isReadOnly({ annotations }: Tool): boolean {
  return annotations?.readOnlyHint === true && annotations.destructiveHint !== true
}

/** A tool call as the policy is asked about it. */
export async function toolRequest(call: PlannedCall, server: string, tool: Tool, turn: CallingTurn): Promise<LoopRequest> {
  const { featureSet, arguments: payload } = call
  return {
    kind: 'tool',
    server,
    tool: call.tool,
    ...(featureSet !== undefined && { featureSet }),
    payload,
    definition: await definitionOf(tool),
    readOnly: isReadOnly(tool),
    begunBy: turn.begunBy,
    conversation: turn.conversation,
    ...(turn.inferenceId !== undefined && { inferenceId: turn.inferenceId }),
  }
}

/** Definitions do not change, and the same ones come back with every call. */
const digests = new WeakMap<Tool, Promise<string>>()

function definitionOf(tool: Tool): Promise<string> {
  const known = digests.get(tool) ?? digest(tool)
  digests.set(tool, known)
  return known
}

/** Why a call that was approved is not made after all: while the question was open the tool became another one, or went away. */
export async function toolChangedSince(server: LoopServer, { tool, definition }: LoopRequest): Promise<Why | undefined> {
  const listed = await server.tools().catch(() => [])
  const now = listed.find(each => each.tool.name === tool)?.tool
  if (now !== undefined && (await definitionOf(now)) === definition) return undefined
  return why(
    'TOOL_CHANGED',
    'approval',
    `The definition of the tool ${clip(tool ?? '')} of ${clip(server.name)} changed while the question was open. The call was not made`,
    'Call it again: it is then asked about as it is now',
  )
}

// The names of tools as a model sees them, assigned as in the gateway: a name that two servers want goes to neither. What servers have
// offered is remembered on the store, also while they are down or gone, so that a name that once meant the tool of one server never
// comes to mean that of another.

interface OfferedTool {
  readonly server: string
  readonly tool: string
}

/** What providers take. */
const fit = /^[A-Za-z0-9_-]{1,64}$/
const folded = (name: string): string => name.toLowerCase()
/** Names of one server that are remembered: beyond that its oldest are forgotten. */
const perServer = 1_000
const perCommit = 500
const prefix = 'tool-name/'

/** Assigns the names of tools, and remembers on the store what each server has offered. */
export class ToolNames {
  readonly #store: Store
  readonly #taken: ReadonlySet<string>
  /** What each server has offered, the oldest first. */
  #claims: Map<string, Set<string>> | undefined = undefined
  #names: Names = new Map()

  /** `taken`: names that are not to be given. */
  constructor(store: Store, taken: Iterable<string> = []) {
    this.#store = store
    this.#taken = new Set([...taken].map(folded))
  }

  /** The names of all that was ever offered, these included. */
  async of(tools: readonly OfferedTool[]): Promise<Names> {
    const claims = this.#claims ?? (await this.#load())
    const fresh = tools.filter(({ server, tool }) => claims.get(server)?.has(tool) !== true)
    if (fresh.length === 0) return this.#names
    const ops = fresh.flatMap(one => claim(claims, one))
    this.#names = assignNames(claims, { fits: name => fit.test(name), folded, taken: this.#taken })
    for (let at = 0; at < ops.length; at += perCommit) await this.#store.commit(ops.slice(at, at + perCommit))
    return this.#names
  }

  async #load(): Promise<Map<string, Set<string>>> {
    const claims = new Map<string, Set<string>>()
    for (let after: string | undefined; ; ) {
      const page = await this.#store.scan(prefix, after === undefined ? {} : { after })
      for (const { value } of page) {
        const [server, tool] = JSON.parse(value) as [string, string]
        claims.set(server, (claims.get(server) ?? new Set()).add(tool))
      }
      after = page.at(-1)?.key
      if (after === undefined) break
    }
    // Of two that read at once the first counts: what it has learned since is not forgotten.
    if (this.#claims !== undefined) return this.#claims
    this.#names = assignNames(claims, { fits: name => fit.test(name), folded, taken: this.#taken })
    this.#claims = claims
    return claims
  }
}

/** Remembers it, and gives what is to be written. */
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

function keyOf(server: string, tool: string): string {
  return `${prefix}${hash('sha256', JSON.stringify([server, tool]), 'base64url')}`
}
