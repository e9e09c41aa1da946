/** A server that could not be reached at all, as an error that names the address and what to do about it. */
import { ConnectionError } from '../jsonrpc/connection.ts'
import { clip } from '../jsonrpc/limits.ts'

/** `why`: in the words of the system, for what it has no code of its own for. */
export function unreached(address: URL, code: string | undefined, why: string, cause: unknown): ConnectionError {
  return new ConnectionError('refused', messageFor(address, code, why), { cause })
}

function messageFor({ origin, hostname, host, protocol }: URL, code: string | undefined, why: string): string {
  // The web knows no origin of addresses that are not its own.
  const where = clip(origin === 'null' ? `${protocol}//${host}` : origin)
  switch (code) {
    case 'ECONNREFUSED':
      return `Nothing listens on ${where} (ECONNREFUSED); start the server, or correct host and port of the address`
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
      return `No host ${clip(hostname)} can be found (${code}); correct the address, or look at the network`
    case 'EHOSTUNREACH':
    case 'ENETUNREACH':
      return `There is no way to ${where} from here (${code}); look at the network, or correct the address`
    default:
      return `${where} cannot be reached: ${clip(why)}`
  }
}
