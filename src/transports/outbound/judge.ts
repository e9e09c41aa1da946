/** What can be said against an address without asking the network: it may be refused later all the same, when its name is looked up. */
import { OutboundError } from '../../core/outbound.ts'
import { faultOf, readRanges } from './address.ts'
import { type Destination, readDestination, refused } from './destination.ts'
import type { OutboundOptions } from './outbound.ts'

/** The destination, or why it is none. */
export function judge(url: string, { loopback = false, allow = [] }: OutboundOptions = {}): Destination | OutboundError {
  try {
    const to = readDestination(url, loopback)
    const literal = to.host.includes(':') || /^[\d.]+$/.test(to.host)
    const fault = literal && !to.loopback ? faultOf(to.host, readRanges(allow)) : undefined
    return fault === undefined ? to : refused(to.url, `it is ${fault}; only public addresses are spoken to`)
  } catch (error) {
    if (error instanceof OutboundError) return error
    throw error
  }
}
