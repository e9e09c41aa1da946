/**
 * What a client can connect to, and how a connection to it is opened. Opening is repeatable, because finding the revision and
 * restarting a server may need several connections.
 */

import type { Credentials } from '../core/credentials.ts'
import type { Limits } from '../engine/limits.ts'
import type { Connection } from '../jsonrpc/connection.ts'
import { clip } from '../jsonrpc/limits.ts'

/** The command that starts a stdio server. */
export interface Command {
  /** The program: a path, or a name that is found by PATH. It is started without a shell. */
  readonly command: string
  /** The arguments of the program. Default: none. */
  readonly args?: readonly string[]
  /** Environment variables in addition to a small set that is inherited (PATH, HOME, …). Default: none. */
  readonly env?: Readonly<Record<string, string>>
  /** The working directory. Default: that of this process. */
  readonly cwd?: string
  /** What happens to standard error: shown (`inherit`, the default), discarded (`ignore`), or passed line by line to a function. */
  readonly stderr?: 'inherit' | 'ignore' | ((line: string) => void)
}

/** A server: its address, the command that starts it, or an open connection. */
export type Target = string | URL | Command | Connection

/** The options that concern carriers. */
interface TargetOptions {
  readonly headers?: Readonly<Record<string, string>> | undefined
  readonly fetch?: typeof fetch | undefined
  readonly authorizer?: Credentials | undefined
  readonly limits: Limits
}

/** Opens connections to one server. `name` is the key under which its revision is remembered. */
export interface Opener {
  readonly kind: 'stdio' | 'http' | 'websocket' | 'connection'
  readonly name: string | undefined
  open(): Promise<Connection>
  /** Opens the same address as HTTP+SSE (2024-11-05). */
  openOldPair?(): Promise<Connection>
}

/**
 * Makes the opener of a target. Carriers are loaded on first use: a program that only uses HTTP never loads child processes.
 */
export function openerOf(target: Target, options: TargetOptions): Opener {
  if (typeof target === 'string' || target instanceof URL) return urlOpener(addressOf(target), options)
  if ('command' in target) return commandOpener(target, options)
  if (typeof target.start !== 'function') throw new TypeError('connect needs a URL, a { command, args } or a connection')
  let used = false
  return {
    // Over HTTP the revision is found in another way, whoever made the connection.
    kind: target.carrier === 'http' ? 'http' : 'connection',
    name: undefined,
    open: () => {
      if (used)
        return Promise.reject(
          new Error(
            'The server closed the connection while its revision was being determined. Pass a URL or a command, which can be opened again',
          ),
        )
      used = true
      return Promise.resolve(target)
    },
  }
}

const protocols: readonly string[] = ['http:', 'https:', 'ws:', 'wss:']

/** Parses a URL; the error suggests how to write what was probably meant. */
function addressOf(target: string | URL): URL {
  if (URL.canParse(target)) {
    const url = new URL(target)
    if (protocols.includes(url.protocol)) return url
  }
  const text = String(target)
  const fix = /^[\w.-]+:\d+(\/|$)/.test(text)
    ? `Write the full URL: http://${clip(text)}`
    : `Pass ${commandFor(text)} to start a program, or a full URL such as http://127.0.0.1:3000/mcp`
  throw new TypeError(`Cannot connect to "${clip(text)}": it is not an http, https, ws or wss URL. ${fix}`)
}

const interpreters: readonly (readonly [RegExp, string])[] = [
  [/\.[cm]?[jt]s$/, 'node'],
  [/\.py$/, 'python3'],
]

/** How a text that looks like a program would be started. */
function commandFor(text: string): string {
  const program = clip(text.trim())
  const interpreter = interpreters.find(([ending]) => ending.test(program))?.[1]
  if (/^\w+:\/\//.test(program) || program === '') return '{ command, args }'
  const [command = '', ...args] = program.split(/\s+/)
  if (args.length > 0) return `{ command: ${quoted(command)}, args: [${args.map(quoted).join(', ')}] }`
  return interpreter === undefined
    ? `{ command: ${quoted(program)} }`
    : `{ command: ${quoted(interpreter)}, args: [${quoted(program)}] }`
}

function quoted(text: string): string {
  return `'${text}'`
}

function urlOpener(url: URL, options: TargetOptions): Opener {
  const { headers, limits, authorizer } = options
  const common = {
    limits,
    ...(headers === undefined ? {} : { headers }),
    ...(authorizer === undefined ? {} : { authorizer }),
    ...(options.fetch === undefined ? {} : { fetch: options.fetch }),
  }
  if (url.protocol === 'ws:' || url.protocol === 'wss:') {
    return {
      kind: 'websocket',
      name: url.href,
      open: async () =>
        (await import('../transports/websocket/client.ts')).webSocketClientConnection(url, {
          limits,
          ...(headers === undefined ? {} : { headers }),
          ...(authorizer === undefined ? {} : { authorizer }),
        }),
    }
  }
  return {
    kind: 'http',
    name: url.origin + url.pathname,
    open: async () => (await import('../transports/http/client.ts')).httpClientConnection(url, common),
    openOldPair: async () => (await import('../transports/sse/client.ts')).sseClientConnection(url, common),
  }
}

function commandOpener(command: Command, { limits }: TargetOptions): Opener {
  return {
    kind: 'stdio',
    name: JSON.stringify([command.command, command.args ?? [], command.cwd ?? '']),
    open: async () => (await import('../transports/stdio/client.ts')).stdioClientConnection({ ...command, limits }),
  }
}
