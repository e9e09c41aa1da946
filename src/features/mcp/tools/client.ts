/** The client's side of tools: listing and calling them, and hearing that the list is another one now. */
import { compilePeerSchema, type PeerSchema } from '../../../core/schema/peer.ts'
import { issueText } from '../../../core/schema/schema.ts'
import { type ClientKit, defineClientFeature, type RequestOptions } from '../../../engine/client-feature.ts'
import { declaredSettings } from '../../../engine/extensions.ts'
import { McpError } from '../../../jsonrpc/error.ts'
import { clip, echo } from '../../../jsonrpc/limits.ts'
import { isRecord, type Params } from '../../../jsonrpc/message.ts'
import { pruned } from '../../../jsonrpc/parse.ts'
import type { Capabilities, Peer } from '../../../revisions/index.ts'
import { cachePort, type ListSource } from '../caching/messages.ts'
import { questionsPort } from '../input-required/messages.ts'
import { clientSubscriptionsPort } from '../subscriptions/messages.ts'
import { clientTasksPort } from '../tasks/messages.ts'
import { callToolOn, type ToolCaller } from './call.ts'
import { type MirroredParam, mirroredParams } from './headers.ts'
import {
  type CallTool,
  type CallToolResult,
  type ClientTools,
  clientToolsPort,
  listTools,
  type Tool,
  type ToolCallExtension,
  type ToolCallOptions,
  toolCalls,
  toolsChanged,
  toolsChangedDialect,
} from './messages.ts'
import { answerMaker, incompatibleTools, isIncompatibleTool, readOutput } from './outcome.ts'

/** The tools of a server. */
export interface ToolsClientApi {
  /**
   * Iterates all usable tools. Pages are fetched as needed, and cached as long as the server allows.
   * @example for await (const { name, description } of mcp.tools()) console.log(name, description)
   */
  tools(options?: RequestOptions): AsyncGenerator<Tool, void, undefined>
}

/** Options of `connect` for tools. */
export interface ToolsOptions {
  /** Whether arguments are validated against the input schema of the tool before they are sent. Default false. */
  readonly validateArguments?: boolean
}

const toolList: ListSource = { method: listTools, member: 'tools', capability: 'tools' }
const standard: ToolCallOptions = {}

/** Lists and calls tools. */
export const toolsClient = defineClientFeature<ToolsOptions, ClientTools>({
  name: 'tools',
  provides: clientToolsPort,
  uses: [cachePort, questionsPort, clientSubscriptionsPort, clientTasksPort],
  options: { validateArguments: 'boolean' },
  setup(kit, { validateArguments = false }) {
    const tools = new ServerTools(kit, validateArguments)
    const changed = (): void => {
      kit.port(cachePort).drop(listTools.name)
      kit.port(clientSubscriptionsPort).announce('tools')
    }
    return {
      port: tools,
      client: {
        tools: (options?: RequestOptions) => tools.tools(options),
        callTool: (name: string, args?: Params, options: ToolCallOptions = standard) => tools.call(name, args, options),
      },
      side: {
        handlers: [
          [toolsChanged, changed],
          // What the dialect adds has no schema, so the list is read again here too.
          [toolsChangedDialect, changed],
        ],
      },
    }
  },
})

class ServerTools implements ClientTools {
  readonly #kit: ClientKit
  readonly #validateArguments: boolean
  readonly #known: KnownTools
  #caller: ToolCaller | undefined = undefined
  #call: CallTool | undefined = undefined

  constructor(kit: ClientKit, validateArguments: boolean) {
    this.#kit = kit
    this.#validateArguments = validateArguments
    this.#known = new KnownTools((event, detail) => kit.trace(event, detail))
  }

  known(name: string): Tool | undefined {
    return this.#known.get(name)?.tool
  }

  async learn(name: string, signal: AbortSignal | undefined): Promise<void> {
    if (this.#known.get(name) === undefined) await this.#read(false, signal)
  }

  async *tools(options?: RequestOptions): AsyncGenerator<Tool, void, undefined> {
    const { revision, conversation } = this.#kit.session.opened
    const mirrors = revision.era === 'request' && conversation.caller.carrier === 'http'
    let [fit, incompatible] = [false, false]
    for await (const tool of this.#kit.port(cachePort).list<Tool>(toolList, this.#kit.send(options))) {
      if (this.#known.learn(tool, mirrors)) {
        fit = true
        yield tool
      } else incompatible ||= isIncompatibleTool(tool)
    }
    // An empty list would hide that there are tools.
    if (incompatible && !fit) throw incompatibleTools()
  }

  /** Made of what other features add, when the first call is made: by then all are set up. */
  get call(): CallTool {
    if (this.#call === undefined) {
      const { caller } = this
      let call: CallTool = (name, args, options, manner) => callToolOn(caller, name, args, options, manner)
      for (const { around } of this.#kit.extensions(toolCalls)) if (around !== undefined) call = around(call)
      this.#call = call
    }
    return this.#call
  }

  checked(...[schema, tool, value]: Parameters<ClientTools['checked']>): Promise<unknown> {
    return readOutput(schema, tool, value)
  }

  get caller(): ToolCaller {
    const kit = this.#kit
    this.#caller ??= {
      session: kit.session,
      known: this.#known,
      questions: kit.port(questionsPort),
      tasks: kit.port(clientTasksPort),
      validateArguments: this.#validateArguments,
      hooks: hooksOf(kit.extensions(toolCalls)),
      send: options => kit.send(options),
      list: (anew, signal) => this.#read(anew, signal),
    }
    return this.#caller
  }

  async #read(anew: boolean, signal: AbortSignal | undefined): Promise<void> {
    if (anew) this.#kit.port(cachePort).drop(listTools.name)
    for await (const _ of this.tools(signal === undefined ? standard : { signal }));
  }
}

/** What calls of tools are made with, for those who pass on other people's calls. */
export function toolCallerOf(tools: ClientTools): ToolCaller {
  if (tools instanceof ServerTools) return tools.caller
  throw new TypeError('These tools were not returned by listTools of a client')
}

function hooksOf(extensions: readonly ToolCallExtension[]): ToolCaller['hooks'] {
  return {
    sends: having(extensions, 'sends'),
    params: having(extensions, 'params'),
    before: having(extensions, 'before'),
    harmless: having(extensions, 'harmless'),
    attempts: having(extensions, 'attempts').at(-1),
    after: extensions.flatMap(({ name, after }) => (after === undefined ? [] : [{ extension: name, look: after }])),
    answer: answerMaker(extensions),
    declares: declaredByCalls(extensions),
  }
}

/** What calls declare, remembered by server. */
function declaredByCalls(extensions: readonly ToolCallExtension[]): ToolCaller['hooks']['declares'] {
  const wanted = extensions.flatMap(({ declares }) => (declares === undefined ? [] : [declares]))
  const known = new WeakMap<Peer, readonly (Capabilities | undefined)[]>()
  const found = (peer: Peer, hears: boolean): Capabilities | undefined => {
    const ids = wanted.filter(
      ({ extension, withProgress = false }) => (hears || !withProgress) && declaredSettings(peer, extension) !== undefined,
    )
    return ids.length === 0 ? undefined : { extensions: Object.fromEntries(ids.map(({ extension }) => [extension, {}])) }
  }
  return (peer, hears) => {
    if (peer.revision.era === 'session') return undefined
    let both = known.get(peer)
    if (both === undefined) {
      both = [found(peer, false), found(peer, true)]
      known.set(peer, both)
    }
    return both[hears ? 1 : 0]
  }
}

function having<K extends keyof ToolCallExtension>(
  extensions: readonly ToolCallExtension[],
  member: K,
): readonly NonNullable<ToolCallExtension[K]>[] {
  return extensions.flatMap(extension => {
    const value = extension[member]
    return value === undefined ? [] : [value]
  })
}

// What this client has learned of the server's tools: output schemas to check by, and which arguments are mirrored in headers.

/** A schema is compiled when first needed; null: it is of no use. */
interface KnownTool {
  readonly tool: Tool
  readonly mirrored: readonly MirroredParam[]
  output: PeerSchema | null | undefined
  input: PeerSchema | null | undefined
}

const maxKnown = 10_000

/** The tools that were listed, by name. */
export class KnownTools {
  readonly #known = new Map<string, KnownTool>()
  readonly #trace: (event: string, detail: unknown) => void

  constructor(trace: (event: string, detail: unknown) => void) {
    this.#trace = trace
  }

  /** False: the tool is not fit for use and hidden; because of its mirrored arguments only where they are mirrored. */
  learn(tool: Tool, mirrors: boolean): boolean {
    if (!isRecord(tool) || typeof tool.name !== 'string' || !(isRecord(tool.inputSchema) || pruned in tool)) {
      this.#trace('tool-malformed', isRecord(tool) ? echo(tool['name']) : 'no object')
      return false
    }
    const found = pruned in tool ? { fault: 'it is nested too deeply' } : mirroredParams(tool.inputSchema)
    const fault = 'fault' in found ? found.fault : undefined
    if (fault !== undefined && (mirrors || pruned in tool)) {
      this.#known.delete(tool.name)
      this.#trace('tool-hidden', { tool: clip(tool.name), fault })
      return false
    }
    const mirrored = 'fault' in found ? [] : found
    if (this.#known.size < maxKnown || this.#known.has(tool.name)) {
      this.#known.set(tool.name, { tool, mirrored, output: undefined, input: undefined })
    }
    return true
  }

  get(name: string): KnownTool | undefined {
    return this.#known.get(name)
  }

  /** Refuses structured content that is not what the tool promised. */
  checkOutput(name: string, result: CallToolResult): void {
    const known = this.#known.get(name)
    if (known?.tool.outputSchema === undefined || result.isError === true) return
    if (known.output === undefined) known.output = this.#compile(name, known.tool.outputSchema)
    if (known.output === null) return
    if (result.structuredContent === undefined) {
      throw new McpError('invalid-result', `Tool ${clip(name)} declares an output schema, but returned no structured content`)
    }
    const checked = known.output.validate(result.structuredContent)
    if (checked.ok) return
    const wrong = issueText(checked.issues)
    throw new McpError(
      'invalid-result',
      `The structured content of tool ${clip(name)} does not match its output schema: ${wrong}`,
    )
  }

  checkInput(name: string, args: unknown): void {
    const known = this.#known.get(name)
    if (known === undefined) return
    if (known.input === undefined) known.input = this.#compile(name, known.tool.inputSchema)
    if (known.input === null) return
    const checked = known.input.validate(args ?? {})
    if (checked.ok) return
    const wrong = issueText(checked.issues)
    throw new McpError('invalid-params', `The arguments for tool ${clip(name)} do not match its schema: ${wrong}`)
  }

  /** A schema that is malformed or beyond our limits is not used; the tool still is. */
  #compile(name: string, schema: Readonly<Record<string, unknown>>): PeerSchema | null {
    try {
      return compilePeerSchema(schema)
    } catch (error) {
      this.#trace('schema-refused', { tool: clip(name), error })
      return null
    }
  }
}
