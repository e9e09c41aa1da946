/** What an author says of undoing a tool, and what is written down of it: data, so that any process can do it at any time. */
import type { Inverse } from '../../../core/journal/unit.ts'
import { isRecord } from '../../../jsonrpc/message.ts'
import type { CallToolResult } from '../../mcp/tools/messages.ts'

/** What a call was, for whoever has to say how it is undone. */
export interface UndoneCall<A = Readonly<Record<string, unknown>>, R = unknown> {
  readonly args: A
  /** What it gave: its structured content, else its text. Undefined where nobody knows how it ended. */
  readonly result: R | undefined
  /** The idempotency key under which it was made, if any: what it left behind may be found by that. */
  readonly key: string | undefined
}

/** How a call of a tool is taken back: by a call of another one. */
export interface UndoFacts<A = Readonly<Record<string, unknown>>, R = unknown> {
  readonly tool: string
  /**
   * The arguments of that call. Asked before the call is made, without a result, and again with it; what it gives is kept.
   * Default: those of the call itself. Undefined, or an error: it cannot be undone without its result.
   */
  arguments?(call: UndoneCall<A, R>): Readonly<Record<string, unknown>> | undefined
  /** In words, for the report. */
  readonly description?: string
}

/** Of a tool only what matters here. */
export interface UndoableTool {
  readonly name: string
  readonly facts: { readonly undo?: UndoFacts; readonly annotations?: { readonly readOnlyHint?: boolean } }
}

/** What is known of the inverse before the call is made. */
export function inverseOf(undo: UndoFacts, args: Readonly<Record<string, unknown>>, key: string | undefined): Inverse {
  const { tool, description } = undo
  const parameters = tried(() => parametersOf(undo, { args, key, result: undefined }))
  return {
    target: tool,
    ...(parameters === undefined ? {} : { parameters }),
    ...(description === undefined ? {} : { description }),
  }
}

/** The parameters that the result gives. Throws what the author's code throws. */
export function parametersOf(undo: UndoFacts, call: UndoneCall): Readonly<Record<string, unknown>> | undefined {
  const given = undo.arguments === undefined ? call.args : undo.arguments(call)
  if (given === undefined) return undefined
  if (!isRecord(given)) throw new TypeError(`The arguments of ${undo.tool} must be an object`)
  return JSON.parse(JSON.stringify(given))
}

/** What a handler gave, as far as its result shows it. */
export function givenIn({ structuredContent, content }: CallToolResult): unknown {
  if (structuredContent !== undefined) return structuredContent
  const texts = content.flatMap(block => (block.type === 'text' ? [block.text] : []))
  return texts.join('\n')
}

/** Authors write for the result; that there is none yet is no mistake of theirs. */
function tried<T>(fn: () => T): T | undefined {
  try {
    return fn()
  } catch {
    return undefined
  }
}
