/** From a name to the addresses that may be connected to. Asked once: what was checked is what is used. */
import { lookup } from 'node:dns/promises'
import { OutboundError } from '../../core/outbound.ts'
import { clip } from '../../jsonrpc/limits.ts'
import { addressFault, type Destination, isOwnName, type Ranges, refused, shown } from './destination.ts'

/** Gives every address of a name. Called once per hop. */
export type Resolve = (name: string) => Promise<readonly string[]>

/** As the operating system resolves names, its hosts file included. */
export const systemResolve: Resolve = async name => (await lookup(name, { all: true, verbatim: true })).map(each => each.address)

/** More than any honest name has; each may be tried in turn. */
const addressCount = 32

/**
 * The addresses behind a destination. One forbidden address among them refuses the name: a name that points inside and outside
 * at once is waiting for the right moment.
 */
export async function addressesOf(to: Destination, resolve: Resolve, allowed: Ranges): Promise<readonly string[]> {
  // Never asked of DNS, which might say otherwise.
  if (isOwnName(to.host)) return ['127.0.0.1', '::1']
  if (to.loopback) return [to.host]
  const literal = to.host.includes(':') || /^[\d.]+$/.test(to.host)
  const addresses = literal ? [to.host] : await ask(to, resolve)
  for (const address of addresses) {
    const fault = addressFault(address, allowed)
    if (fault === undefined) continue
    const where = literal ? 'it' : `${clip(address)}, to which its name leads,`
    throw refused(to.url, `${where} is ${fault}; only public addresses are spoken to`)
  }
  return addresses
}

async function ask(to: Destination, resolve: Resolve): Promise<readonly string[]> {
  let found: readonly string[]
  try {
    found = await resolve(to.host)
  } catch (cause) {
    throw new OutboundError('failed', `The name of ${shown(to.url)} cannot be resolved; check its spelling`, cause)
  }
  if (found.length === 0) throw new OutboundError('failed', `The name of ${shown(to.url)} has no address; check its spelling`)
  if (found.length > addressCount) throw refused(to.url, `its name has ${found.length} addresses; the limit is ${addressCount}`)
  return found
}
