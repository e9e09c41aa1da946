/** What is kept of tokens and registrations, and under which keys: by issuer first, so that nothing of one is used at another. */
import { isRecord } from '../../jsonrpc/message.ts'
import type { Surroundings } from './context.ts'
import type { TokenStorage } from './storage.ts'

export interface Tokens {
  readonly access: string
  readonly type: 'bearer' | 'dpop'
  readonly refresh?: string
  /** Milliseconds since the epoch. */
  readonly expiresAt?: number
  /** From when on it is better renewed before it is used. */
  readonly renewAt?: number
  /** What was asked for with it. */
  readonly scopes: readonly string[]
  /** The private key that the tokens are bound to, as a JWK. */
  readonly key?: JsonWebKey
}

export interface Registration {
  readonly id: string
  readonly secret?: string
  /** How the client proves itself at the token endpoint. */
  readonly method: string
  readonly redirectUri: string
  /** Milliseconds since the epoch, where the secret does not last for ever. */
  readonly secretExpiresAt?: number
}

/** Failing storage costs a new sign-in, never the connection. */
export class Records {
  readonly #storage: TokenStorage
  readonly #trace: Surroundings['trace']

  constructor(storage: TokenStorage, trace: Surroundings['trace']) {
    this.#storage = storage
    this.#trace = trace
  }

  async tokens(issuer: string, resource: string, client: string): Promise<Tokens | undefined> {
    const value = await this.#read(['tokens', issuer, resource, client])
    return isTokens(value) ? value : undefined
  }

  keepTokens(issuer: string, resource: string, client: string, tokens: Tokens): Promise<void> {
    return this.#write(['tokens', issuer, resource, client], tokens)
  }

  async registration(issuer: string): Promise<Registration | undefined> {
    const value = await this.#read(['client', issuer])
    return isRegistration(value) ? value : undefined
  }

  keepRegistration(issuer: string, registration: Registration): Promise<void> {
    return this.#write(['client', issuer], registration)
  }

  dropRegistration(issuer: string): Promise<void> {
    return this.#guard(() => this.#storage.delete(JSON.stringify(['client', issuer])))
  }

  /** The issuer at which a client was met that somebody registered by hand. */
  async home(client: string, resource: string): Promise<string | undefined> {
    const value = await this.#read(['home', client, resource])
    return typeof value === 'string' ? value : undefined
  }

  keepHome(client: string, resource: string, issuer: string): Promise<void> {
    return this.#write(['home', client, resource], issuer)
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

function isTokens(value: unknown): value is Tokens & Record<string, unknown> {
  return isRecord(value) && typeof value['access'] === 'string' && Array.isArray(value['scopes'])
}

function isRegistration(value: unknown): value is Registration & Record<string, unknown> {
  return isRecord(value) && typeof value['id'] === 'string' && typeof value['redirectUri'] === 'string'
}
