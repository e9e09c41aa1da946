/**
 * The platform resolves names itself and tells nobody to which address, so that an address can be refused only by how it is written.
 * In a browser that is the page's own network; Workers reach public addresses alone.
 */
import { addressFault, type Destination, type Ranges, refused } from './destination.ts'

/** Gives every address of a name. */
export type Resolve = (name: string) => Promise<readonly string[]>

/** Knows none: the platform will. */
export const systemResolve: Resolve = async () => []

/** Endings and single labels that no public name has (RFC 6762, RFC 8375, RFC 6761 and ICANN's list of private names). */
const inside = /^[^.]+$|\.(local|internal|home\.arpa|lan|corp|home|test|invalid|onion)$/

/** None, where the destination may be spoken to. */
export async function addressesOf(to: Destination, resolve: Resolve, allowed: Ranges): Promise<readonly string[]> {
  if (to.loopback) return []
  const literal = to.host.includes(':') || /^[\d.]+$/.test(to.host)
  if (!literal && inside.test(to.host)) throw refused(to.url, 'its name is no public one; only public addresses are spoken to')
  for (const address of literal ? [to.host] : await resolve(to.host)) {
    const fault = addressFault(address, allowed)
    if (fault !== undefined) throw refused(to.url, `it is ${fault}; only public addresses are spoken to`)
  }
  return []
}
