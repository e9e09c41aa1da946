/** What this client has learned of the server's tools: output schemas to check by, and which arguments are mirrored in headers. */

import { compilePeerSchema, type PeerSchema } from '../../../core/schema/peer.ts'
import { issueText } from '../../../core/schema/schema.ts'
import { McpError } from '../../../jsonrpc/error.ts'
import { clip, echo } from '../../../jsonrpc/limits.ts'
import { isRecord } from '../../../jsonrpc/message.ts'
import { pruned } from '../../../jsonrpc/parse.ts'
import { type MirroredParam, mirroredParams } from './headers.ts'
import type { CallToolResult, Tool } from './messages.ts'

/** A schema is compiled when first needed; null: it is of no use. */
interface Known {
  readonly tool: Tool
  readonly mirrored: readonly MirroredParam[]
  output: PeerSchema | null | undefined
  input: PeerSchema | null | undefined
}

const maxKnown = 10_000

/** The tools that were listed, by name. */
export class KnownTools {
  readonly #known = new Map<string, Known>()
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
    const found = pruned in tool ? { fault: 'it is nested too deeply to be read' } : mirroredParams(tool.inputSchema)
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

  get(name: string): Known | undefined {
    return this.#known.get(name)
  }

  /** Refuses structured content that is not what the tool promised. */
  checkOutput(name: string, result: CallToolResult): void {
    const known = this.#known.get(name)
    if (known?.tool.outputSchema === undefined || result.isError === true) return
    if (known.output === undefined) known.output = this.#compile(name, known.tool.outputSchema)
    if (known.output === null) return
    if (result.structuredContent === undefined) {
      throw new McpError('invalid-result', `Tool ${clip(name)} promises structured content and gave none`)
    }
    const checked = known.output.validate(result.structuredContent)
    if (checked.ok) return
    const wrong = issueText(checked.issues)
    throw new McpError('invalid-result', `Tool ${clip(name)} gave structured content that is not what it promises: ${wrong}`)
  }

  checkInput(name: string, args: unknown): void {
    const known = this.#known.get(name)
    if (known === undefined) return
    if (known.input === undefined) known.input = this.#compile(name, known.tool.inputSchema)
    if (known.input === null) return
    const checked = known.input.validate(args ?? {})
    if (checked.ok) return
    const wrong = issueText(checked.issues)
    throw new McpError('invalid-params', `The arguments for tool ${clip(name)} do not fit its schema: ${wrong}`)
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
