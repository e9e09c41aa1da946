/** Opening a client to a target, with the options that all verbs share, and failures told by what helps against them. */

import { homedir } from 'node:os'
import { carriesCredentials } from '../auth/addresses.ts'
import { AuthorizationError, type Browser, type ClientAuthorization, cli, oauth } from '../auth/client/index.ts'
import { userStorage } from '../auth/client/user-storage.ts'
import { type ConnectOptions, connect } from '../client/index.ts'
import type { Target } from '../client/target.ts'
import { type Duration, toMilliseconds } from '../core/clock.ts'
import { expand } from '../host/config/entry.ts'
import { clip } from '../jsonrpc/limits.ts'
import { given } from '../jsonrpc/message.ts'
import { type RevisionId, revisions } from '../revisions/index.ts'
import { CliError, type Io } from './io.ts'
import { missingLists } from './lists.ts'
import { asideOf } from './print.ts'
import { type CommandLike, connectionGroup as group, type VerbCall } from './program.ts'
import { carriesToken, explainServerError, watchForHttp } from './server-errors.ts'
import { type ResolvedTarget, resolveTarget, splitTarget } from './target.ts'
import { foreignText } from './terminal/text.ts'
import { type TrustOption, trustOption } from './trust/consent.ts'

/** How a server is found and spoken with. */
export interface AccessOptions extends TrustOption {
  /** Lines `Name: value`, with variables. */
  readonly header?: readonly string[]
  /** The name of the variable that holds a bearer token. */
  readonly bearerEnv?: string
  /** Variables for the program: names, or `NAME=value`. */
  readonly env?: readonly string[]
}

/** Declares them for what stands between a client and a server, or in the place of one. */
export function accessOptions(command: CommandLike): CommandLike {
  return trustOption(command, group)
    .option('--header <line>', headerAbout, { repeated: true, group })
    .option('--bearer-env <NAME>', bearerAbout, { group })
    .option('--env <NAME>', envAbout, { repeated: true, group })
}

/** What the help says of the options that most verbs have. */
export const headerAbout = `Add a header to every request, with variables filled in: 'X-Key: \${KEY}'`
export const bearerAbout = 'Send the token in this environment variable as Authorization: Bearer'
const envAbout = 'Pass an environment variable to the program: NAME or NAME=value'
/** What the help says of a target. */
export const targetAbout = 'the server: URL, file, npm package or configured name; a program goes last, after --'

/** The options of every verb that speaks with a server. */
export interface ConnectingOptions extends AccessOptions {
  /** Sign in where the server asks for it. */
  readonly auth: boolean
  /** The folder in which the program is started. */
  readonly cwd?: string
  /** The only file in which a name is looked up. */
  readonly config?: string
  /** Speak this revision only. */
  readonly revision?: RevisionId
  /** How long to wait for an answer, in milliseconds. */
  readonly timeout?: number
  /** Show the server's standard error and its log. */
  readonly verbose?: boolean
  /** For people, or for programs. */
  readonly format?: 'text' | 'json'
}

/** The options of every verb that speaks with a server. */
export function connectingOptions(command: CommandLike): CommandLike {
  return trustOption(command, group)
    .option('--config <file>', 'Look the name up in this config file only', { group })
    .option('--header <line>', headerAbout, { repeated: true, group })
    .option('--bearer-env <NAME>', bearerAbout, { group })
    .option('--no-auth', 'Do not sign in when the server asks for it', { group })
    .option('--env <NAME>', envAbout, { repeated: true, group })
    .option('--cwd <folder>', 'Start the program in this folder', { group })
    .option('--revision <id>', 'Speak only this revision of the protocol', { choices: revisions.map(({ id }) => id), group })
    .option(
      '--timeout <time>',
      'Wait this long for a response: 500ms, 30s, 5m (default: 60s; 3m to open a package that must be fetched)',
      { parse: milliseconds, group },
    )
    .option('--verbose', "Show the server's standard error and its log messages", { group })
}

/** `30s`, and a plain number of seconds. */
export function milliseconds(text: string): number {
  if (/^\d+(\.\d+)?$/.test(text)) return Number(text) * 1_000
  try {
    return toMilliseconds(text as Duration, 'the time')
  } catch (error) {
    throw new TypeError(`"${clip(text)}" is not a time. Write 500ms, 30s, 5m, or a number of seconds`, { cause: error })
  }
}

/** A client, and what is known of its target. */
export type OpenedTarget = Awaited<ReturnType<typeof openClient>>

/** How long a server may take to open, as the help says; one that is fetched first takes longer. */
const openMs = 60_000
/** A package manager downloads the package first. */
const fetchMs = 180_000

/** Ends with a CliError where the target cannot be reached. */
async function openClient(call: VerbCall<ConnectingOptions>, io: Io, more: Partial<ConnectOptions> = {}) {
  const { target: words, rest } = splitTarget(call)
  const resolved = await resolveTarget(words, io, call.options)
  const { label } = resolved
  const said: string[] = []
  const waited = asideOf(io).work(`waiting for ${label}`)
  const watch = watchForHttp(probeMs(resolved.target))
  const target = targetFor(resolved, call.options, io, said, watch.line)
  const { missing, onTrace } = missingLists()
  const options = optionsFor(resolved, call.options, io)
  const begun = performance.now()
  try {
    const timeout = AbortSignal.timeout(waitMs(resolved, call.options))
    const client = await connect(target, {
      // Its first answer may take as long as fetching it does.
      ...(isFetched(target) && { timeout: fetchMs }),
      probeTimeout: probeMs(target),
      onTrace,
      ...options,
      ...more,
      wrap: connection => watch.wrap(more.wrap?.(connection) ?? connection),
      signal: AbortSignal.any([io.signal, timeout, watch.signal]),
    })
    return {
      client,
      /** As people read it. */
      label,
      /** As it would be typed again. */
      again: resolved.again,
      target,
      /** What a verb was given beside its target. */
      rest,
      /** The methods of lists that the server declares and does not know, as far as they were asked for. */
      missing,
      /** How long it took to open. */
      openedMs: performance.now() - begun,
      /** With which another client to the same target is opened. */
      options,
    }
  } catch (error) {
    throw explainServerError(error, { label, said, again: resolved.again, headers: options.headers })
  } finally {
    watch.end()
    waited()
  }
}

/**
 * How long a server may be silent to the first question of today before it is taken for an older one. One that is fetched first is
 * silent for another reason.
 */
export function probeMs(target: ResolvedTarget['target']): number {
  return isFetched(target) ? 15_000 : 5_000
}

/** How long one waits for a server to open. */
export function waitMs({ target }: ResolvedTarget, { timeout }: Pick<ConnectingOptions, 'timeout'>): number {
  return timeout ?? (isFetched(target) ? fetchMs : openMs)
}

/** Whether a program is fetched from a registry before it runs. */
export function isFetched(target: ResolvedTarget['target']): boolean {
  return typeof target === 'object' && 'command' in target && /\b(npx|uvx|bunx)(\.cmd)?$/.test(target.command)
}

/** Runs with a client, and closes it whatever happens. */
export async function withClient(
  call: VerbCall<ConnectingOptions>,
  io: Io,
  work: (opened: OpenedTarget) => Promise<number>,
  more: Partial<ConnectOptions> = {},
): Promise<number> {
  const opened = await openClient(call, io, more)
  try {
    return await work(opened)
  } catch (error) {
    throw explainServerError(error, { label: opened.label, again: opened.again, headers: opened.options.headers })
  } finally {
    await opened.client.close()
  }
}

/** The last lines of standard error that a failure quotes. */
const tailLines = 16

/** What a program says on its standard error is quoted when it fails; otherwise it would come between the lines of ours. */
export function targetFor(
  { target }: ResolvedTarget,
  { verbose = false }: Pick<ConnectingOptions, 'verbose'>,
  io: Io,
  said: string[] = [],
  onLine: (line: string) => void = () => {},
): ResolvedTarget['target'] {
  if (typeof target !== 'object' || !('command' in target)) return target
  const heard = (line: string): void => {
    if (verbose) asideOf(io).line(foreignText(line))
    onLine(line)
    said.push(line)
    if (said.length > tailLines) said.shift()
  }
  return { ...target, stderr: heard }
}

/** The options of a client, by those of the command and of the config. */
export function optionsFor(resolved: ResolvedTarget, options: ConnectingOptions, io: Io): ConnectOptions {
  const { timeout, revision, verbose = false } = options
  const headers = headersOf(resolved, options, io)
  const auth = options.auth ? authorizationOf(resolved.target, headers, io) : undefined
  return {
    ...resolved.options,
    signal: io.signal,
    ...(Object.keys(headers).length > 0 && { headers }),
    ...given({ auth, timeout, revisions: revision && [revision] }),
    ...(verbose && {
      logLevel: 'debug',
      onLog: ({ level, data }) => asideOf(io).line(foreignText(`${level}: ${JSON.stringify(data)}`)),
    }),
  }
}

/**
 * The headers of the config and of the options. Variables are filled in here, so that secrets stand neither in a history nor in a list
 * of processes.
 */
export function headersOf(
  { options }: Pick<ResolvedTarget, 'options'>,
  { header = [], bearerEnv }: Pick<AccessOptions, 'header' | 'bearerEnv'>,
  { env }: Io,
): Readonly<Record<string, string>> {
  const named = Object.fromEntries(
    header.map(line => {
      const [, name, value] = /^([!#$%&'*+.^_`|~\w-]+):\s*(.*)$/.exec(line) ?? []
      if (name === undefined || value === undefined)
        throw new CliError(`--header: "${clip(line)}" is not a header`, "Write 'Name: value'")
      const expanded = expand(value, { env, folder: process.cwd(), home: homedir() })
      if ('why' in expanded) throw new CliError(`--header ${name}: ${expanded.why.message}`, expanded.why.fix)
      return [name, expanded.text]
    }),
  )
  const headers = { ...options.headers, ...named }
  if (bearerEnv === undefined) return headers
  const token = env[bearerEnv]
  if (token === undefined || token === '')
    throw new CliError(`--bearer-env: the variable ${clip(bearerEnv)} is not set`, `Set it: export ${clip(bearerEnv)}=…`)
  return { ...headers, authorization: `Bearer ${token}` }
}

/** Nothing of it is loaded or asked before a server refuses. */
export function authorizationOf(
  target: Target,
  headers: Readonly<Record<string, string>>,
  io: Io,
): ClientAuthorization | undefined {
  const hasAddress = typeof target === 'string' || target instanceof URL
  if (!hasAddress || carriesToken(headers)) return undefined
  // Nobody signs in where anybody on the way could read it; a server that does not ask for it may be spoken with all the same.
  if (!carriesCredentials(new URL(target))) return undefined
  return oauth({ storage: userStorage(io.env), browser: io.interactive ? cli() : nobody })
}

/** Refuses a sign-in that nobody could complete. */
const unseen = (): Promise<never> => Promise.reject(new AuthorizationError('browser', 'signing in needs a terminal'))

/** There is nobody who could look at a page; so no client is registered for it either. Tokens that are kept are used and renewed. */
const nobody: Browser = { redirectUri: unseen, authorize: unseen }
