/**
 * An issuer's own metadata (RFC 8414, OpenID Connect Discovery), fetched as bounded JSON: where its keys are, and where it can be
 * asked about tokens.
 */
import { clip } from '../../jsonrpc/limits.ts'
import { isRecord } from '../../jsonrpc/message.ts'
import { isSecure } from './options.ts'

/** The address that the metadata gives for `member`; an IssuerError if there is none, or if it is somebody else's metadata. */
export async function issuerAddress(issuer: string, member: 'jwks_uri' | 'introspection_endpoint'): Promise<string> {
  let failure: unknown
  for (const url of metadataUrls(issuer)) {
    try {
      const metadata = await fetchJson(url)
      if (metadata['issuer'] !== issuer)
        throw new IssuerError(`The metadata at ${clip(url)} is of another issuer: ${clip(String(metadata['issuer']))}`)
      return checked(metadata[member], member, url)
    } catch (error) {
      failure = error
    }
  }
  throw failure
}

/** Where a path belongs differs between the two standards, and both are in use. */
function metadataUrls(issuer: string): string[] {
  const { origin, pathname } = new URL(issuer)
  const path = pathname.replace(/\/$/, '')
  const urls = [
    `${origin}/.well-known/oauth-authorization-server${path}`,
    `${origin}/.well-known/openid-configuration${path}`,
    `${origin}${path}/.well-known/openid-configuration`,
  ]
  return [...new Set(urls)]
}

function checked(address: unknown, member: string, url: string): string {
  if (typeof address === 'string' && URL.canParse(address) && isSecure(new URL(address))) return address
  throw new IssuerError(`The metadata at ${clip(url)} has no usable ${member}; name the address in the options of oauth`)
}

/** JSON from an address that the author or the issuer they chose has named: bounded in time and size, no redirects. */
const fetchLimits = { bytes: 256 * 1024, ms: 5_000 }

/** What the door needs of the issuer could not be had: nobody's token is at fault. */
export class IssuerError extends Error {
  override readonly name = 'IssuerError'
}

interface JsonRequest {
  readonly method?: 'GET' | 'POST'
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
}

/** A JSON object, or an IssuerError. */
export async function fetchJson(url: string, request: JsonRequest = {}, limits = fetchLimits): Promise<Record<string, unknown>> {
  let text: string
  try {
    const response = await fetch(url, {
      ...request,
      headers: { accept: 'application/json', ...request.headers },
      redirect: 'error',
      signal: AbortSignal.timeout(limits.ms),
    })
    text = await readText(response, limits.bytes)
    if (!response.ok) throw new Error(`it answered with status ${response.status}`)
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : 'the request failed'
    throw new IssuerError(`Cannot read ${clip(url)}: ${clip(why)}`, { cause })
  }
  const value = parsed(text)
  if (!isRecord(value)) throw new IssuerError(`What ${clip(url)} answered is no JSON object`)
  return value
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

async function readText(response: Response, most: number): Promise<string> {
  const decoder = new TextDecoder()
  let text = ''
  let bytes = 0
  for await (const chunk of response.body ?? []) {
    bytes += chunk.length
    if (bytes > most) throw new Error(`its answer is longer than ${most} bytes`)
    text += decoder.decode(chunk, { stream: true })
  }
  return text + decoder.decode()
}
