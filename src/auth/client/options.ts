/** The options of every way to authorize, and what each is told about the server that it is for. */
import type { Clock, Duration } from '../../core/clock.ts'
import type { Credentials } from '../../core/credentials.ts'
import type { Outbound } from '../../core/outbound.ts'
import { revisions } from '../../revisions/index.ts'
import type { Browser } from './browser.ts'
import type { TokenStorage } from './storage.ts'

/** Options that every way to get tokens has. */
export interface CommonOptions {
  /** Scopes to ask for beside those that the server names. Default: none. */
  readonly scopes?: readonly string[]
  /**
   * The authorization server that the client is registered at; another one is refused. Default: the first one that the MCP server
   * names. A client with a `clientId` then belongs to that one, for as long as this object or its `storage` remembers.
   */
  readonly issuer?: string
  /**
   * The token endpoint of that authorization server; another one in its metadata is refused. Default: the one that the metadata names.
   * A client with a `clientId` then refuses one at another origin.
   */
  readonly tokenEndpoint?: string
  /** How long it may take to get a token, the user included. Default 10 min. */
  readonly timeout?: Duration
  /** Private ranges in which authorization servers may lie, such as a company's own network: `10.1.0.0/16`. Default: none. */
  readonly allow?: readonly string[]
  /** Makes the requests to authorization servers. Default: a guard that keeps to public https addresses and those in `allow`. */
  readonly outbound?: Outbound
}

/** How a client proves that it is the one that was registered. */
export interface ClientKey {
  /** The secret that the authorization server gave the client. */
  readonly clientSecret?: string
  /** Signs assertions instead (private_key_jwt): PKCS #8 in PEM, or a key that is already imported. */
  readonly privateKey?: string | SigningKey
  /** Of the private key. Default ES256. */
  readonly algorithm?: SigningAlgorithm
  /** Of the private key, where the authorization server knows several. */
  readonly keyId?: string
}

/** Options of the authorization code grant, by which a user signs in. */
export interface OAuthClientOptions extends CommonOptions {
  /** Of a client that was registered by hand. Default: the client registers itself. */
  readonly clientId?: string
  /** Of a client that was registered with one. */
  readonly clientSecret?: string
  /** The https address of a client metadata document, which is the client's name where the authorization server supports that. */
  readonly clientMetadataUrl?: string
  /** Shows the sign-in to the user. Default: `cli()`. */
  readonly browser?: Browser
  /** Keeps tokens and registrations. Default: in memory. */
  readonly storage?: TokenStorage
  /** Asks for tokens that only this client can use (DPoP), and for no others. Default false. */
  readonly dpop?: boolean
}

/** Options of the client credentials grant, for programs that act for themselves. */
export interface ClientCredentialsOptions extends CommonOptions, ClientKey {
  /** The client as it was registered. */
  readonly clientId: string
  /** Binds tokens to a key of this client (RFC 9449). */
  readonly dpop?: boolean
}

/** Options for a workload that proves its identity by a signed assertion of its platform. */
export interface WorkloadOptions extends CommonOptions {
  /** Gives the workload's signed identity (a JWT) for an audience, which is the issuer of the authorization server. */
  readonly assertion: (audience: string) => string | Promise<string>
  /** The client as it was registered. */
  readonly clientId?: string
  /** Binds tokens to a key of this client (RFC 9449). */
  readonly dpop?: boolean
}

/** Options for users whom an identity provider of their company signs in. */
export interface EnterpriseOptions extends CommonOptions, ClientKey {
  /** Of the client at the MCP server's authorization server. */
  readonly clientId: string
  /** Who knows the user: the identity provider of the enterprise. */
  readonly identityProvider: ClientKey & {
    readonly tokenEndpoint: string
    /** Of the client at the identity provider. */
    readonly clientId: string
    /** Gives the user's ID token of the identity provider. */
    readonly subjectToken: () => string | Promise<string>
    /** Default: an OpenID Connect ID token. */
    readonly subjectTokenType?: string
  }
}

/** What every way to authorize is told about the server that it is for. */
export interface AuthorizationContext {
  /** The address of the MCP server, by http or https. */
  readonly server: URL
  /** The way to addresses that a peer chose; `allow` lists special ranges that are meant all the same. */
  readonly reach: (allow: readonly string[]) => Outbound
  /** The revisions that the client speaks, by their ids. */
  readonly revisions: readonly string[]
  readonly clock: Clock
  /** How the client names itself when it registers. */
  readonly clientName: string
  readonly trace: (event: string, detail: unknown) => void
}

/** The same, once it is said what may be reached. */
export interface OutboundContext extends AuthorizationContext {
  readonly outbound: Outbound
}

/** A way to authorize, as `connect` takes it. Made by `oauth`, `clientCredentials`, `enterprise`, `workloadIdentity` and `bearer`. */
export interface ClientAuthorization {
  authorizer(context: AuthorizationContext): Credentials
}

/** Whether the client speaks a revision with this rule of authorization. */
export function anyRevisionHas({ revisions: spoken }: AuthorizationContext, rule: 'authorizesItself' | 'announcesPkce'): boolean {
  return revisions.some(({ id, http }) => http[rule] && spoken.includes(id))
}

// Private keys as operators have them: PKCS #8 in PEM.

/** The signatures that can be made, by the names that metadata uses. */
export type SigningAlgorithm = 'ES256' | 'ES384' | 'ES512' | 'RS256' | 'PS256' | 'EdDSA'

/** A `CryptoKey`, called by what makes one: only the types of browsers have that name. */
export type SigningKey = Awaited<ReturnType<typeof crypto.subtle.importKey>>
