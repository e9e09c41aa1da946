/** What failed between us and a server, as an exit code and the one thing to do about it. */
import { AuthorizationError } from '../auth/addresses.ts'
import { challengeParameter, lacksScope } from '../core/credentials.ts'
import { Problem } from '../core/problem.ts'
import { meantText } from '../core/suggestion.ts'
import { type Connection, ConnectionError } from '../jsonrpc/connection.ts'
import { McpError } from '../jsonrpc/error.ts'
import { clip } from '../jsonrpc/limits.ts'
import { tapConnection } from '../recording/tap.ts'
import { messageOf } from '../stores/store.ts'
import { credentialsFix } from '../transports/http/client-wire.ts'
import type { OpenedTarget } from './connecting.ts'
import { CliError, type Exit, Interrupted } from './io.ts'
import { gather } from './lists.ts'
import { brief } from './terminal/text.ts'

/** What helps where the server wants credentials. */
const signIn = 'Run the command in a terminal to sign in with the browser, or pass --bearer-env NAME or --header'
/** What helps where credentials would be sent in the clear. */
const secure = 'Use the https address of the server, or pass --no-auth'
/** What helps where the token that was sent is not valid, or not any more. */
export const newToken =
  'Get a new token and pass it with --bearer-env NAME, or leave that out and sign in with the browser in a terminal'

/** What helps where the token lacks a scope: to send the same token again does not. */
export function moreScopes(challenge: string | undefined): string {
  const scopes = challengeParameter(challenge, 'scope')
  const wanted = scopes === undefined ? 'that scope' : `the scopes ${clip(scopes, 500)}`
  return `Get a token with ${wanted} from the authorization server, and pass it with --bearer-env NAME`
}

/** The server that was spoken with. */
interface FailedServer {
  /** As people read it. */
  readonly label: string
  /** As it would be typed again. Default: the label. */
  readonly again?: string
  /** The last lines of its standard error. */
  readonly said?: readonly string[]
  /** With which it was asked. */
  readonly headers?: Readonly<Record<string, string>> | undefined
}

/** Whatever was thrown while speaking with a server. What is told already stays as it is. */
export function explainServerError(error: unknown, server: FailedServer): unknown {
  const { label, said = [], again = label } = server
  if (error instanceof CliError || error instanceof Interrupted) return error
  const failure = (exit: Exit, message: string, fix?: string): CliError => new CliError(message, fix, { exit, cause: error })
  if (error instanceof ServesHttp)
    return failure(
      4,
      `${label} serves HTTP at ${clip(error.url)} and writes nothing to standard output`,
      'Start it separately and use its address, or start it with the argument that makes it speak over stdio',
    )
  const needs = authorizationIn(error)
  if (needs !== undefined) return credentialFailure(error, needs, server)
  if (error instanceof ConnectionError) return unserved(error, label, said, again) ?? connectionFailure(error, again)
  if (error instanceof Problem) return failure(exitOf(error), error.message, remedyOf(error, again))
  if (isTimeout(error)) {
    const words = said.length === 0 ? '' : `. Its standard error says: "${brief(said.join(' '), 300)}"`
    return failure(4, `${label} did not answer in time${words}`, `Wait longer with --timeout 2m, or run vivarium doctor ${again}`)
  }
  return error instanceof McpError ? failure(1, told(error)) : error
}

/**
 * What a server gives under a name. One that does not know the method has nothing of the kind, and where it has nothing of that name it
 * is told what may have been meant. `name` undefined: the list itself was asked for, and is not asked for again.
 */
export async function offered<T>(
  kind: 'prompts' | 'resources',
  { client, label }: Pick<OpenedTarget, 'client' | 'label'>,
  name: string | undefined,
  asked: Promise<T>,
): Promise<T> {
  try {
    return await asked
  } catch (error) {
    if (!(error instanceof McpError)) throw error
    if (error.code === -32601) throw new CliError(`${label} has no ${kind}`, undefined, { cause: error })
    // Older servers have a number of their own for resources that are not there.
    if (name === undefined || (error.code !== -32602 && error.code !== -32002)) throw error
    const listed =
      kind === 'prompts'
        ? gather(client.prompts()).then(all => all.map(each => each.name))
        : gather(client.resources()).then(all => all.map(({ uri }) => uri))
    const names = await listed.catch((): readonly string[] => [])
    if (names.length === 0 || names.includes(name)) throw error
    const fix = meantText(name, names) ?? `Its ${kind} are ${brief(names.join(', '), 300)}`
    throw new CliError(`The server has no ${kind.slice(0, -1)} ${clip(name)}`, fix, { cause: error })
  }
}

/** Whether somebody waited in vain. */
function isTimeout(error: unknown): boolean {
  return error instanceof McpError ? error.kind === 'timeout' : error instanceof Error && error.name === 'TimeoutError'
}

/** What failed, in a line, for whoever goes on all the same. */
export function errorWords(error: unknown): string {
  if (error instanceof McpError) return told(error)
  return messageOf(error)
}

/** A refusal of the server, with its number. */
function told({ message, data, code }: McpError): string {
  const more = typeof data === 'string' ? `: ${data}` : ''
  return code === undefined ? message : `The server refused the request: ${message}${more} (${code})`
}

/** What kept credentials from being had, or that there were none. */
function authorizationIn(error: unknown): Error | undefined {
  if (error instanceof AuthorizationError) return error
  if (!(error instanceof ConnectionError)) return undefined
  if (error.kind === 'unauthorized') return error.cause instanceof Error ? error.cause : error
  return error.status === 401 || error.status === 403 ? error : undefined
}

/** The failure for credentials that are missing, not valid, or do not suffice: each needs something else. */
function credentialFailure(error: unknown, needs: Error, { label, headers: sent }: FailedServer): CliError {
  const { status, headers } = error instanceof ConnectionError ? error : {}
  const challenge = headers?.['www-authenticate']
  const rule = needs instanceof AuthorizationError ? needs.rule : undefined
  const said = needs.message.replace(credentialsFix, '')
  const failure = (exit: Exit, message: string, fix: string): CliError => new CliError(message, fix, { exit, cause: error })
  // Whoever is signed in already is not told to sign in.
  if (rule === 'scope' || lacksScope(status, challenge)) return failure(1, `${label}: ${said}`, moreScopes(challenge))
  if (status === 403)
    return failure(1, `${label} refuses the request: ${said}`, 'Check what your token or key may do at this server')
  if (rule === 'address') return failure(3, `${label} requires a sign-in: ${said}`, secure)
  if (sent !== undefined && carriesToken(sent)) return failure(3, `${label} refuses the token: ${said}`, newToken)
  return failure(3, `${label} requires a sign-in: ${said}`, signIn)
}

/** Whether the headers hold credentials already. */
export function carriesToken(headers: Readonly<Record<string, string>>): boolean {
  return Object.keys(headers).some(name => name.toLowerCase() === 'authorization')
}

/** Options of the library are none of the command. */
function remedyOf({ suggestion }: Problem, again: string): string | undefined {
  if (suggestion?.includes('give connect the option') !== true) return suggestion
  return `Run vivarium doctor ${again}. A served tape speaks only the revisions that it contains: try --revision`
}

/** The exit code for a problem, by its category. */
function exitOf({ category, code }: Problem): Exit {
  // A sign-in helps against neither of the two.
  if (category === 'auth_required') return code === 'CONFIRMATION_REQUIRED' || code === 'SCOPE_INSUFFICIENT' ? 1 : 3
  return category === 'transient' ? 4 : 1
}

/** A file that cannot be served says why on standard error, as `serve` would have told it; or Node does. */
function unserved(error: ConnectionError, label: string, said: readonly string[], again: string): CliError | undefined {
  const at = said.findLastIndex(line => line.startsWith('vivarium: '))
  if (at !== -1) {
    const message = brief(said[at]?.slice('vivarium: '.length) ?? '', 600)
    const [, fix] = /^\s*→ (.+)$/.exec(said[at + 1] ?? '') ?? []
    // The doctor knows which variables the program gets.
    const look = /\b[A-Z][A-Z0-9]*_[A-Z0-9_]+\b/.test(message) ? [`run vivarium doctor ${again} to see what is missing`] : []
    const fixes = [...(fix === undefined ? [] : [brief(fix, 300)]), ...look].join(', or ')
    return new CliError(message, fixes === '' ? undefined : `${fixes.charAt(0).toUpperCase()}${fixes.slice(1)}`, { cause: error })
  }
  const [, name] = /Cannot find package '([^']+)'/.exec(said.join('\n')) ?? []
  if (name === undefined) return undefined
  const missing = brief(name, 80)
  return new CliError(`${label} cannot be loaded: the package ${missing} is not installed`, `Run npm install ${missing}`, {
    cause: error,
  })
}

/** The failure for a connection that could not be opened or broke. */
function connectionFailure(error: ConnectionError, again: string): CliError {
  // A program that has nothing to serve ends by itself, and well.
  const fix = /exit code 0\b/.test(error.message)
    ? 'A file must export its server: export const server = createServer({ … }). A program must serve until its standard input ends'
    : `Run vivarium doctor ${again} to see why`
  const isSaid = error.status === undefined || error.message.includes(String(error.status))
  return new CliError(`${error.message}${isSaid ? '' : ` (HTTP ${error.status})`}`, fix, { exit: 4, cause: error })
}

// A program that serves at an address instead of its standard input and output: noticed by what it says, so that nobody waits for it.

/** The address at which a program says that it serves; of a bare port the one of this machine. */
export function addressIn(line: string): string | undefined {
  const says = /\b(?:listen|running|serv|start|available|ready)\w*\b[^\n]*?/.source
  const [, url] = new RegExp(`${says}(https?://[\\w.[\\]:-]*:\\d+[\\w./-]*)`, 'i').exec(line) ?? []
  if (url !== undefined) return url.replace(/[.,]+$/, '')
  const [, port] = new RegExp(`${says}\\bport:? ?(\\d{2,5})\\b`, 'i').exec(line) ?? []
  return port === undefined ? undefined : `http://localhost:${port}`
}

/** Why no more is waited for. */
class ServesHttp extends Error {
  override readonly name = 'ServesHttp'
  readonly url: string

  constructor(url: string) {
    super(`The program serves HTTP at ${url} and writes nothing to standard output`)
    this.url = url
  }
}

/** Who serves HTTP and speaks on stdio as well has answered so long after the last question. */
const answerMs = 2_000

/**
 * Notices a program that serves HTTP instead of stdio. `probeMs`: when the handshake goes out at the latest; an older server may be
 * silent until then.
 */
export function watchForHttp(probeMs: number) {
  const found = new AbortController()
  const asked = performance.now() + probeMs
  let timer: ReturnType<typeof setTimeout> | undefined
  const line = (text: string): void => {
    const url = timer === undefined ? addressIn(text) : undefined
    if (url === undefined) return
    const waitMs = Math.max(0, asked - performance.now()) + answerMs
    timer = setTimeout(() => found.abort(new ServesHttp(url)), waitMs)
    timer.unref()
  }
  return {
    /** Aborted once the program has told an address, and has answered nothing on its output. */
    signal: found.signal,
    /** Hears a line of the program. */
    line,
    /** Hears what comes on standard output and is no message. */
    wrap: (connection: Connection): Connection =>
      tapConnection(connection, ({ way, text }) => {
        if (way === 'in' && !text.startsWith('{') && !text.startsWith('[')) line(text)
      }),
    /** Stops watching. */
    end: () => clearTimeout(timer),
  }
}
