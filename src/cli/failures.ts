/** What failed between us and a server, as an exit code and the one thing to do about it. */
import { AuthorizationError } from '../auth/client/failure.ts'
import { Problem } from '../core/problem.ts'
import { ConnectionError } from '../jsonrpc/connection.ts'
import { McpError } from '../jsonrpc/error.ts'
import { CliError } from './exit.ts'
import { Interrupted } from './io.ts'
import { brief } from './terminal/paint.ts'

const signIn = 'Run it in a terminal to sign in with the browser, or give --bearer-env NAME or --header'

/** Whatever was thrown while speaking with a server, and what that said on standard error. What is told already stays as it is. */
export function unreachable(error: unknown, label: string, said: readonly string[] = [], again = label): unknown {
  if (error instanceof CliError || error instanceof Interrupted) return error
  const needs = authorizationIn(error)
  if (needs !== undefined) return new CliError(3, `${label} wants to know who calls: ${needs}`, signIn, { cause: error })
  if (error instanceof ConnectionError) return connectionFailure(error, again)
  if (error instanceof Problem) return new CliError(exitOf(error), error.message, error.suggestion, { cause: error })
  if (isTimeout(error)) {
    const words = said.length === 0 ? '' : `. On standard error it said: "${brief(said.join(' '), 300)}"`
    const fix = `Wait longer with --timeout 2m, or look: vivarium doctor ${again}`
    return new CliError(4, `${label} did not answer in time${words}`, fix, { cause: error })
  }
  return error instanceof McpError ? new CliError(1, told(error), undefined, { cause: error }) : error
}

function isTimeout(error: unknown): boolean {
  return error instanceof McpError ? error.kind === 'timeout' : error instanceof Error && error.name === 'TimeoutError'
}

function told({ message, data, code }: McpError): string {
  const more = typeof data === 'string' ? `: ${data}` : ''
  return code === undefined ? message : `The server refuses: ${message}${more} (${code})`
}

/** What kept credentials from being had, or that there were none. */
function authorizationIn(error: unknown): string | undefined {
  if (error instanceof AuthorizationError) return error.message
  if (!(error instanceof ConnectionError)) return undefined
  if (error.kind === 'unauthorized') return error.cause instanceof Error ? error.cause.message : error.message
  return error.status === 401 || error.status === 403 ? error.message : undefined
}

function exitOf({ category, code }: Problem): 1 | 3 | 4 {
  if (category === 'auth_required') return code === 'CONFIRMATION_REQUIRED' ? 1 : 3
  return category === 'transient' ? 4 : 1
}

function connectionFailure(error: ConnectionError, again: string): CliError {
  const status = error.status === undefined ? '' : ` (HTTP ${error.status})`
  return new CliError(
    4,
    `${error.message}${error.message.includes(String(error.status)) ? '' : status}`,
    `vivarium doctor ${again} says why`,
    {
      cause: error,
    },
  )
}
