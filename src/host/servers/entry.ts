/** A server as a host is told of it: from a file, or from the program itself. */
import type { ConnectOptions } from '../../client/options.ts'
import type { Target } from '../../client/target.ts'
import { clip } from '../../jsonrpc/limits.ts'
import { type Awaitable, isRecord } from '../../jsonrpc/message.ts'
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
  | (ServerPlace & {
      readonly headers?: Readonly<Record<string, string>>
      readonly timeoutMs?: number
      /** How to connect: `auth`, `revisions`, … What the host answers itself (sampling, questions, MCP Live) it keeps. */
      readonly connect?: ConnectOptions
      readonly autoApprove?: readonly string[]
      readonly live?: LiveSection
    })

/** Where it is; `url` as in config files. */
type ServerPlace = { readonly target: Opening } | { readonly url: string | URL }

export function knownServer(name: string, option: ServerOption): KnownServer {
  return { disabled: false, autoApprove: [], live: {}, digest: name, ...detailed(name, option), name }
}

function detailed(name: string, option: ServerOption): { readonly target: Opening } {
  if (isRecord(option) && 'url' in option && !(option instanceof URL)) {
    const { url: target, ...more } = option
    return { ...more, target }
  }
  const given = isRecord(option) && 'target' in option ? option : { target: option }
  if (isOpening(given.target)) return given
  const wanted = `a URL, { command, args }, or that as { target, headers, live, … }`
  throw new TypeError(`Server "${clip(name)}" has nothing to connect to: give ${wanted}`)
}

function isOpening(target: unknown): target is Opening {
  if (typeof target === 'string' || typeof target === 'function') return true
  return isRecord(target) && (target instanceof URL || 'command' in target || 'start' in target)
}
