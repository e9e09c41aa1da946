/** A server of a gateway's file, by its name. */
import type { FoundServer, GatewayConfig } from '../../gateway/index.ts'
import { clip } from '../../jsonrpc/limits.ts'
import { CliError } from '../exit.ts'

export function serverNamed({ file, servers }: Pick<GatewayConfig<unknown>, 'file' | 'servers'>, name: string): FoundServer {
  const server = servers.get(name)
  if (server !== undefined) return server
  throw new CliError(1, `${file} has no server ${clip(name)}`, `There are ${[...servers.keys()].join(', ')}`)
}
