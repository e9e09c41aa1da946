/** The store of a gateway's file, for a second process beside the gateway. */
import { existsSync } from 'node:fs'
import { why } from '../../core/suggestion.ts'
import { servingFault } from '../../gateway/config/frame.ts'
import type { FoundServer, GatewayConfig } from '../../gateway/index.ts'
import type { TrustSettings } from '../../gateway/trust/settings.ts'
import { clip } from '../../jsonrpc/limits.ts'
import { openStore } from '../../stores/open.ts'
import type { Store } from '../../stores/store.ts'
import { CliError } from '../errors.ts'
import { brief } from '../terminal/text.ts'

/** Undefined where there is none to look into: it is in memory, or nothing was kept yet. */
export async function storeIn({ file, frame }: Pick<GatewayConfig<unknown>, 'file' | 'frame'>): Promise<Store | undefined> {
  const { store: url = 'memory:' } = frame
  const path = /^sqlite:(?:\/\/(?=\/))?(.+)$/.exec(url)?.[1]
  if (url === 'memory:' || (path !== undefined && !existsSync(path))) return undefined
  return openStore(url).catch((error: unknown) => {
    throw new CliError(4, `The store of ${file} cannot be opened: ${brief(String(error), 200)}`, 'Correct store')
  })
}

/** The same, for what makes no sense without. */
export async function neededStore(config: Pick<GatewayConfig<unknown>, 'file' | 'frame'>): Promise<Store> {
  const store = await storeIn(config)
  if (store !== undefined) return store
  throw new CliError(
    1,
    `${config.file} keeps nothing that a second process could see: it has no store, or nothing was kept there yet`,
    'Add store: sqlite:PATH to it (the path counts from the folder of the file), and start the gateway',
  )
}

export function serverNamed({ file, servers }: Pick<GatewayConfig<unknown>, 'file' | 'servers'>, name: string): FoundServer {
  const server = servers.get(name)
  if (server !== undefined) return server
  throw new CliError(1, `${file} has no server ${clip(name)}`, `There are ${[...servers.keys()].join(', ')}`)
}

interface ServingOptions {
  readonly stdio?: boolean
  readonly port?: number
  readonly host?: string
  readonly unprotected?: boolean
}

/** The config with what keeps it from being served in this way among its faults. */
export function asServed(config: GatewayConfig<TrustSettings>, options: ServingOptions): GatewayConfig<TrustSettings> {
  if (options.stdio === true) return config
  const { frame, trust, file, lines } = config
  const place = { ...frame.listen, ...(options.host !== undefined && { host: options.host }) }
  const fault = servingFault({ place, auth: trust.auth, unprotected: options.unprotected === true })
  if (fault === undefined) return config
  const { member, message, fix } = fault
  const line = lines.get(member) ?? 1
  return { ...config, faults: [...config.faults, { file, line, why: why('CONFIG_INVALID', `gateway.${member}`, message, fix) }] }
}
