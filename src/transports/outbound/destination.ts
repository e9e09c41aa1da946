/**
 * Decides which addresses an outbound request may go to. A URL is parsed once into a `Destination`, and all later steps use its
 * parts, so that no second parser can read another address in it. Works without the network: name resolution is in `send.ts`.
 */

import ipaddr from 'ipaddr.js'
import { OutboundError } from '../../core/outbound.ts'
import { clip } from '../../jsonrpc/limits.ts'
import type { OutboundOptions } from './outbound.ts'

/**
 * Ports blocked by the Fetch standard (https://fetch.spec.whatwg.org/#port-blocking): other protocols listen there that might
 * act on an HTTP request.
 */
const badPorts = new Set([
  0, 1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79, 87, 95, 101, 102, 103, 104, 109, 110, 111, 113,
  115, 117, 119, 123, 135, 137, 139, 143, 161, 179, 389, 427, 465, 512, 513, 514, 515, 526, 530, 531, 532, 540, 548, 554, 556,
  563, 587, 601, 636, 989, 990, 993, 995, 1719, 1720, 1723, 2049, 3659, 4045, 4190, 5060, 5061, 6000, 6566, 6665, 6666, 6667,
  6668, 6669, 6679, 6697, 10080,
])

/** A checked address. */
export interface Destination {
  readonly url: URL
  readonly secure: boolean
  /** A name, or an IP address without brackets. */
  readonly host: string
  /** The host is written as an IP address. */
  readonly literal: boolean
  readonly port: number
  /** This machine, by name or address; only where the operator allows it. */
  readonly loopback: boolean
}

const urlLength = 8_192

/**
 * A DNS name: letters, digits, hyphens and underscores, in labels of at most 63 characters. URLs allow more, public names do
 * not.
 */
const namePattern = /^(?=.{1,253}$)[a-z0-9_](?:[a-z0-9_-]{0,62})(?:\.[a-z0-9_][a-z0-9_-]{0,62})*$/

/** Parses and checks an address without the network. `allowLoopback` permits http and https to this machine. */
export function readDestination(given: string | URL, allowLoopback: boolean): Destination {
  const url = parse(given)
  if (url.protocol !== 'https:' && url.protocol !== 'http:')
    throw refusedAddress(url, 'only https is allowed; give an https address')
  if (url.username !== '' || url.password !== '')
    throw refusedAddress(url, 'it contains a user name or password; remove the part before the @')
  const host = url.hostname.replace(/^\[(.*)\]$/, '$1')
  if (host.endsWith('.')) throw refusedAddress(url, 'its host name ends with a dot; remove the dot')
  const own = isOwnName(host) || isLoopback(host)
  if (own && !allowLoopback)
    throw refusedAddress(url, 'it is an address of this machine; set loopback: true to allow that for development')
  const secure = url.protocol === 'https:'
  if (!secure && !own) throw refusedAddress(url, 'it is plain http; only https is allowed to other machines')
  if (!host.includes(':') && !namePattern.test(host))
    throw refusedAddress(url, 'its host name is not a valid DNS name; check the spelling')
  const port = url.port === '' ? (secure ? 443 : 80) : Number(url.port)
  if (badPorts.has(port))
    throw refusedAddress(url, `port ${port} is reserved for another protocol; use 443 or an unreserved port`)
  const literal = host.includes(':') || /^[\d.]+$/.test(host)
  return { url, secure, host, literal, port, loopback: own }
}

/** `localhost` and all names below it are this machine by definition (RFC 6761 §6.3), whatever DNS says. */
export function isOwnName(host: string): boolean {
  return host === 'localhost' || host.endsWith('.localhost')
}

/** The address for messages: without query and credentials, which may be secret. */
export function displayUrl(url: URL): string {
  return clip(`${url.protocol}//${url.host}${url.pathname}`)
}

/** The error for an address that is not allowed. */
export function refusedAddress(url: URL, why: string): OutboundError {
  return new OutboundError('refused', `The address ${displayUrl(url)} is refused: ${why}`)
}

function parse(given: string | URL): URL {
  const text = typeof given === 'string' ? given : given.href
  if (text.length > urlLength)
    throw new OutboundError('refused', `An address of ${text.length} characters is refused: the limit is ${urlLength}`)
  try {
    return new URL(text)
  } catch {
    // The text is not repeated: without parsing it, nobody knows which part of it is a secret.
    throw new OutboundError('refused', 'An address is refused: it is not a valid URL; give a complete one, https://…')
  }
}

// Which IP addresses are public. The ranges come from `ipaddr.js`; this code adds those that the library treats as ordinary.

/** Special ranges that the operator allows: `10.1.0.0/16`, `fd00:1::/32`, or one address. */
export type Ranges = readonly [ipaddr.IPv4 | ipaddr.IPv6, number][]

const globalUnicast = ipaddr.parseCIDR('2000::/3')

/** Why an address must not be connected to, in one or two words; undefined for a public or allowed one. */
export function addressFault(address: string, allowed: Ranges = []): string | undefined {
  // A zone id names a local link, so only link-local addresses have one.
  if (address.includes('%')) return 'link-local'
  if (!isAddress(address)) return 'no address'
  const parsed = ipaddr.parse(address)
  if (allowed.some(range => parsed.kind() === range[0].kind() && parsed.match(range))) return undefined
  const range = parsed.range()
  if (range !== 'unicast') return words.get(range) ?? range
  if (parsed instanceof ipaddr.IPv6) return faultOf6(parsed)
  return undefined
}

/** True for the usual notation only. Other forms that `inet_aton` accepts (`127.1`, `0x7f.1`, `010.0.0.1`) are refused. */
function isAddress(text: string): boolean {
  return text.includes(':') ? ipaddr.IPv6.isValid(text) : ipaddr.IPv4.isValidFourPartDecimal(text)
}

/** True for 127.0.0.0/8 and ::1. */
function isLoopback(address: string): boolean {
  return isAddress(address) && !address.includes('%') && ipaddr.parse(address).range() === 'loopback'
}

/** Parses the ranges that an operator allows. A mistake throws at startup, not at the first request. */
export function readRanges(list: readonly string[]): Ranges {
  return list.map(text => {
    const whole = ipaddr.isValid(text) ? `${text}/${ipaddr.parse(text).kind() === 'ipv4' ? 32 : 128}` : text
    if (!ipaddr.isValidCIDR(whole))
      throw new TypeError(`allow: "${text}" is not a range of addresses; write 10.1.0.0/16, fd00:1::/32 or one address`)
    return ipaddr.parseCIDR(whole)
  })
}

/** Nothing outside 2000::/3 is assigned, and an ISATAP address can contain a private IPv4 address (RFC 5214). */
function faultOf6(address: ipaddr.IPv6): string | undefined {
  if (!address.match(globalUnicast)) return 'not global'
  const [, , , , high = 0, low] = address.parts
  return low === 0x5efe && (high & 0xfdff) === 0 ? 'a tunnel to an IPv4 address' : undefined
}

/** Clearer words for the range names of the library. */
const words = new Map([
  ['unspecified', 'an address of this host'],
  ['linkLocal', 'link-local'],
  ['uniqueLocal', 'private'],
  ['carrierGradeNat', 'shared by a carrier (CGNAT)'],
  ['deprecatedSiteLocal', 'private'],
  ['ipv4Mapped', 'an embedded IPv4 address'],
  ['rfc6145', 'an embedded IPv4 address'],
  ['rfc6052', 'an embedded IPv4 address'],
  ['6to4', 'a tunnel to an IPv4 address'],
  ['teredo', 'a tunnel to an IPv4 address'],
])

// The check for callers that only store an address. It may still be refused later, when its name is resolved.

/** Returns the destination, or the error that says why it is refused. */
export function judgeDestination(
  url: string,
  { loopback = false, allow = [] }: OutboundOptions = {},
): Destination | OutboundError {
  try {
    const to = readDestination(url, loopback)
    const fault = to.literal && !to.loopback ? addressFault(to.host, readRanges(allow)) : undefined
    return fault === undefined ? to : refusedAddress(to.url, `it is ${fault}; only public addresses are allowed`)
  } catch (error) {
    if (error instanceof OutboundError) return error
    throw error
  }
}
