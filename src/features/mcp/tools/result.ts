/** What a handler returned → the canonical result. Plain values are enough; `reply` is for more control. */

import { knownSecrets } from '../../../core/log.ts'
import { Problem, problem, problemText } from '../../../core/problem.ts'
import { redact } from '../../../core/redact.ts'
import type { Exchange } from '../../../engine/exchange.ts'
import { SelfWritingResult } from '../../../engine/outcome.ts'
import { eachAuthored, withoutReservedMeta } from '../../../engine/reserved.ts'
import { McpError } from '../../../jsonrpc/error.ts'
import { clip } from '../../../jsonrpc/limits.ts'
import { isRecord } from '../../../jsonrpc/message.ts'
import type { Revision } from '../../../revisions/index.ts'
import { type ContentBlock, isWholeBlock, type TextContent } from '../content/messages.ts'
import type { ToolExtension } from './entry.ts'
import { type CallToolResult, type FailedResult, failureProblem } from './messages.ts'

/** The parts of a tool result. */
export interface ReplyParts {
  /** The content for the model. Default: the structured content as text. */
  readonly content?: readonly ContentBlock[]
  /** The structured content, as the output schema describes it. Default: none. */
  readonly structured?: unknown
  /** Whether the tool failed; the content says why. Default false. */
  readonly isError?: boolean
  /** The `_meta` of the result, for example what `cite` returns. Default: none. */
  readonly meta?: Readonly<Record<string, unknown>>
}

/** A tool result with all its parts; made by `reply`. */
export class Reply {
  /** The parts of the result. */
  readonly parts: ReplyParts
  constructor(parts: ReplyParts) {
    this.parts = parts
  }
}

/** A result whose `_meta` is the runtime's own word, or was filtered before. Not for authors. */
export class RuntimeReply extends Reply {}

/**
 * Creates a tool result from its parts, for handlers that need more than text or structured content.
 * @example return reply({ content: [text('done'), image(png, 'image/png')], structured: { id: 'T-1' } })
 */
export function reply(parts: ReplyParts): Reply {
  return new Reply(parts)
}

/** The most common result, which is the same on every official wire and therefore writes itself. */
class PlainText extends SelfWritingResult implements CallToolResult {
  readonly content: readonly [TextContent]

  constructor(text: string) {
    super()
    this.content = [{ type: 'text', text }]
  }

  override write(revision: Revision): string | undefined {
    // All official wires carry content blocks; the dialect has one output.
    return !revision.dialect ? `"content":[{"type":"text","text":${JSON.stringify(this.content[0].text)}}]}` : undefined
  }
}

function textResult(text: string): CallToolResult {
  return new PlainText(text)
}

/** A string is text, unless the tool is `valued`: has an output schema; nothing is an empty answer; any other value is structured content with its JSON as text. `server`: how it names itself. */
export function toResult(value: unknown, server: string, valued = false): CallToolResult {
  if (typeof value === 'string' && !valued) return textResult(value)
  if (value === undefined) return { content: [] }
  if (!(value instanceof Reply)) {
    if (isWholeBlock(value)) return { content: eachAuthored([value], server) }
    if (!valued && looksSpelledOut(value))
      throw new Misreturned('to spell out a result return reply({ content: […] }), not a plain object with content')
    return { content: jsonText(value), structuredContent: value }
  }
  const { content, structured, isError, meta: said } = value.parts
  const meta = value instanceof RuntimeReply ? said : withoutReservedMeta(said, server)
  const blocks = content === undefined ? undefined : eachAuthored(content, server)
  return {
    content: blocks === undefined ? (structured === undefined ? [] : jsonText(structured)) : withText(blocks, structured),
    ...(structured === undefined ? {} : { structuredContent: structured }),
    ...(isError === undefined ? {} : { isError }),
    ...(meta === undefined ? {} : { _meta: meta }),
  }
}

/** A value that is no object must be there as text too (2026-07-28 server/tools). */
function withText(content: readonly ContentBlock[], structured: unknown): readonly ContentBlock[] {
  if (structured === undefined || isRecord(structured) || content.some(({ type }) => type === 'text')) return content
  return [...content, ...jsonText(structured)]
}

/** Readers that know no structured content get the same value as text. */
function jsonText(value: unknown): readonly TextContent[] {
  return [{ type: 'text', text: checkWritten(value, JSON.stringify(value)) }]
}

// What a tool returned that is no result: who has to know is told what to return instead.

/** Its words are ours, and may be told to callers. */
export class Misreturned extends TypeError {}

/** The failure of the call; its cause is what the log of the server shows. */
export function misreturned(tool: string, error: unknown): McpError {
  if (error instanceof McpError) return error
  const said = error instanceof Error ? (error.message.split('\n', 1)[0] ?? '') : ''
  const words = error instanceof Misreturned ? said : `its result cannot be serialised as JSON: ${clip(said)}`
  const message = `Tool ${tool}: ${words}`
  return new McpError('internal', message, { cause: new Misreturned(message, { cause: error }) })
}

/** The shape that other libraries return, which would go out as JSON inside JSON. */
export function looksSpelledOut(value: unknown): boolean {
  const content = isRecord(value) ? value['content'] : undefined
  return (
    Array.isArray(content) &&
    content.length > 0 &&
    content.every(block => isRecord(block) && blockTypes.has(String(block['type'])))
  )
}

const blockTypes = new Set(['text', 'image', 'audio', 'resource', 'resource_link'])

/**
 * Throws where the JSON of a value says nothing of it. Of what was written only the beginning is looked at, so that values with an
 * ordinary text cost nothing.
 */
function checkWritten(value: unknown, text: string | undefined): string {
  if (text === undefined) throw new Misreturned(`it returned a ${typeof value}; return text or plain values instead`)
  if (text.startsWith('{"0":') || text.startsWith('{"type":"Buffer"') || text === '{}') checkObject(value)
  return text
}

function checkObject(value: unknown): void {
  if (ArrayBuffer.isView(value) || value instanceof ArrayBuffer)
    throw new Misreturned("it returned bytes; return image(bytes, 'image/png'), audio(bytes, type), or text of them")
  if (value instanceof Map)
    throw new Misreturned('it returned a Map, which cannot be serialised as JSON; return Object.fromEntries(map)')
  if (value instanceof Error) throw new Misreturned('it returned an Error; throw it')
  if (typeof value === 'object' && value !== null && Symbol.iterator in value)
    throw new Misreturned('it returned a Set or an iterator, which cannot be serialised as JSON; return [...values]')
}

// How a call that failed is told: a problem of the tool, in words for the model, and why it failed for whoever knows more.

/** A problem as the result of a tool call, for the model to read. */
export function failedResult(exchange: Exchange, problem: Problem, explain: ToolExtension['explain']): CallToolResult {
  const meta = explain?.(exchange, problem)
  const result: FailedResult = {
    content: [{ type: 'text', text: problemText(problem) }],
    isError: true,
    ...(meta === undefined ? {} : { _meta: meta }),
    [failureProblem]: problem,
  }
  return result
}

/** Kinds of failure that come from the caller's side of a question: the tool's failure, not the protocol's. */
const answersGoneWrong = new Set(['remote', 'timeout', 'invalid-answer', 'invalid-result'])

/** The problem in what a handler threw. A protocol failure is none: it is thrown on. */
export function problemOfThrown(tool: string, exchange: Exchange, error: unknown): Problem {
  const { peer, caller } = exchange
  if (error instanceof Problem) return error
  if (!(error instanceof McpError)) return unexpected(tool, error, knownSecrets(caller), exchange.correlation)
  const asked = answersGoneWrong.has(error.kind)
  // Session wires have no number for a client that cannot be asked.
  if (!asked && (error.kind !== 'capability-missing' || peer.revision.era === 'request')) throw error
  const code = error.kind === 'timeout' ? 'OPERATION_TIMEOUT' : asked ? 'SERVER_ERROR' : 'UNSUPPORTED'
  // What the client said of its own failure is foreign text, and no longer than that may be.
  const words = error.kind === 'remote' ? clip(error.message) : clip(error.message, 1000)
  return problem(code, redact(words, knownSecrets(caller)), { cause: error })
}

function unexpected(tool: string, error: unknown, secrets: readonly string[], correlationId: string): Problem {
  const said = error instanceof Error ? redact(error.message, secrets) : ''
  const message = isPresentable(said) ? said : `Tool ${tool} failed; the log of the server has the cause`
  return problem('SERVER_ERROR', message, { cause: error, actor: 'operator', correlationId })
}

const longest = 200
/** What shows where a program lies, what it talks to, or what that said: paths, addresses, markup, JSON, lines of a stack. */
const inside = /[\n\r<>{}[\]\\]|\/[^\s/]+\/|(^|[\s'"(=:])\/\w|\w:\/\/|\b\d{1,3}(\.\d{1,3}){3}\b|:\d{2,5}\b|\bat .+:\d+/

const hidden = /\[redacted\]/g

/** Nobody chose the words of an error for the caller. A short sentence can be told; what looks like the inside of a program cannot. */
function isPresentable(message: string): boolean {
  return message !== '' && message.length <= longest && !inside.test(message.replace(hidden, ''))
}
