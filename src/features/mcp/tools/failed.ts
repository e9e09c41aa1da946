/** How a call that failed is told: a problem of the tool, in words for the model, and why it failed for whoever knows more. */
import { knownOf } from '../../../core/log.ts'
import { Problem, problem, problemText } from '../../../core/problem.ts'
import { redact } from '../../../core/redact.ts'
import type { Exchange } from '../../../engine/exchange.ts'
import { McpError } from '../../../jsonrpc/error.ts'
import { clip } from '../../../jsonrpc/limits.ts'
import { because, type CallToolResult, type FailedResult } from './messages.ts'

/** Members of the result's `_meta`, for peers that know what to do with them. */
export type Explain = (exchange: Exchange, problem: Problem) => Readonly<Record<string, unknown>> | undefined

export function failedResult(exchange: Exchange, problem: Problem, explain: Explain | undefined): CallToolResult {
  const meta = explain?.(exchange, problem)
  const result: FailedResult = {
    content: [{ type: 'text', text: problemText(problem) }],
    isError: true,
    ...(meta === undefined ? {} : { _meta: meta }),
    [because]: problem,
  }
  return result
}

/** The problem in arguments that do not fit; undefined for any other failure. */
export function badArguments(error: unknown): Problem | undefined {
  if (!(error instanceof McpError) || error.kind !== 'invalid-arguments') return undefined
  return problem('INVALID_INPUT', error.message, { cause: error })
}

export function tookTooLong(tool: string, timeoutMs: number): Problem {
  return problem('OPERATION_TIMEOUT', `Tool ${tool} took longer than the ${timeoutMs} ms it has`)
}

/** Kinds of failure that come from the caller's side of a question: the tool's failure, not the protocol's. */
const answersGoneWrong = new Set(['remote', 'timeout', 'invalid-answer', 'invalid-result'])

/** The problem in what a handler threw. A protocol failure is none: it is thrown on. */
export function problemOfThrown(tool: string, exchange: Exchange, error: unknown): Problem {
  const { peer, caller } = exchange
  if (error instanceof Problem) return error
  if (!(error instanceof McpError)) return unexpected(tool, error, knownOf(caller), exchange.correlation)
  const asked = answersGoneWrong.has(error.kind)
  // Session wires have no number for a client that cannot be asked.
  if (!asked && (error.kind !== 'capability-missing' || peer.revision.era === 'request')) throw error
  const code = error.kind === 'timeout' ? 'OPERATION_TIMEOUT' : asked ? 'SERVER_ERROR' : 'UNSUPPORTED'
  // What the client said of its own failure is foreign text, and no longer than that may be.
  const words = error.kind === 'remote' ? clip(error.message) : clip(error.message, 1000)
  return problem(code, redact(words, knownOf(caller)), { cause: error })
}

function unexpected(tool: string, error: unknown, secrets: readonly string[], correlationId: string): Problem {
  const said = error instanceof Error ? redact(error.message, secrets) : ''
  const message = isPresentable(said) ? said : `Tool ${tool} failed, for a reason that only the server can see`
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
