/** An issuer's own metadata (RFC 8414, OpenID Connect Discovery): where its keys are, and where it can be asked about tokens. */
import { clip } from '../../jsonrpc/limits.ts'
import { fetchJson, IssuerError } from './fetch-json.ts'
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
export function metadataUrls(issuer: string): string[] {
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
