/**
 * What is kept of tokens and registrations, and under which keys: by authorization server first (`partyName`), so that nothing of
 * one is used at another.
 */
import { isRecord } from '../../jsonrpc/message.ts'
import type { Party } from './binding.ts'
import type { OutboundContext } from './options.ts'
import type { TokenStorage } from './storage.ts'

/** A private key on an elliptic curve as a JWK. The web's own type is not there for every program that reads our types. */
export interface PrivateJwk {
  readonly kty?: string
  readonly crv?: string
  readonly x?: string
  readonly y?: string
  readonly d?: string
}

export interface OAuthTokens {
  readonly access: string
  readonly type: 'bearer' | 'dpop'
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

export interface ClientRegistration {
  readonly id: string
  readonly secret?: string
  /** How the client proves itself at the token endpoint. */
  readonly method: string
  readonly redirectUri: string
  /** Milliseconds since the epoch, where the secret does not last for ever. */
  readonly secretExpiresAt?: number
}

/** Failing storage costs a new sign-in, never the connection. */
export class AuthorizationRecords {
  readonly #storage: TokenStorage
  readonly #trace: OutboundContext['trace']

  constructor(storage: TokenStorage, trace: OutboundContext['trace']) {
    this.#storage = storage
    this.#trace = trace
  }

  async tokens(party: string, resource: string, client: string): Promise<OAuthTokens | undefined> {
    const value = await this.#read(['tokens', party, resource, client])
    return isTokens(value) ? value : undefined
  }

  keepTokens(party: string, resource: string, client: string, tokens: OAuthTokens): Promise<void> {
    return this.#write(['tokens', party, resource, client], tokens)
  }

  async registration(party: string): Promise<ClientRegistration | undefined> {
    const value = await this.#read(['client', party])
    return isRegistration(value) ? value : undefined
  }

  keepRegistration(party: string, registration: ClientRegistration): Promise<void> {
    return this.#write(['client', party], registration)
  }

  dropRegistration(party: string): Promise<void> {
    return this.#guard(() => this.#storage.delete(JSON.stringify(['client', party])))
  }

  /** Where a client belongs that somebody registered by hand. Throws where that cannot be read: then nobody knows. */
  async home(client: string, resource: string): Promise<Party | undefined> {
    const text = await this.#storage.get(JSON.stringify(['home', client, resource]))
    const value: unknown = text === undefined ? undefined : JSON.parse(text)
    if (typeof value === 'string') return { issuer: value }
    return isParty(value) ? value : undefined
  }

  keepHome(client: string, resource: string, party: Party): Promise<void> {
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
