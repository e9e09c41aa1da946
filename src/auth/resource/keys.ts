/**
 * The issuer's public keys. Fetched when first needed and now and then after; an unknown key id may be a new key, but a flood of
 * invented ones must not become a flood of requests to the issuer: between two looks there is always a pause.
 */
import type { Clock } from '../../core/clock.ts'
import { fetchJson, IssuerError } from './fetch-json.ts'
import { issuerAddress } from './issuer.ts'
import type { FindKey, Jose, KeySet } from './jose.ts'

export interface KeysOptions {
  readonly issuer: string
  /** Undefined: as the issuer's metadata says. */
  readonly jwksUri: string | undefined
  readonly jose: Jose
  readonly clock: Clock
  /** Told of looks that failed. */
  readonly failed: (error: unknown) => void
}

/** After so long the keys are fetched anew; */
const freshMs = 10 * 60_000
/** while that fails, the old ones hold until then. */
const staleMs = 60 * 60_000
const pauseMs = 30_000
const pauseAfterFailureMs = 5_000

export class Keys {
  readonly #options: KeysOptions
  #set: KeySet | undefined = undefined
  #fetchedAt = 0
  #nextLook = 0
  #looking: Promise<void> | undefined = undefined

  constructor(options: KeysOptions) {
    this.#options = options
  }

  readonly find: FindKey = async (header, token) => {
    const { jose, clock } = this.#options
    if (this.#set === undefined || clock.now() - this.#fetchedAt > freshMs) await this.#look()
    const known = this.#current()
    try {
      return await known(header, token)
    } catch (error) {
      if (!jose.isUnknownKey(error)) throw error
      await this.#look()
      if (this.#set === known) throw error
      return this.#current()(header, token)
    }
  }

  #current(): KeySet {
    if (this.#set !== undefined && this.#options.clock.now() - this.#fetchedAt <= staleMs) return this.#set
    throw new IssuerError('The keys of the issuer cannot be had at the moment')
  }

  /** Fetches the keys, unless that was done just now. Never rejects: what is known stays. */
  #look(): Promise<void> {
    const { clock } = this.#options
    if (this.#looking !== undefined) return this.#looking
    if (clock.now() < this.#nextLook) return Promise.resolve()
    this.#looking = this.#fetch().finally(() => {
      this.#looking = undefined
    })
    return this.#looking
  }

  async #fetch(): Promise<void> {
    const { issuer, jwksUri, jose, clock, failed } = this.#options
    try {
      this.#set = jose.keySet(await fetchJson(jwksUri ?? (await issuerAddress(issuer, 'jwks_uri'))))
      this.#fetchedAt = clock.now()
      this.#nextLook = clock.now() + pauseMs
    } catch (error) {
      this.#nextLook = clock.now() + pauseAfterFailureMs
      failed(error)
    }
  }
}
