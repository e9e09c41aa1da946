/** Which addresses are plain public ones. The ranges are those of `ipaddr.js`; where it is generous, this file is not. */
import ipaddr from 'ipaddr.js'

/** Ranges that are let through though they are special: `10.1.0.0/16`, `fd00:1::/32`, or one address. */
export type Ranges = readonly [ipaddr.IPv4 | ipaddr.IPv6, number][]

const globalUnicast = ipaddr.parseCIDR('2000::/3')

/** Why this address is no place to connect to, in one or two words; undefined for a public one. */
export function faultOf(address: string, allowed: Ranges = []): string | undefined {
  // A zone names one of our own links, so that only link-local addresses carry one.
  if (address.includes('%')) return 'link-local'
  if (!isAddress(address)) return 'no address'
  const parsed = ipaddr.parse(address)
  if (allowed.some(range => parsed.kind() === range[0].kind() && parsed.match(range))) return undefined
  const range = parsed.range()
  if (range !== 'unicast') return words.get(range) ?? range
  if (parsed instanceof ipaddr.IPv6) return faultOf6(parsed)
  return undefined
}

/** An address in its usual spelling: what `inet_aton` takes besides (`127.1`, `0x7f.1`, `010.0.0.1`) is none. */
export function isAddress(text: string): boolean {
  return text.includes(':') ? ipaddr.IPv6.isValid(text) : ipaddr.IPv4.isValidFourPartDecimal(text)
}

/** Whether this is one of our own: 127.0.0.0/8 or ::1, and no other way to write them. */
export function isLoopback(address: string): boolean {
  return isAddress(address) && !address.includes('%') && ipaddr.parse(address).range() === 'loopback'
}

/** Reads what an operator allows. A mistake in it is found at once, not at the first request. */
export function readRanges(list: readonly string[]): Ranges {
  return list.map(text => {
    const whole = ipaddr.isValid(text) ? `${text}/${ipaddr.parse(text).kind() === 'ipv4' ? 32 : 128}` : text
    if (!ipaddr.isValidCIDR(whole))
      throw new TypeError(`allow: "${text}" is no range of addresses; write 10.1.0.0/16, fd00:1::/32 or one address`)
    return ipaddr.parseCIDR(whole)
  })
}

/** Outside 2000::/3 nothing is given out; and a private IPv4 address may stand inside an IPv6 one (RFC 5214). */
function faultOf6(address: ipaddr.IPv6): string | undefined {
  if (!address.match(globalUnicast)) return 'not global'
  const [, , , , high = 0, low] = address.parts
  return low === 0x5efe && (high & 0xfdff) === 0 ? 'a tunnel to an IPv4 address' : undefined
}

/** Where the library's word for a range says little. */
const words = new Map([
  ['unspecified', 'this host itself'],
  ['linkLocal', 'link-local'],
  ['uniqueLocal', 'private'],
  ['carrierGradeNat', 'shared by a carrier'],
  ['deprecatedSiteLocal', 'private'],
  ['ipv4Mapped', 'an IPv4 address in disguise'],
  ['rfc6145', 'an IPv4 address in disguise'],
  ['rfc6052', 'an IPv4 address in disguise'],
  ['6to4', 'a tunnel to an IPv4 address'],
  ['teredo', 'a tunnel to an IPv4 address'],
])
