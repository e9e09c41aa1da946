/** What came of a call of a tool: what the result says, what the caller wants it to be, and what other features read from it. */

import { type Problem, problem } from '../../../core/problem.ts'
import {
  type CompiledSchema,
  compileSchema,
  type InferOutput,
  issueText,
  type Schema,
  withJsonSchema,
} from '../../../core/schema/index.ts'
import { McpError } from '../../../jsonrpc/error.ts'
import { clip } from '../../../jsonrpc/limits.ts'
import { isRecord } from '../../../jsonrpc/message.ts'
import type { ContentBlock } from '../content/messages.ts'
import type { AnswerFacts, CallToolResult, ToolAnswer, ToolCallExtension } from './messages.ts'

/** Makes an answer of a result; `found`: what the extensions found about it, by their names. */
type AnswerMaker = (
  from: { readonly server: string; readonly tool: string },
  found: Record<string, unknown> | undefined,
  result: CallToolResult,
  structured: unknown,
) => ToolAnswer

/** One maker for all clients with the same extensions, so that all answers have one shape. */
let made: { readonly parts: readonly unknown[]; readonly make: AnswerMaker } | undefined

/** Compiles what extensions add to answers. */
export function answerMaker(extensions: readonly ToolCallExtension[]): AnswerMaker {
  const parts = extensions.flatMap(({ reads, views }) => [reads, views])
  if (made === undefined || made.parts.length !== parts.length || made.parts.some((part, at) => part !== parts[at]))
    made = { parts, make: compile(extensions) }
  return made.make
}

function compile(extensions: readonly ToolCallExtension[]): AnswerMaker {
  const reads = extensions.flatMap(({ reads = {} }) => Object.entries(reads).map(([member, read]) => ({ member, read })))
  class Answer implements ToolAnswer {
    readonly content: readonly ContentBlock[]
    readonly text: string
    readonly structured: unknown
    readonly isError: boolean
    readonly problem: undefined
    readonly meta: ToolAnswer['meta']
    readonly #from: { readonly server: string; readonly tool: string }
    readonly #found: Record<string, unknown> | undefined

    constructor(
      from: { readonly server: string; readonly tool: string },
      found: Record<string, unknown> | undefined,
      { content, _meta, isError }: CallToolResult,
      structured: unknown,
    ) {
      this.content = Array.isArray(content) ? content : []
      this.text = contentText(this.content)
      this.structured = structured
      this.isError = isError === true
      this.problem = undefined
      this.meta = _meta
      this.#from = from
      this.#found = found
    }

    static facts(answer: Answer, extension: string): AnswerFacts {
      const { content, meta } = answer
      return { ...answer.#from, content, meta, found: answer.#found?.[extension] }
    }
  }
  for (const { name, views = {} } of extensions)
    for (const [member, view] of Object.entries(views))
      Object.defineProperty(Answer.prototype, member, viewOf(Answer, name, member, view))
  return (from, found, result, structured) => {
    const answer = new Answer(from, found, result, structured) as Answer & Record<string, unknown>
    for (const { member, read } of reads) answer[member] = read(result)
    return answer
  }
}

/** Read once, when it is first asked for. */
function viewOf<A extends object>(
  { facts }: { facts(answer: A, extension: string): AnswerFacts },
  extension: string,
  member: string,
  view: (facts: AnswerFacts) => unknown,
): PropertyDescriptor & ThisType<A> {
  return {
    configurable: true,
    get() {
      const value = view(facts(this, extension))
      Object.defineProperty(this, member, { value })
      return value
    },
  }
}

/** All text of a result. */
export function contentText(content: readonly ContentBlock[]): string {
  const first = content[0]
  if (content.length === 1 && first?.type === 'text') return textIn(first)
  return content
    .filter(block => block?.type === 'text')
    .map(textIn)
    .join('\n')
}

/** A text that is none would fail when it is put together with others. */
function textIn(block: ContentBlock): string {
  return block.type === 'text' && typeof block.text === 'string' ? block.text : ''
}

const compiledSchemas = new WeakMap<object, CompiledSchema>()

/** Checks what a tool gave against the schema of the caller, and returns what that makes of it. */
export async function readOutput<S extends Schema>(schema: S, name: string, value: unknown): Promise<InferOutput<S>> {
  const checked = await validator(schema).validate(value)
  if (checked.ok) return checked.value as InferOutput<S>
  throw new McpError(
    'invalid-result',
    `The result of tool ${clip(name)} does not match the option output: ${issueText(checked.issues)}`,
  )
}

function validator(schema: Schema): CompiledSchema {
  let made = compiledSchemas.get(schema)
  if (made === undefined) {
    // Nobody is shown this schema, so it need not be able to say what it is.
    made = isStandard(schema) ? compileSchema(withJsonSchema(schema, {})) : compileSchema(schema, { where: 'output' })
    compiledSchemas.set(schema, made)
  }
  return made
}

function isStandard(schema: Schema): schema is Extract<Schema, { readonly '~standard': unknown }> {
  return '~standard' in schema
}

// Servers whose answers have another shape than the protocol's: what is told of them, and what would help.

const suggestion = "If it follows davioe/mcp-extension-proposals, give connect the option profile: 'davioe'"

/** Whoever knows no handshake is no server of the protocol, at least not whole. */
export function incompatibleHandshake(error: unknown): unknown {
  if (!(error instanceof McpError) || error.code !== -32601) return error
  return problem('UNSUPPORTED', 'The server does not support initialize, so no session can be opened', {
    cause: error,
    actor: 'operator',
    suggestion,
  })
}

/** Whether an entry of a list of tools is one of a manifest. */
export function isIncompatibleTool(tool: unknown): boolean {
  return isRecord(tool) && isRecord(tool['input_schema']) && !('inputSchema' in tool)
}

/** The problem with a server that writes the schemas of its tools under another name. */
export function incompatibleTools(): Problem {
  return problem('UNSUPPORTED', 'The server lists its tools with input_schema, but the protocol requires inputSchema', {
    actor: 'operator',
    suggestion,
  })
}

/** A result without content; undefined where it looks like nothing that we know. */
export function incompatibleResult(result: unknown): Problem | undefined {
  if (!isRecord(result) || !['result', 'error', 'requires_confirmation', 'session_state'].some(name => name in result))
    return undefined
  return problem('UNSUPPORTED', 'The server answered tools/call without content, in the shape of another implementation', {
    actor: 'operator',
    suggestion,
  })
}
