/**
 * The error for a server that cannot be reached at all. It names the address and what to check. HTTP and WebSocket clients
 * share it, so that the same failure reads the same on every carrier.
 */
import { ConnectionError } from '../jsonrpc/connection.ts'
import { clip } from '../jsonrpc/limits.ts'

/**
 * Makes the error. `code` is the system's error code, if there is one; `why` is the text used for codes without a message of
 * their own.
 */
export function unreachableError(address: URL, code: string | undefined, why: string, cause: unknown): ConnectionError {
  return new ConnectionError('refused', messageFor(address, code, why), { cause })
}

/** The text for the codes that users meet most often, and a general one for all others. */
function messageFor({ origin, hostname, host, protocol }: URL, code: string | undefined, why: string): string {
  // `URL.origin` is the string "null" for schemes such as ws:.
  const where = clip(origin === 'null' ? `${protocol}//${host}` : origin)
  switch (code) {
    case 'ECONNREFUSED':
      return `No server listens on ${where} (ECONNREFUSED); start the server, or correct host and port of the address`
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
      return `The host ${clip(hostname)} cannot be resolved (${code}); correct the address, or check the network`
    case 'EHOSTUNREACH':
    case 'ENETUNREACH':
      return `No network route to ${where} (${code}); check the network, or correct the address`
    default:
      return `${where} cannot be reached: ${clip(why)}`
  }
}
