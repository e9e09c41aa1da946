/**
 * Tokens for one MCP server: where they come from, when they are renewed, and what a refusal of the server means. How they
 * are got is the grant's matter.
 */
import type { Clock } from '../../core/clock.ts'
import type { CredentialHeaders, CredentialRefusal, Credentials } from '../../core/credentials.ts'
import { unlessAborted } from '../../core/deadlines.ts'
import { clip } from '../../jsonrpc/limits.ts'
import { AuthorizationError } from '../addresses.ts'
import { chooseScopes, type DiscoveredAuthorization, discoverAuthorization, scopesIn } from './discovery.ts'
import type { OAuthGrant } from './grants.ts'
import { AuthorizationRecords, type Binding, IssuerBinding, type OAuthTokens } from './issuer-binding.ts'
import type { OutboundContext } from './options.ts'
import {
  type AuthServerLink,
  type Challenge,
  type Identity,
  newProver,
  type Prover,
  readChallenge,
  storedProver,
  type TokenAnswer,
  TokenEndpoint,
} from './protocol.ts'
import type { TokenStorage } from './storage.ts'

interface AuthorizerSettings {
  readonly context: OutboundContext
  readonly grant: OAuthGrant
  readonly binding: Binding
  readonly storage: TokenStorage
  readonly scopes: readonly string[]
  readonly dpop: boolean
  readonly timeoutMs: number
}

/** Refusals of one request that are answered by better tokens; the next one stands. */
const mostTries = 3

/** What is held at the moment. */
interface HeldCredentials {
  readonly found: DiscoveredAuthorization
  readonly identity: Identity
  readonly tokens: OAuthTokens
  /** Tokens that were just granted cannot be bettered by asking again. */
  readonly source: 'kept' | 'refreshed' | 'granted'
  readonly headers: CredentialHeaders
}

/** Gets, keeps, renews and sends the tokens of one client for one MCP server, whatever grant it uses. */
export class OAuthAuthorizer implements Credentials {
  readonly #settings: AuthorizerSettings
  readonly #context: OutboundContext
  readonly #records: AuthorizationRecords
  readonly #bound: IssuerBinding
  readonly #flight: Flight
  #held: HeldCredentials | undefined
  #prover: Prover | undefined
  /** Asked for so far at the authorization server of this name. */
  #asked: { readonly issuer: string; readonly scopes: readonly string[] } | undefined

  constructor(settings: AuthorizerSettings) {
    this.#settings = settings
    this.#context = settings.context
    this.#records = new AuthorizationRecords(settings.storage, settings.context.trace)
    this.#bound = new IssuerBinding(settings.binding, settings.context.server, this.#records)
    this.#flight = new Flight(settings.context.clock, settings.timeoutMs)
  }

  headers(method: string, url: URL): CredentialHeaders | undefined | Promise<CredentialHeaders | undefined> {
    const held = this.#held
    if (held === undefined) return undefined
    const { renewAt, refresh: renewable } = held.tokens
    if (renewAt !== undefined && renewable !== undefined && this.#context.clock.now() >= renewAt)
      return this.#renewed(method, url)
    return this.#credentials(held, method, url)
  }

  async refused(refusal: CredentialRefusal): Promise<void> {
    const challenge = await readChallenge(refusal.header('www-authenticate'))
    // The same request again, with the nonce in its proof.
    if (challenge.wantsNonce && this.#takesNonce(refusal.header('dpop-nonce'))) return
    const sent = refusal.sent?.['authorization']?.replace(/^\w+ /, '')
    const held = this.#held
    if (refusal.times > mostTries) throw tooOften(refusal)
    // Somebody else has got better ones since.
    if (held !== undefined && held.tokens.access !== sent) return
    if (refusal.status === 403) this.#checkStepUp(challenge)
    else if (held?.source === 'granted' && refusal.times > 1) throw refusedAgain(held)
    await this.#flight.join(signal => this.#authorize(refusal, challenge, sent, signal), refusal.signal)
  }

  answered(header: (name: string) => string | undefined): void {
    if (this.#prover !== undefined) this.#takesNonce(header('dpop-nonce'))
  }

  #credentials(held: HeldCredentials, method: string, url: URL): CredentialHeaders | Promise<CredentialHeaders> {
    if (held.tokens.type === 'bearer' || this.#prover === undefined) return held.headers
    return this.#prover.headers(held.tokens.access, method, url)
  }

  /** True if further proofs hold this nonce (RFC 9449 section 9). */
  #takesNonce(nonce: string | undefined): boolean {
    if (nonce === undefined || nonce.length > 1024 || this.#prover === undefined) return false
    this.#prover.take(nonce)
    return true
  }

  #checkStepUp({ scope }: Challenge): void {
    const needed = scopesIn(scope)
    const asked = this.#asked?.scopes ?? []
    if (needed.length > 0 && needed.some(name => !asked.includes(name))) return
    throw new AuthorizationError(
      'scope',
      needed.length === 0
        ? 'The server refuses the scope of the token (HTTP 403), but does not name the scope that it requires'
        : `The server still refuses the scope of the token after ${clip(needed.join(' '))} was requested; the authorization server may not grant it to you`,
    )
  }

  // ── getting tokens ────────────────────────────────────────────────────────────────────────────────────────────────

  async #authorize(
    refusal: CredentialRefusal,
    challenge: Challenge,
    refused: string | undefined,
    signal: AbortSignal,
  ): Promise<void> {
    const { grant } = this.#settings
    const issuer = await this.#bound.issuer()
    const found = await discoverAuthorization({ context: this.#context, signal, issuer }, challenge.resource_metadata)
    await this.#bound.check(found.server)
    // What was got elsewhere is of no use here, and is not shown here.
    if (this.#asked?.issuer !== found.server.issuer) this.#asked = undefined
    const identity = await grant.identity({ found, context: this.#context, records: this.#records })
    if (refusal.status === 401 && identity !== undefined) {
      const exhausted = refusal.times > 1 && this.#held?.source === 'refreshed'
      if (await this.#reuse(found, identity, refused, exhausted, signal)) return
    }
    await this.#obtain(found, challenge, signal)
  }

  /** True if tokens that are kept will do, or could be renewed. */
  async #reuse(
    found: DiscoveredAuthorization,
    identity: Identity,
    refused: string | undefined,
    exhausted: boolean,
    signal: AbortSignal,
  ): Promise<boolean> {
    const stored = await this.#records.tokens(found, identity.id)
    if (stored === undefined) return false
    if (stored.access !== refused && !this.#isOver(stored)) {
      await this.#hold(found, identity, stored, 'kept')
      return true
    }
    if (exhausted || stored.refresh === undefined) return false
    return this.#refresh(found, identity, stored, signal)
  }

  async #obtain(found: DiscoveredAuthorization, { scope }: Challenge, signal: AbortSignal): Promise<void> {
    const { grant, dpop, scopes: wanted } = this.#settings
    const offline = grant.refreshes && found.server.scopes_supported?.includes('offline_access') === true
    const scopes = chooseScopes({
      challenged: scopesIn(scope),
      suggested: found.suggested,
      wanted,
      before: this.#asked?.scopes ?? [],
      offline,
    })
    if (dpop) this.#prover ??= await newProver()
    const asking = { found, scopes, context: this.#context, records: this.#records, link: this.#link(signal) }
    try {
      const { identity, answer } = await grant.obtain(asking)
      signal.throwIfAborted()
      await this.#keep(found, identity, this.#tokensFrom(answer, scopes, undefined), 'granted')
    } catch (error) {
      if (isUnknownClient(error)) await this.#records.dropRegistration(found.server)
      throw error
    }
  }

  // ── renewing tokens ───────────────────────────────────────────────────────────────────────────────────────────────

  async #renewed(method: string, url: URL): Promise<CredentialHeaders | undefined> {
    try {
      await this.#flight.join(signal => this.#renew(signal))
    } catch (error) {
      // The old one may still do; if not, the server says so.
      this.#context.trace('token-refresh-failed', error)
    }
    return this.#held === undefined ? undefined : this.#credentials(this.#held, method, url)
  }

  async #renew(signal: AbortSignal): Promise<void> {
    if (this.#held === undefined) return
    const { found, identity, tokens } = this.#held
    // Another process may have renewed them, and a refresh token often serves only once.
    const stored = await this.#records.tokens(found, identity.id)
    const now = this.#context.clock.now()
    if (stored !== undefined && stored.access !== tokens.access && (stored.renewAt ?? now + 1) > now) {
      await this.#hold(found, identity, stored, 'kept')
    } else await this.#refresh(found, identity, stored ?? tokens, signal)
  }

  /** False if the authorization server will not: then the refresh token is forgotten. Throws what may pass by itself. */
  async #refresh(found: DiscoveredAuthorization, identity: Identity, tokens: OAuthTokens, signal: AbortSignal): Promise<boolean> {
    const token = tokens.refresh
    if (token === undefined) return false
    try {
      await this.#possess(tokens)
      const endpoint = new TokenEndpoint(found.server, identity, this.#link(signal))
      const answer = await endpoint.refresh(token, { resource: found.resource })
      await this.#keep(found, identity, this.#tokensFrom(answer, tokens.scopes, token), 'refreshed')
      return true
    } catch (error) {
      signal.throwIfAborted()
      if (!(error instanceof AuthorizationError) || error.code === undefined) throw error
      this.#context.trace('token-refresh-failed', error)
      if (isUnknownClient(error)) await this.#records.dropRegistration(found.server)
      const { refresh: _, ...rest } = tokens
      await this.#keep(found, identity, rest, 'kept')
      return false
    }
  }

  // ── holding tokens ────────────────────────────────────────────────────────────────────────────────────────────────

  async #keep(
    found: DiscoveredAuthorization,
    identity: Identity,
    tokens: OAuthTokens,
    source: HeldCredentials['source'],
  ): Promise<void> {
    await this.#records.keepTokens(found, identity.id, tokens)
    await this.#hold(found, identity, tokens, source)
  }

  async #hold(
    found: DiscoveredAuthorization,
    identity: Identity,
    tokens: OAuthTokens,
    source: HeldCredentials['source'],
  ): Promise<void> {
    await this.#possess(tokens)
    const headers = { authorization: `${tokens.type === 'dpop' ? 'DPoP' : 'Bearer'} ${tokens.access}` }
    this.#asked = { issuer: found.server.issuer, scopes: tokens.scopes }
    this.#held = { found, identity, tokens, source, headers }
  }

  /** The key that kept tokens are bound to. */
  async #possess({ key }: OAuthTokens): Promise<void> {
    if (key !== undefined && this.#prover?.key.x !== key.x) this.#prover = await storedProver(key)
  }

  #tokensFrom(answer: TokenAnswer, scopes: readonly string[], before: string | undefined): OAuthTokens {
    const bound = answer.token_type === 'dpop'
    checkAnswer(answer, this.#settings.dpop)
    const now = this.#context.clock.now()
    const lasts = answer.expires_in === undefined ? undefined : Math.min(answer.expires_in, 315_360_000) * 1000
    const renewable = answer.refresh_token ?? before
    return {
      access: answer.access_token,
      type: bound ? 'dpop' : 'bearer',
      scopes,
      ...(renewable === undefined ? {} : { refresh: renewable }),
      ...(lasts === undefined ? {} : { expiresAt: now + lasts, renewAt: now + lasts - Math.min(30_000, lasts / 4) }),
      ...(bound && this.#prover !== undefined ? { key: this.#prover.key } : {}),
    }
  }

  #isOver({ expiresAt }: OAuthTokens): boolean {
    return expiresAt !== undefined && expiresAt <= this.#context.clock.now()
  }

  #link(signal: AbortSignal): AuthServerLink {
    const { outbound } = this.#context
    return { outbound, signal, admit: server => this.#bound.admit(server), dpop: this.#prover?.handle }
  }
}

function checkAnswer({ token_type: type, access_token: token }: TokenAnswer, wantsBound: boolean): void {
  if ((type === 'dpop') !== wantsBound) {
    const fix = wantsBound ? 'it must support DPoP, or remove the option dpop' : 'set the option dpop'
    throw new AuthorizationError('token-type', `The authorization server issued a token of type ${clip(type)}; ${fix}`)
  }
  if (!/^[\x21-\x7e]{1,16384}$/.test(token)) {
    throw new AuthorizationError(
      'token-type',
      'The authorization server issued a token with characters that headers must not contain',
    )
  }
}

/** The authorization server has forgotten the client: it has to be registered anew. */
function isUnknownClient(error: unknown): boolean {
  return error instanceof AuthorizationError && (error.code === 'invalid_client' || error.code === 'unauthorized_client')
}

function refusedAgain({ found }: HeldCredentials): AuthorizationError {
  return new AuthorizationError(
    'refused-again',
    `The server refuses a token that ${clip(found.server.issuer)} has just issued for it; check that both agree on the resource ${clip(found.resource)}`,
  )
}

function tooOften({ status, times }: CredentialRefusal): AuthorizationError {
  const rule = status === 403 ? 'scope' : 'refused-again'
  return new AuthorizationError(
    rule,
    `The server refused the request ${times} times (last with HTTP ${status}), each time with another token`,
  )
}

// One attempt to get tokens that all who need them share: however many requests are refused together, one is made. It is
// given up when nobody waits for it any more, or when it takes too long.

interface Attempt {
  readonly done: Promise<void>
  readonly stop: AbortController
  waiting: number
}

class Flight {
  readonly #clock: Clock
  readonly #limitMs: number
  #current: Attempt | undefined

  constructor(clock: Clock, limitMs: number) {
    this.#clock = clock
    this.#limitMs = limitMs
  }

  /** Joins what is under way, or starts it. */
  async join(start: (signal: AbortSignal) => Promise<void>, signal?: AbortSignal): Promise<void> {
    const current = this.#current
    const attempt = current === undefined || current.stop.signal.aborted ? this.#start(start) : current
    attempt.waiting++
    try {
      await unlessAborted(attempt.done, signal)
    } finally {
      if (--attempt.waiting === 0) attempt.stop.abort()
    }
  }

  #start(start: (signal: AbortSignal) => Promise<void>): Attempt {
    const stop = new AbortController()
    const late = (): void =>
      stop.abort(new AuthorizationError('browser', `No token was obtained within ${this.#limitMs} ms (the option timeout)`))
    const cancel = this.#clock.setTimeout(late, this.#limitMs, true)
    const done = unlessAborted(start(stop.signal), stop.signal).finally(() => {
      cancel()
      if (this.#current === attempt) this.#current = undefined
    })
    const attempt: Attempt = { done, stop, waiting: 0 }
    this.#current = attempt
    return attempt
  }
}
