/** What one can connect to, and how a connection to it is opened: again and again, as probing and respawning need. */

import type { Limits } from '../engine/limits.ts'
import type { Connection } from '../jsonrpc/connection.ts'

export interface Command {
  readonly command: string
  readonly args?: readonly string[]
  readonly env?: Readonly<Record<string, string>>
  readonly cwd?: string
  readonly stderr?: 'inherit' | 'ignore' | ((line: string) => void)
}

export type Target = string | URL | Command | Connection

export interface TargetOptions {
  readonly headers?: Readonly<Record<string, string>> | undefined
  readonly fetch?: typeof fetch | undefined
  readonly limits: Limits
}

/** A way to open connections, and a name under which what was learned of the server is remembered. */
export interface Opener {
  readonly kind: 'stdio' | 'http' | 'websocket' | 'connection'
  readonly name: string | undefined
  open(): Promise<Connection>
  /** The same server over the old pair of HTTP endpoints. */
  openOldPair?(): Promise<Connection>
}

/** Carriers are loaded when first needed: a program that speaks HTTP only never loads child processes. */
export function openerOf(target: Target, options: TargetOptions): Opener {
  if (typeof target === 'string' || target instanceof URL) return urlOpener(new URL(target), options)
  if ('command' in target) return commandOpener(target, options)
  let used = false
  return {
    kind: 'connection',
    name: undefined,
    open: () => {
      if (used)
        return Promise.reject(
          new Error(
            'The connection was closed by the server while it was being probed; give a URL or a command, which can be opened anew',
          ),
        )
      used = true
      return Promise.resolve(target)
    },
  }
}

function urlOpener(url: URL, options: TargetOptions): Opener {
  const { headers, limits } = options
  const common = {
    limits,
    ...(headers === undefined ? {} : { headers }),
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
        }),
    }
  }
  if (url.protocol !== 'http:' && url.protocol !== 'https:') {
    throw new TypeError(`Cannot connect to ${url.protocol}// addresses; use http, https, ws or wss, or give { command }`)
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
