/** Turns a gateway's file into options for `createGateway`. Separate from `read.ts`, which only parses and knows nothing of options. */
import { readFile } from 'node:fs/promises'
import type { Target } from '../../client/target.ts'
import { quoted } from '../../core/suggestion.ts'
import { faultText } from '../../host/config/read.ts'
import { clip } from '../../jsonrpc/limits.ts'
import { picked } from '../../jsonrpc/message.ts'
import type { GatewayOptions } from '../gateway.ts'
import type { TrustSettings } from '../trust/settings.ts'
import type { GatewayServer } from '../upstreams/entry.ts'
import { type FoundServer, type GatewayConfig, readGatewayConfig } from './read.ts'

/** Where variables and the home folder of a file come from. */
export interface GatewayFileOptions {
  /** Where variables come from. Default: the environment of this process. */
  readonly env?: Readonly<Record<string, string | undefined>>
  /** The home folder for `~`. Default: that of the user. */
  readonly home?: string
}

/** Reads a file, with all mistakes in it. Makes no connections. */
export async function readGatewayFile(file: string, options: GatewayFileOptions = {}): Promise<GatewayConfig<TrustSettings>> {
  let text: string
  try {
    text = await readFile(file, 'utf8')
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === 'ENOENT')
      throw new TypeError(`The file ${quoted(file)} does not exist`, { cause })
    throw new TypeError(`Reading the file ${quoted(file)} failed: ${clip(String(cause), 200)}`, { cause })
  }
  return readGatewayConfig(text, file, options)
}

/** Merges a file into options. Options that the program gives take precedence. */
export async function withConfig(given: GatewayOptions, options?: GatewayFileOptions): Promise<GatewayOptions> {
  if (given.config === undefined) return given
  const config = await readGatewayFile(given.config, options)
  // Starting despite a mistake could drop a rule, and with it a restriction.
  if (config.faults.length > 0) throw new TypeError(config.faults.map(faultText).join('\n'))
  return { ...optionsOf(config), ...given, servers: { ...optionsOf(config).servers, ...given.servers } }
}

/** The options for `createGateway` that a file describes; disabled servers are left out. */
export function optionsOf({ file, servers, frame, trust }: GatewayConfig<TrustSettings>): GatewayOptions {
  const used = [...servers].filter(([, { disabled }]) => !disabled)
  const { console: _, ...own } = frame
  return { ...own, ...trust, servers: Object.fromEntries(used.map(([name, server]) => [name, optionOf(server, file)])) }
}

/** An entry of the file as an option. */
function optionOf(server: FoundServer, main: string): GatewayServer {
  const target: Target = server.target
  return {
    target,
    ...picked(server, 'headers', 'timeoutMs', 'startTimeoutMs', 'auth', 'prefix'),
    // Other programs write included files, so their launches are pinned. The gateway's own file belongs to its operator.
    ...(server.file === main && { pinLaunch: false }),
  }
}
