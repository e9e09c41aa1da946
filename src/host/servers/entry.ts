/** A server as a host is told of it: from a file, or from the program itself. */
import type { ConnectOptions } from '../../client/options.ts'
import type { Target } from '../../client/target.ts'
import type { Awaitable } from '../../jsonrpc/message.ts'
import type { LiveSection } from '../config/entry.ts'

/** What to connect to, each time anew. */
export type Opening = Target | (() => Awaitable<Target>)

export interface KnownServer {
  readonly name: string
  readonly target: Opening
  readonly headers?: Readonly<Record<string, string>>
  readonly timeoutMs?: number
  readonly connect?: ConnectOptions
  readonly disabled: boolean
  readonly autoApprove: readonly string[]
  readonly live: LiveSection
  /** Another one means: connect anew. */
  readonly digest: string
}

/** A server in the program's own words: what to connect to, or that with more about it. */
export type ServerOption =
  | Opening
  | {
      readonly target: Opening
      readonly headers?: Readonly<Record<string, string>>
      readonly timeoutMs?: number
      /** How to connect: `auth`, `revisions`, … What the host answers itself (sampling, questions, MCP Live) it keeps. */
      readonly connect?: ConnectOptions
      readonly autoApprove?: readonly string[]
      readonly live?: LiveSection
    }

export function knownServer(name: string, option: ServerOption): KnownServer {
  const given = isDetailed(option) ? option : { target: option }
  return { disabled: false, autoApprove: [], live: {}, digest: name, ...given, name }
}

function isDetailed(option: ServerOption): option is Exclude<ServerOption, Opening> {
  return typeof option === 'object' && !(option instanceof URL) && 'target' in option
}
