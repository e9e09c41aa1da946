/**
 * The three ways to verify a token (a JWT, introspection, the author's own function) as one, and what was verified a moment ago.
 */

import { networkOf } from '../../core/accounts.ts'
import { toBase64 } from '../../core/base64.ts'
import type { Clock } from '../../core/clock.ts'
import { digestText } from '../../core/digest.ts'
import type { Principal } from '../../jsonrpc/connection.ts'
import type { Awaitable } from '../../jsonrpc/message.ts'
import { fetchJson, IssuerError, issuerAddress, jwtVerifier, principalFromClaims, skewMs, toPrincipal } from './jwt.ts'
import type { IntrospectionOptions, Settings, VerifyToken } from './options.ts'

/** Who it is, or why the token is not good here. Rejects when that cannot be found out now. */
export type Verifier = (token: string, asking: TokenSender) => Promise<Principal | string>

interface VerifierOptions {
  readonly settings: Settings
  readonly resource: () => string
  readonly clock: Clock
  /** Told of an issuer that does not answer. */
  readonly failed: (error: unknown) => void
}

/** Makes the verifier that the settings ask for: by keys, by introspection, or the author's own function. */
export function createVerifier(options: VerifierOptions): Verifier {
  const { settings, resource } = options
  const audiences = (): readonly string[] => (settings.audiences.length === 0 ? [resource()] : settings.audiences)
  if (settings.verify !== undefined) return ownVerifier(settings.verify, options)
  if (settings.introspection !== undefined) {
    return introspectionVerifier({ issuer: settings.issuer, ...settings.introspection, audiences, clock: options.clock })
  }
  return jwtVerifier({ ...options, audiences })
}

/** How long an author's function may take. */
const verifyMs = 10_000

function ownVerifier(verify: VerifyToken, { settings, resource, clock }: VerifierOptions): Verifier {
  return async token => {
    const stop = new AbortController()
    const late = new Promise<never>((_, reject) => {
      stop.signal.addEventListener('abort', () => reject(new IssuerError(`verify took longer than ${verifyMs} ms`)))
    })
    const cancel = clock.setTimeout(() => stop.abort(), verifyMs, true)
    try {
      const found = await Promise.race([verify(token, { resource: resource(), signal: stop.signal }), late])
      if (found === undefined) return 'it is not known'
      const { subject, issuer = settings.issuer, client, scopes = [], expiresAt, claims } = found
      if (typeof subject !== 'string' || subject === '') return 'it has no subject'
      if (expiresAt !== undefined && expiresAt + skewMs <= clock.now()) return 'it has expired'
      return toPrincipal({ issuer, subject, client, scopes, expiresAt, claims })
    } finally {
      cancel()
    }
  }
}

/** Asking the issuer what a token is worth (RFC 7662). */
interface Introspection extends IntrospectionOptions {
  readonly issuer: string
  readonly audiences: () => readonly string[]
  readonly clock: Clock
}

function introspectionVerifier(options: Introspection): Verifier {
  const { issuer, audiences, clock } = options
  const authorization = `Basic ${credentials(options)}`
  let endpoint: Promise<string> | undefined = options.endpoint === undefined ? undefined : Promise.resolve(options.endpoint)
  const slots = new QuestionSlots()

  const address = (): Promise<string> => {
    endpoint ??= issuerAddress(issuer, 'introspection_endpoint').catch(error => {
      endpoint = undefined
      throw error
    })
    return endpoint
  }
  const ask = async (token: string): Promise<Record<string, unknown>> => {
    const body = new URLSearchParams({ token, token_type_hint: 'access_token' }).toString()
    const headers = { authorization, 'content-type': 'application/x-www-form-urlencoded' }
    return fetchJson(await address(), { method: 'POST', headers, body })
  }
  return async (token, asking) => {
    const answer = await slots.ask(asking, () => ask(token))
    if (answer['active'] !== true) return 'it is not active'
    const { token_type: type } = answer
    // Refresh tokens can be active too, and those that need a proof are no bearer's.
    if (type !== undefined && !(typeof type === 'string' && type.toLowerCase() === 'bearer')) return 'it is not a bearer token'
    return principalFromClaims({ ...answer, iss: answer['iss'] ?? issuer }, { issuer, audiences: audiences(), now: clock.now() })
  }
}

/** RFC 6749 §2.3.1: each part is form-encoded before the two are joined. */
function credentials({ clientId, clientSecret }: IntrospectionOptions): string {
  return toBase64(new TextEncoder().encode(`${formEncoded(clientId)}:${formEncoded(clientSecret)}`))
}

function formEncoded(text: string): string {
  return new URLSearchParams({ '': text }).toString().slice(1)
}

/**
 * What was found out of tokens a moment ago, by digest: a hash is some hundred times cheaper than a signature. Bounded in number and
 * time; where it is full, the oldest is forgotten.
 */
export class VerifiedTokenCache<T> {
  readonly #known = new Map<string, { readonly value: T; readonly until: number }>()
  readonly #clock: Clock
  readonly #limit: number

  constructor(clock: Clock, limit = 5_000) {
    this.#clock = clock
    this.#limit = limit
  }

  get(key: string): T | undefined {
    const found = this.#known.get(key)
    if (found === undefined || found.until > this.#clock.now()) return found?.value
    this.#known.delete(key)
    return undefined
  }

  /** `until`: when it is forgotten, in milliseconds since the epoch. */
  add(key: string, value: T, until: number): void {
    if (until <= this.#clock.now()) return
    this.#known.delete(key)
    const oldest = this.#known.size >= this.#limit ? this.#known.keys().next().value : undefined
    if (oldest !== undefined) this.#known.delete(oldest)
    this.#known.set(key, { value, until })
  }

  /** Forgets all that match. */
  drop(matches: (value: T) => boolean): void {
    for (const [key, { value }] of this.#known) if (matches(value)) this.#known.delete(key)
  }
}

const hash = globalThis.process?.getBuiltinModule?.('node:crypto')?.hash

/** What stands for a token here. At once where the runtime can hash at once, as Node can. */
export function tokenFingerprint(token: string): Awaitable<string> {
  return hash === undefined ? digestText(token) : hash('sha256', token, 'base64url')
}

// How many tokens an issuer is asked about at once, and who has to wait. Whoever sends invented tokens fills the places of his own
// address and waits behind himself: other addresses are asked for in turn, and tokens that were good before have places of their own.

/** Questions under way at once, about tokens that nobody has seen yet: of all addresses, and of one. */
const mostQuestions = 64
const mostOfAddress = 16
/** Beside them, about tokens that were good before. */
const mostOfKnown = 64
/** Those who wait: of all addresses, and of one. */
const mostWaiting = 1_024
const mostWaitingOfAddress = 64

/** Who sent a token; limits how often unknown tokens are looked up for it. */
export interface TokenSender {
  /** The network address of whoever sent the token. Undefined: all whose address is not known count as one. */
  readonly address?: string | undefined
  /** The token was good before. */
  readonly known: boolean
}

interface Address {
  asking: number
  readonly waiting: (() => void)[]
}

class QuestionSlots {
  /** In the order in which they are served next. */
  readonly #addresses = new Map<string, Address>()
  #asking = 0
  #known = 0
  #waiting = 0

  /** Runs the question when there is a place for it; rejects where too many wait. */
  async ask<T>({ address, known }: TokenSender, question: () => Promise<T>): Promise<T> {
    if (known && this.#known < mostOfKnown) {
      this.#known++
      return question().finally(() => this.#known--)
    }
    const from = networkOf(address ?? '')
    const own = this.#addresses.get(from) ?? { asking: 0, waiting: [] }
    this.#addresses.set(from, own)
    if (own.asking < mostOfAddress && this.#asking < mostQuestions) this.#take(own)
    else await this.#wait(own)
    return question().finally(() => this.#leave(from, own))
  }

  #take(own: Address): void {
    own.asking++
    this.#asking++
  }

  #wait(own: Address): Promise<void> {
    if (own.waiting.length >= mostWaitingOfAddress || this.#waiting >= mostWaiting)
      throw new IssuerError(`${own.waiting.length} tokens from this address already wait for introspection`)
    this.#waiting++
    return new Promise(resolve => own.waiting.push(resolve))
  }

  #leave(from: string, own: Address): void {
    own.asking--
    this.#asking--
    for (const [name, next] of this.#addresses) {
      const go = next.asking < mostOfAddress ? next.waiting.shift() : undefined
      if (go === undefined) continue
      this.#waiting--
      this.#take(next)
      // Whoever was served comes after all others.
      this.#addresses.delete(name)
      this.#addresses.set(name, next)
      go()
      break
    }
    if (own.asking === 0 && own.waiting.length === 0 && this.#addresses.get(from) === own) this.#addresses.delete(from)
  }
}
