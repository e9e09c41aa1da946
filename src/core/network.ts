/**
 * Which callers count as one where nobody signed in: those whose addresses one customer can choose from. Of IPv4 that is a single
 * address. Of IPv6 it is a network of 56 bits, which is what providers usually give to one customer; those with the same first 48 bits,
 * which is what companies and whoever rents a server often get, are one site. An address of IPv4 that is written as one of IPv6 is one
 * of IPv4. Every limit that tells callers apart by address asks here.
 */

/** Text that all addresses of a network have in common, however they are written. What is no address is a network of its own. */
export function networkOf(address: string): string {
  if (!address.includes(':')) return address
  const before = known.get(address)
  if (before !== undefined) return before
  const network = networkOfGroups(groupsOf(address)) ?? address
  if (known.size >= mostKnown) known.clear()
  known.set(address, network)
  return network
}

/** Asked for with every call, mostly by the same few. */
const known = new Map<string, string>()
const mostKnown = 1_000

/** The first 48 bits of a network of IPv6, or of the account that is named after one. Of IPv4: undefined, it is all there is. */
export function siteOf(network: string): string | undefined {
  const end = network.lastIndexOf(':')
  return end === -1 ? undefined : network.slice(0, end)
}

/** Whether an address is this machine's own: then it says nothing about where a caller is. */
export function isLoopback(network: string): boolean {
  return network === '127.0.0.1' || network === loopback
}

/** The eight numbers of an address; undefined where it is none. */
function groupsOf(address: string): readonly number[] | undefined {
  const [text = ''] = address.split('%')
  const halves = text.replace(/(\d+)\.(\d+)\.(\d+)\.(\d+)$/, inGroups).split('::')
  if (halves.length > 2) return undefined
  const [before = [], after = []] = halves.map(half => (half === '' ? [] : half.split(':')))
  const missing = 8 - before.length - after.length
  if (halves.length === 2 ? missing < 1 : missing !== 0) return undefined
  const groups = [...before, ...new Array<string>(missing).fill('0'), ...after]
  return groups.every(group => /^[\da-f]{1,4}$/i.test(group)) ? groups.map(group => Number.parseInt(group, 16)) : undefined
}

function inGroups(_: string, ...bytes: readonly string[]): string {
  const [a = 0, b = 0, c = 0, d = 0] = bytes.slice(0, 4).map(Number)
  return `${(a * 256 + b).toString(16)}:${(c * 256 + d).toString(16)}`
}

function networkOfGroups(groups: readonly number[] | undefined): string | undefined {
  if (groups === undefined) return undefined
  const [a = 0, b = 0, c = 0, d = 0, e = 0, f = 0, g = 0, h = 0] = groups
  const noPrefix = a === 0 && b === 0 && c === 0 && d === 0 && e === 0
  if (noPrefix && f === 0xffff) return [g >> 8, g & 0xff, h >> 8, h & 0xff].join('.')
  if (noPrefix && f === 0 && g === 0 && h === 1) return loopback
  return [a, b, c, d & 0xff00].map(group => group.toString(16)).join(':')
}

const loopback = '::1'
