/**
 * Which authorization server may be shown what a client holds: its secret, its signature, a refresh token, a code. Every
 * request for tokens passes `admit`, whatever grant makes it; no metadata, challenge or reconnection gets around it.
 *
 * A client that was registered by hand belongs to the issuer that the option `issuer` names, else to the first one it is shown to.
 */
import { digestText } from '../../core/digest.ts'
import { clip } from '../../jsonrpc/limits.ts'
import { isRecord } from '../../jsonrpc/message.ts'
import { AuthorizationError } from '../addresses.ts'
import type { OutboundContext } from './options.ts'
import type { TokenStorage } from './storage.ts'

/** As much of an authorization server's metadata as says who it is. */
interface IssuerNames {
  readonly issuer: string
  readonly token_endpoint?: string | undefined
}

/** An authorization server, as what is meant for it is kept. */
interface Party {
  readonly issuer: string
  /** The origin of its token endpoint. Absent in what was kept before it was looked at. */
  readonly tokenOrigin?: string | undefined
}

interface BindingOptions {
  readonly issuer?: string | undefined
  readonly tokenEndpoint?: string | undefined
  /** The client that was registered by hand, if one was. One that registers itself is kept by issuer, and needs no more. */
  readonly client: string | undefined
  /** It holds something that would serve whoever is shown it, whatever MCP server it is used for: that itself, where it is a text. */
  readonly secret: boolean | string
}

/** Of one authorization object, shared by all connections that are made with it. */
export class Binding {
  readonly options: BindingOptions
  /** Where clients belong that were shown to an authorization server since. */
  readonly first = new Map<string, Party>()

  constructor(options: BindingOptions) {
    this.options = options
  }
}

/** Holds the connections to one MCP server to the authorization server that their credentials were first used for. */
export class IssuerBinding {
  readonly #options: BindingOptions
  readonly #first: Map<string, Party>
  readonly #scope: string
  readonly #server: string
  readonly #records: AuthorizationRecords

  constructor({ options, first }: Binding, { href }: URL, records: AuthorizationRecords) {
    this.#options = options
    this.#first = first
    // A name alone may be the same at two authorization servers; a secret never is.
    this.#scope = options.secret === false ? href : ''
    this.#server = href
    this.#records = records
  }

  /** The issuer that the client belongs to, where that is known. */
  async issuer(): Promise<string | undefined> {
    return this.#options.issuer ?? (await this.#known())?.issuer
  }

  /** Throws where nothing is to be shown to this one; binds nothing yet. */
  async check(server: IssuerNames): Promise<void> {
    this.#judge(server, await this.#known())
  }

  /** The same, before something is shown to it: from now on the client belongs to it. */
  async admit(server: IssuerNames): Promise<void> {
    const stored = await this.#stored()
    // Nothing is awaited from here to `set`: of two connections that are opened at once the first one binds the other.
    const first = this.#first.get(this.#scope)
    this.#judge(server, first ?? stored)
    const { client } = this.#options
    if (client === undefined || first !== undefined) return
    const party = partyOf(server)
    this.#first.set(this.#scope, party)
    for (const name of await this.#names()) await this.#records.writeOwner(client, name, party)
  }

  /** Under which names it is kept where the client belongs: the secret, for all servers that it is used for, before the server. */
  async #names(): Promise<readonly string[]> {
    const { client, secret } = this.#options
    if (typeof secret !== 'string') return [this.#server]
    return [`secret ${await digestText(JSON.stringify([client, secret]))}`, this.#server]
  }

  async #known(): Promise<Party | undefined> {
    return this.#first.get(this.#scope) ?? (await this.#stored())
  }

  /** From an earlier run. The option has the last word: it is how a user says that the client has moved. */
  async #stored(): Promise<Party | undefined> {
    const { client, issuer } = this.#options
    if (client === undefined) return undefined
    let stored: Party | undefined
    try {
      for (const name of await this.#names()) stored ??= await this.#records.owner(client, name)
    } catch (error) {
      if (issuer === undefined) throw unknownOwner(client, error)
    }
    return issuer === undefined || stored?.issuer === issuer ? stored : undefined
  }

  #judge(server: IssuerNames, known: Party | undefined): void {
    const issuer = this.#options.issuer ?? known?.issuer
    if (issuer !== undefined && server.issuer !== issuer) throw issuerMismatch(issuer, server.issuer)
    const { tokenEndpoint } = this.#options
    const named = server.token_endpoint ?? ''
    if (tokenEndpoint !== undefined) {
      if (URL.parse(named)?.href !== URL.parse(tokenEndpoint)?.href) throw endpointMoved(server, tokenEndpoint)
      return
    }
    const { tokenOrigin } = partyOf(server)
    const before = known?.tokenOrigin
    // Back to the issuer's own origin it may always go.
    if (before !== undefined && tokenOrigin !== before && tokenOrigin !== originOf(server.issuer))
      throw endpointMoved(server, before)
  }
}

function partyOf({ issuer, token_endpoint: endpoint }: IssuerNames): Party {
  return { issuer, tokenOrigin: originOf(endpoint) ?? originOf(issuer) }
}

/**
 * The name under which tokens and registrations are kept: the issuer, and the origin of its token endpoint where that is
 * another. So nothing that was got with one endpoint is found, and shown, when metadata names one elsewhere.
 */
function partyName(server: IssuerNames): string {
  const { issuer, tokenOrigin } = partyOf(server)
  return tokenOrigin === originOf(issuer) ? issuer : `${issuer} ${tokenOrigin}`
}

function originOf(address: string | undefined): string | undefined {
  return address === undefined ? undefined : URL.parse(address)?.origin
}

/** `named`: what the server says now. */
export function issuerMismatch(expected: string, named: string): AuthorizationError {
  return new AuthorizationError(
    'issuer-mismatch',
    `These credentials belong to the authorization server ${clip(expected)}, but the MCP server now names ${clip(named)}. Nothing was sent to it. If the client is registered there, set the option issuer to it`,
  )
}

function endpointMoved({ issuer, token_endpoint: named = 'none' }: IssuerNames, expected: string): AuthorizationError {
  return new AuthorizationError(
    'issuer-mismatch',
    `The metadata of ${clip(issuer)} now names the token endpoint ${clip(named)}, but these credentials belong to ${clip(expected)}. Nothing was sent to it. If you trust the new one, set the option tokenEndpoint to it`,
  )
}

function unknownOwner(client: string, error: unknown): AuthorizationError {
  const why = error instanceof Error ? error.message : String(error)
  return new AuthorizationError(
    'options',
    `The token storage cannot be read (${clip(why)}), so it is not known which authorization server the client ${clip(client)} belongs to. Nothing was sent. Repair the storage, or set the option issuer`,
  )
}

// What is kept of tokens and registrations, and under which keys: by authorization server first (`partyName`), so that nothing of
// one is used at another.

/** A private key on an elliptic curve as a JWK. The web's own type is not there for every program that reads our types. */
export interface PrivateJwk {
  readonly kty?: string
  readonly crv?: string
  readonly x?: string
  readonly y?: string
  readonly d?: string
}

/** The tokens of one client for one resource, as they are kept in a storage. */
export interface OAuthTokens {
  /** The access token. */
  readonly access: string
  /** How it is sent: alone, or with a proof for each request. */
  readonly type: 'bearer' | 'dpop'
  /** Gets the next access token without the user. */
  readonly refresh?: string
  /** Milliseconds since the epoch. */
  readonly expiresAt?: number
  /** From when on it is better renewed before it is used. */
  readonly renewAt?: number
  /** What was asked for with it. */
  readonly scopes: readonly string[]
  /** The private key that the tokens are bound to. */
  readonly key?: PrivateJwk
}

/** A client as an authorization server has registered it. */
export interface ClientRegistration {
  /** The client id that the authorization server gave. */
  readonly id: string
  /** Absent for public clients. */
  readonly secret?: string
  /** How the client proves itself at the token endpoint. */
  readonly method: string
  /** The one that was registered; another one needs a new registration. */
  readonly redirectUri: string
  /** Milliseconds since the epoch, where the secret does not last for ever. */
  readonly secretExpiresAt?: number
}

/** What tokens are for, and who gives them. */
interface Audience {
  readonly server: IssuerNames
  readonly resource: string
}

/** Failing storage costs a new sign-in, never the connection. */
export class AuthorizationRecords {
  readonly #storage: TokenStorage
  readonly #trace: OutboundContext['trace']

  constructor(storage: TokenStorage, trace: OutboundContext['trace']) {
    this.#storage = storage
    this.#trace = trace
  }

  async tokens({ server, resource }: Audience, client: string): Promise<OAuthTokens | undefined> {
    const value = await this.#read(['tokens', partyName(server), resource, client])
    return isTokens(value) ? value : undefined
  }

  keepTokens({ server, resource }: Audience, client: string, tokens: OAuthTokens): Promise<void> {
    return this.#write(['tokens', partyName(server), resource, client], tokens)
  }

  async registration(server: IssuerNames): Promise<ClientRegistration | undefined> {
    const value = await this.#read(['client', partyName(server)])
    return isRegistration(value) ? value : undefined
  }

  keepRegistration(server: IssuerNames, registration: ClientRegistration): Promise<void> {
    return this.#write(['client', partyName(server)], registration)
  }

  dropRegistration(server: IssuerNames): Promise<void> {
    return this.#guard(() => this.#storage.delete(JSON.stringify(['client', partyName(server)])))
  }

  /** Where a client belongs that somebody registered by hand. Throws where that cannot be read: then nobody knows. */
  async owner(client: string, resource: string): Promise<Party | undefined> {
    const text = await this.#storage.get(JSON.stringify(['home', client, resource]))
    const value: unknown = text === undefined ? undefined : JSON.parse(text)
    if (typeof value === 'string') return { issuer: value }
    return isParty(value) ? value : undefined
  }

  writeOwner(client: string, resource: string, party: Party): Promise<void> {
    return this.#write(['home', client, resource], party)
  }

  async #read(key: readonly string[]): Promise<unknown> {
    try {
      const text = await this.#storage.get(JSON.stringify(key))
      return text === undefined ? undefined : JSON.parse(text)
    } catch (error) {
      this.#trace('token-storage-failed', error)
      return undefined
    }
  }

  #write(key: readonly string[], value: unknown): Promise<void> {
    return this.#guard(() => this.#storage.set(JSON.stringify(key), JSON.stringify(value)))
  }

  async #guard(fn: () => Promise<void>): Promise<void> {
    try {
      await fn()
    } catch (error) {
      this.#trace('token-storage-failed', error)
    }
  }
}

function isTokens(value: unknown): value is OAuthTokens & Record<string, unknown> {
  return isRecord(value) && typeof value['access'] === 'string' && Array.isArray(value['scopes'])
}

function isParty(value: unknown): value is Party & Record<string, unknown> {
  return isRecord(value) && typeof value['issuer'] === 'string' && typeof value['tokenOrigin'] === 'string'
}

function isRegistration(value: unknown): value is ClientRegistration & Record<string, unknown> {
  return isRecord(value) && typeof value['id'] === 'string' && typeof value['redirectUri'] === 'string'
}
