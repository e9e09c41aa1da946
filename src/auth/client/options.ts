/** The options of every way to authorize, and what each is told about the server that it is for. */
import type { Clock, Duration } from '../../core/clock.ts'
import type { Credentials } from '../../core/credentials.ts'
import type { Outbound } from '../../core/outbound.ts'
import { revisions } from '../../revisions/index.ts'
import type { Browser } from './browser.ts'
import type { TokenStorage } from './storage.ts'

/** Options that all ways to sign in have. */
export interface CommonOptions {
  /** Scopes to request in addition to those that the server names. Default: none. */
  readonly scopes?: readonly string[]
  /**
   * The authorization server at which the client is registered; any other is refused. Default: the first one that the MCP server
   * names, which a client with a `clientId` then keeps for as long as this object or its `storage` remembers it.
   */
  readonly issuer?: string
  /**
   * The token endpoint of the authorization server; a different one in its metadata is refused. Default: the one in the metadata,
   * which must have the origin of the issuer if there is a `clientId`.
   */
  readonly tokenEndpoint?: string
  /** How long it may take to get a token, the user included. Default 10 min. */
  readonly timeout?: Duration
  /** Private address ranges in which authorization servers may be, for example `10.1.0.0/16`. Default: none. */
  readonly allow?: readonly string[]
  /** Makes the requests to authorization servers. Default: requests to public https addresses and those in `allow` only. */
  readonly outbound?: Outbound
}

/** The secret or key by which a client authenticates. */
export interface ClientKey {
  /** The secret that the authorization server gave the client. */
  readonly clientSecret?: string
  /** Signs assertions instead of sending a secret (private_key_jwt): PKCS #8 in PEM, or an imported key. */
  readonly privateKey?: string | SigningKey
  /** The algorithm of the private key. Default ES256. */
  readonly algorithm?: SigningAlgorithm
  /** The id of the private key, if the authorization server knows several. */
  readonly keyId?: string
}

/** Options of the authorization code grant, by which a user signs in. */
export interface OAuthClientOptions extends CommonOptions {
  /** The client id, if the client was registered by hand. Default: the client registers itself. */
  readonly clientId?: string
  /** The client secret, if the client was registered with one. */
  readonly clientSecret?: string
  /** The https URL of a client metadata document, used as the client id if the authorization server supports it. */
  readonly clientMetadataUrl?: string
  /** Shows the sign-in to the user. Default: `cli()`. */
  readonly browser?: Browser
  /** Where tokens and registrations are kept. Default: in memory. */
  readonly storage?: TokenStorage
  /** Requests tokens that only this client can use (DPoP), and refuses others. Default false. */
  readonly dpop?: boolean
}

/** Options of the client credentials grant, for programs that act for themselves. */
export interface ClientCredentialsOptions extends CommonOptions, ClientKey {
  /** The client id. */
  readonly clientId: string
  /** Requests tokens that only this client can use (DPoP), and refuses others. Default false. */
  readonly dpop?: boolean
}

/** Options for a workload that proves its identity by a signed assertion of its platform. */
export interface WorkloadOptions extends CommonOptions {
  /** Returns the signed identity of the workload (a JWT) for an audience, which is the issuer of the authorization server. */
  readonly assertion: (audience: string) => string | Promise<string>
  /** The client id. Default: none is sent. */
  readonly clientId?: string
  /** Requests tokens that only this client can use (DPoP), and refuses others. Default false. */
  readonly dpop?: boolean
}

/** Options for users whom an identity provider of their company signs in. */
export interface EnterpriseOptions extends CommonOptions, ClientKey {
  /** The client id at the authorization server of the MCP server. */
  readonly clientId: string
  /** The identity provider of the company. */
  readonly identityProvider: ClientKey & {
    /** The token endpoint of the identity provider, by https. */
    readonly tokenEndpoint: string
    /** The client id at the identity provider. */
    readonly clientId: string
    /** Returns the ID token of the user. */
    readonly subjectToken: () => string | Promise<string>
    /** The type of that token. Default: an OpenID Connect ID token. */
    readonly subjectTokenType?: string
  }
}

/** What a way to sign in gets to know about the connection. */
export interface AuthorizationContext {
  /** The address of the MCP server, http or https. */
  readonly server: URL
  /** Returns the function for requests to authorization servers; `allow` lists private ranges that it may reach. */
  readonly reach: (allow: readonly string[]) => Outbound
  /** The revisions that the client speaks, by their ids. */
  readonly revisions: readonly string[]
  /** The clock for expiry times and timers. */
  readonly clock: Clock
  /** The name under which the client registers. */
  readonly clientName: string
  /** Reports an event of the sign-in to the log of the client. */
  readonly trace: (event: string, detail: unknown) => void
}

/** The same, once it is said what may be reached. */
export interface OutboundContext extends AuthorizationContext {
  readonly outbound: Outbound
}

/**
 * A way to sign in, for the option `auth` of `connect`. Made by `oauth`, `clientCredentials`, `enterprise`, `workloadIdentity` or
 * `bearer`.
 */
export interface ClientAuthorization {
  /** Creates the part that adds tokens to the requests of one connection. `connect` calls it. */
  authorizer(context: AuthorizationContext): Credentials
}

/** Whether the client speaks a revision with this rule of authorization. */
export function anyRevisionHas({ revisions: spoken }: AuthorizationContext, rule: 'authorizesItself' | 'announcesPkce'): boolean {
  return revisions.some(({ id, http }) => http[rule] && spoken.includes(id))
}

// Private keys as operators have them: PKCS #8 in PEM.

/** Algorithms for signing assertions, by their names in metadata. */
export type SigningAlgorithm = 'ES256' | 'ES384' | 'ES512' | 'RS256' | 'PS256' | 'EdDSA'

/** A `CryptoKey` of the Web Crypto API. */
export type SigningKey = Awaited<ReturnType<typeof crypto.subtle.importKey>>
