/** What this client has learned of the server's tools: output schemas to check by, and which arguments are mirrored in headers. */
import type { Compiled } from '../core/schema/index.ts'
import { compilePeerSchema } from '../core/schema/peer.ts'
import { type MirroredParam, mirroredParams } from '../features/mcp/tools/headers.ts'
import type { CallToolResult, Tool } from '../features/mcp/tools/messages.ts'
import { McpError } from '../jsonrpc/error.ts'
import { clip } from '../jsonrpc/limits.ts'
import { isRecord } from '../jsonrpc/message.ts'

type PeerCheck = ReturnType<typeof compilePeerSchema>

interface Known {
  readonly tool: Tool
  readonly mirrored: readonly MirroredParam[]
  output: PeerCheck | null | undefined
  input: PeerCheck | null | undefined
}

const maxKnown = 10_000

export class ToolBook {
  readonly #known = new Map<string, Known>()
  readonly #trace: (event: string, detail: unknown) => void

  constructor(trace: (event: string, detail: unknown) => void) {
    this.#trace = trace
  }

  /** False: the tool is not fit for use over HTTP on this wire, and is hidden. */
  learn(tool: Tool, mirrors: boolean): boolean {
    if (!isRecord(tool) || typeof tool.name !== 'string' || !isRecord(tool.inputSchema)) {
      this.#trace('tool-malformed', isRecord(tool) ? clip(String((tool as { name?: unknown }).name)) : 'no object')
      return false
    }
    const mirrored = mirroredParams(tool.inputSchema)
    if ('fault' in mirrored) {
      this.#trace('tool-hidden', { tool: clip(tool.name), fault: mirrored.fault })
      return !mirrors
    }
    if (this.#known.size < maxKnown || this.#known.has(tool.name)) this.#known.set(tool.name, { tool, mirrored, output: undefined, input: undefined })
    return true
  }

  get(name: string): Known | undefined {
    return this.#known.get(name)
  }

  /** Refuses structured content that is not what the tool promised. */
  async checkOutput(name: string, result: CallToolResult): Promise<void> {
    const known = this.#known.get(name)
    if (known?.tool.outputSchema === undefined || result.isError === true) return
    known.output ??= this.#compile(name, known.tool.outputSchema)
    if (known.output === null) return
    if (result.structuredContent === undefined) throw new McpError('invalid-result', `Tool ${clip(name)} promises structured content and gave none`)
    const checked = await known.output.validate(result.structuredContent)
    if (!checked.ok) throw new McpError('invalid-result', `Tool ${clip(name)} gave structured content that is not what it promises: ${issues(checked.issues)}`)
  }

  async checkInput(name: string, args: unknown): Promise<void> {
    const known = this.#known.get(name)
    if (known === undefined) return
    known.input ??= this.#compile(name, known.tool.inputSchema)
    if (known.input === null) return
    const checked = await known.input.validate(args ?? {})
    if (!checked.ok) throw new McpError('invalid-params', `The arguments for tool ${clip(name)} do not fit its schema: ${issues(checked.issues)}`)
  }

  /** A schema beyond our limits is not used; the tool still is. */
  #compile(name: string, schema: Readonly<Record<string, unknown>>): PeerCheck | null {
    try {
      return compilePeerSchema(schema)
    } catch (error) {
      this.#trace('schema-refused', { tool: clip(name), error })
      return null
    }
  }
}

function issues(list: readonly { readonly path: string; readonly message: string }[]): string {
  return list.map(({ path, message }) => `${path === '' ? 'value' : clip(path)}: ${clip(message)}`).join('; ')
}

/** What the caller itself wants the result to be. */
export async function readOutput<T>(schema: Compiled<T>, name: string, result: CallToolResult): Promise<T> {
  const checked = await schema.validate(result.structuredContent)
  if (checked.ok) return checked.value
  throw new McpError('invalid-result', `Tool ${clip(name)} gave something else than was asked for: ${issues(checked.issues)}`)
}
