/** What a protected resource says of itself (RFC 9728), and the challenges that point to it (RFC 6750 §3, RFC 9728 §5.1). */
import { isScope } from '../../core/scope.ts'
import type { Settings } from './options.ts'

export const wellKnown = '/.well-known/oauth-protected-resource'

/** What follows from the address of a server. */
export interface ResourceFacts {
  /** Where the document is: the well-known path goes before the path of the resource (RFC 9728 §3.1). */
  readonly metadataUrl: string
  /** The paths at which it is served: that one, and the bare one for clients that try only it. */
  readonly paths: ReadonlySet<string>
  readonly document: string
}

export function describeResource(resource: string, settings: Settings, name: string | undefined): ResourceFacts {
  const { origin, pathname } = new URL(resource)
  const path = `${wellKnown}${pathname === '/' ? '' : pathname}`
  const { issuer, scopesSupported } = settings
  const document = {
    resource,
    authorization_servers: [issuer],
    ...(scopesSupported.length === 0 ? {} : { scopes_supported: scopesSupported }),
    bearer_methods_supported: ['header'],
    ...(name === undefined ? {} : { resource_name: name }),
  }
  return { metadataUrl: `${origin}${path}`, paths: new Set([wellKnown, path]), document: JSON.stringify(document) }
}

export interface Challenge {
  readonly error?: 'invalid_token' | 'invalid_request' | 'insufficient_scope'
  readonly description?: string
  readonly scopes: readonly string[]
}

/** The scopes of a token may be anything; only what is a scope gets into a header, and not without end. */
const mostScopes = 100

/** `metadataUrl`: undefined where no document says more. */
export function challengeText(metadataUrl: string | undefined, { error, description, scopes }: Challenge): string {
  const parts = [
    ...(error === undefined ? [] : [`error="${error}"`]),
    ...(description === undefined ? [] : [`error_description="${description.replace(/[^\x20-\x21\x23-\x5b\x5d-\x7e]/g, "'")}"`]),
    // A challenge has at least one parameter (RFC 6750 §3).
    metadataUrl === undefined ? 'realm="mcp"' : `resource_metadata="${metadataUrl}"`,
    ...(scopes.length === 0 ? [] : [`scope="${[...new Set(scopes)].filter(isScope).slice(0, mostScopes).join(' ')}"`]),
  ]
  return `Bearer ${parts.join(', ')}`
}
