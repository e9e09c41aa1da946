/** A URL read once: everything later is done with these parts, so that no second reader can see another address in it. */
import { OutboundError } from '../../core/outbound.ts'
import { clip } from '../../jsonrpc/limits.ts'
import { isLoopback } from './address.ts'

/** Ports that the Fetch standard blocks (https://fetch.spec.whatwg.org/#port-blocking): an HTTP request must not be read there. */

const bad = new Set([
  0, 1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79, 87, 95, 101, 102, 103, 104, 109, 110, 111, 113,
  115, 117, 119, 123, 135, 137, 139, 143, 161, 179, 389, 427, 465, 512, 513, 514, 515, 526, 530, 531, 532, 540, 548, 554, 556,
  563, 587, 601, 636, 989, 990, 993, 995, 1719, 1720, 1723, 2049, 3659, 4045, 4190, 5060, 5061, 6000, 6566, 6665, 6666, 6667,
  6668, 6669, 6679, 6697, 10080,
])

function isBadPort(port: number): boolean {
  return bad.has(port)
}

export interface Destination {
  readonly url: URL
  readonly secure: boolean
  /** A name, or an address without brackets. */
  readonly host: string
  readonly port: number
  /** One of our own, by its name or its address; only where the operator allows it. */
  readonly loopback: boolean
}

const urlLength = 8_192

/** Letters, digits, hyphens and underscores in labels of at most 63; what else a URL may carry, no public name does. */
const namePattern = /^(?=.{1,253}$)[a-z0-9_](?:[a-z0-9_-]{0,62})(?:\.[a-z0-9_][a-z0-9_-]{0,62})*$/

/** Reads and checks an address without asking the network. `allowLoopback` lets http and https to this machine through. */
export function readDestination(given: string | URL, allowLoopback: boolean): Destination {
  const url = parse(given)
  if (url.protocol !== 'https:' && url.protocol !== 'http:') throw refused(url, 'only https is spoken; give an https address')
  if (url.username !== '' || url.password !== '')
    throw refused(url, 'it carries a user name or password; leave out what stands before the @')
  const host = url.hostname.replace(/^\[(.*)\]$/, '$1')
  if (host.endsWith('.')) throw refused(url, 'its name ends with a dot; leave that out')
  const own = isOwnName(host) || isLoopback(host)
  if (own && !allowLoopback)
    throw refused(url, 'it leads to this machine itself; set loopback: true if that is meant, for development')
  const secure = url.protocol === 'https:'
  if (!secure && !own) throw refused(url, 'it is plain http; only https is spoken to other machines')
  if (!host.includes(':') && !namePattern.test(host)) throw refused(url, 'its name is none that DNS has; check its spelling')
  const port = url.port === '' ? (secure ? 443 : 80) : Number(url.port)
  if (isBadPort(port)) throw refused(url, `port ${port} belongs to another protocol; use 443 or a port of your own`)
  return { url, secure, host, port, loopback: own }
}

/** `localhost` and all below it are this machine by definition (RFC 6761 §6.3), whatever DNS says. */
export function isOwnName(host: string): boolean {
  return host === 'localhost' || host.endsWith('.localhost')
}

/** Without its query, which may carry what is nobody's business, and without credentials. */
export function shown(url: URL): string {
  return clip(`${url.protocol}//${url.host}${url.pathname}`)
}

export function refused(url: URL, why: string): OutboundError {
  return new OutboundError('refused', `The address ${shown(url)} is refused: ${why}`)
}

function parse(given: string | URL): URL {
  const text = typeof given === 'string' ? given : given.href
  if (text.length > urlLength)
    throw new OutboundError('refused', `An address of ${text.length} characters is refused: the limit is ${urlLength}`)
  try {
    return new URL(text)
  } catch {
    // What it said is not repeated: unparsed, nobody knows which part of it is a secret.
    throw new OutboundError('refused', 'An address is refused: it is no URL; give a whole one, https://…')
  }
}
