/**
 * The resource server at the door: which token, whose, good for what, and the metadata and challenges that tell clients where to
 * get one (RFC 9728, RFC 6750). A token that was good a moment ago lets in at once.
 */
import { type Clock, realClock } from '../../core/clock.ts'
import type { Authorizer, CredentialDenial, HeaderReader, HttpRequestFacts } from '../../core/credentials.ts'
import { covers, isScope } from '../../core/scope.ts'
import type { Principal } from '../../jsonrpc/connection.ts'
import { type Awaitable, isThenable } from '../../jsonrpc/message.ts'
import { skewMs } from './jwt.ts'
import { checkResource, type ResourceAuthorization, type Settings } from './options.ts'
import { createVerifier, type TokenSender, tokenFingerprint, VerifiedTokenCache, type Verifier } from './verifier.ts'

/** Undefined when there is none. `fault`: something was brought that is no such token. */
type PresentedToken = { readonly token: string } | { readonly fault: string } | undefined

/** Longer ones are not looked at. */
const longestToken = 16 * 1024

const tokenSyntax = /^[A-Za-z0-9\-._~+/]+=*$/

function bearerOf(header: HeaderReader, request: HttpRequestFacts): PresentedToken {
  if (holdsToken(request.url))
    return { fault: 'A token in the address is refused because it would appear in logs. Send it in the Authorization header' }
  const value = header('authorization')
  if (value === undefined) return undefined
  if (request.repeats('authorization')) return { fault: 'The request has more than one Authorization header. Send one' }
  // The scheme is written in any case, and one that is not ours is as good as none.
  if (!/^bearer(?: |$)/i.test(value)) return undefined
  const token = value.slice(7).trimStart()
  if (token.length > longestToken) return { fault: `The token is longer than ${longestToken} characters` }
  return tokenSyntax.test(token) ? { token } : { fault: 'The Authorization header does not contain exactly one bearer token' }
}

function holdsToken(url: string): boolean {
  const at = url.indexOf('?')
  return at !== -1 && new URLSearchParams(url.slice(at)).has('access_token')
}

interface AuthorizerOptions {
  /** The address of the server where the settings name none; asked for with the first request. */
  readonly resource?: (() => string | undefined) | undefined
  /** By which people know the server. */
  readonly name?: string
  readonly clock?: Clock
  /** Told what keeps tokens from being verified, and of which token it might speak. */
  readonly failed?: (error: unknown, token?: string) => void
  /** Told of principals that may call no longer, after their tokens were forgotten. */
  readonly disconnected?: (matches: (principal: Principal) => boolean) => void
}

/** Makes the authorizer of a server that takes tokens: reads them, verifies them, and writes the challenges. */
export function createAuthorizer(authorization: ResourceAuthorization, options: AuthorizerOptions = {}): Authorizer {
  if (options.resource === undefined) checkResource(authorization)
  return new ResourceServer(authorization, options)
}

class ResourceServer implements Authorizer {
  readonly #settings: Settings
  readonly #options: AuthorizerOptions
  readonly #report: NonNullable<AuthorizerOptions['failed']>
  readonly #verifier: Verifier
  readonly #verified: VerifiedTokenCache<Principal>
  /** Tokens that were good in the last hour: the issuer is asked about them before those that nobody has seen. */
  readonly #wereGood: VerifiedTokenCache<true>
  /** Tokens that the issuer does not know, and what their bearers are told: sent again and again, they cost it nothing. */
  readonly #unknown: VerifiedTokenCache<string>
  /** By which token a principal was let in. */
  readonly #brought = new WeakMap<Principal, { readonly key: string; readonly token: string }>()
  readonly #clock: Clock
  /** Tokens that are just being verified: however often one comes meanwhile, it is verified once. */
  readonly #pending = new Map<string, Promise<Principal | CredentialDenial>>()
  #described: ResourceFacts | undefined = undefined
  #epoch = 0

  constructor({ settings, disconnects }: ResourceAuthorization, options: AuthorizerOptions) {
    const { clock = realClock } = options
    disconnects.listen(matches => {
      this.#epoch++
      this.#verified.drop(matches)
      options.disconnected?.(matches)
    })
    this.#settings = settings
    this.#options = options
    this.#report = sparing(options.failed, clock)
    this.#clock = clock
    this.#verified = new VerifiedTokenCache(clock)
    this.#wereGood = new VerifiedTokenCache(clock)
    this.#unknown = new VerifiedTokenCache(clock)
    this.#verifier = createVerifier({ settings, resource: () => this.#resource, clock, failed: this.#report })
  }

  identify(header: HeaderReader, request: HttpRequestFacts): Awaitable<Principal | CredentialDenial> {
    const brought = bearerOf(header, request)
    if (brought === undefined) return this.#denial(401, this.#noToken, { scopes: this.#settings.scopes })
    if ('fault' in brought) return this.#refused('invalid_request', brought.fault)
    return this.#look(brought.token, request.address)
  }

  holds(principal: Principal): Awaitable<boolean> {
    const { expiresAt } = principal
    if (expiresAt !== undefined && expiresAt + skewMs <= this.#clock.now()) return false
    const brought = this.#brought.get(principal)
    if (brought === undefined || this.#verified.get(brought.key) !== undefined) return true
    const found = this.#recognise(brought.key, brought.token, undefined)
    return isThenable(found) ? found.then(now => isHeld(now, principal)) : isHeld(found, principal)
  }

  challenge(principal: Principal | undefined, scopes: readonly string[]): Readonly<Record<string, string>> {
    // What was granted before is asked for again, or the next token would be good for the new scopes alone.
    const all = [...(principal?.scopes ?? []), ...this.#settings.scopes, ...scopes]
    return this.#headers({
      error: 'insufficient_scope',
      description: 'The token lacks scopes that this request requires',
      scopes: all,
    })
  }

  document(path: string): string | undefined {
    if (!this.#settings.announced || !path.startsWith('/.well-known/')) return undefined
    return this.#facts.paths.has(path) ? this.#facts.document : undefined
  }

  get epoch(): number {
    return this.#epoch
  }

  #look(token: string, address: string | undefined): Awaitable<Principal | CredentialDenial> {
    const key = tokenFingerprint(token)
    return isThenable(key) ? key.then(found => this.#recognise(found, token, address)) : this.#recognise(key, token, address)
  }

  #recognise(key: string, token: string, address: string | undefined): Awaitable<Principal | CredentialDenial> {
    const known = this.#verified.get(key)
    if (known !== undefined) return this.#admitted(known)
    const unknown = this.#unknown.get(key)
    if (unknown !== undefined) return this.#refused('invalid_token', unknown)
    let pending = this.#pending.get(key)
    if (pending === undefined) {
      const asking = { address, known: this.#wereGood.get(key) === true }
      pending = this.#verify(key, token, asking).finally(() => this.#pending.delete(key))
      this.#pending.set(key, pending)
    }
    return pending
  }

  async #verify(key: string, token: string, asking: TokenSender): Promise<Principal | CredentialDenial> {
    let found: Principal | string
    let epoch: number
    try {
      do {
        epoch = this.#epoch
        found = await this.#verifier(token, asking)
        // Somebody was shut out meanwhile: what was found out before that counts no more.
      } while (epoch !== this.#epoch)
    } catch (error) {
      this.#report(error, token)
      return unavailable
    }
    const now = this.#clock.now()
    if (typeof found === 'string') {
      const message = `The token is not valid: ${found}`
      if (this.#settings.introspection !== undefined) this.#unknown.add(key, message, now + unknownMs)
      return this.#refused('invalid_token', message)
    }
    this.#verified.add(key, found, Math.min(now + this.#settings.cacheMs, found.expiresAt ?? Number.POSITIVE_INFINITY))
    this.#wereGood.add(key, true, now + goodMs)
    this.#brought.set(found, { key, token })
    return this.#admitted(found)
  }

  #admitted(principal: Principal): Principal | CredentialDenial {
    const { scopes } = this.#settings
    if (scopes.length === 0 || covers(principal.scopes, scopes)) return principal
    const message = `Every request to this server requires the scopes ${scopes.join(' ')}. Request them from the authorization server`
    return { status: 403, message, headers: this.challenge(principal, scopes) }
  }

  #refused(error: 'invalid_token' | 'invalid_request', description: string): CredentialDenial {
    return this.#denial(401, description, { error, description, scopes: this.#settings.scopes })
  }

  #denial(status: number, message: string, challenge: Challenge): CredentialDenial {
    return { status, message, headers: this.#headers(challenge) }
  }

  #headers(challenge: Challenge): Readonly<Record<string, string>> {
    const metadataUrl = this.#settings.announced ? this.#facts.metadataUrl : undefined
    return { 'www-authenticate': challengeText(metadataUrl, challenge) }
  }

  get #noToken(): string {
    const from = this.#settings.announced ? 'the authorization server that its metadata names' : 'the operator of the server'
    return `This server requires a bearer token. Get one from ${from}`
  }

  get #resource(): string {
    // Tokens that are handed out are bound to no address.
    if (!this.#settings.announced) return ''
    const resource = this.#settings.resource ?? this.#options.resource?.()
    if (resource !== undefined) return resource
    throw new TypeError('The address of this server is not known yet')
  }

  get #facts(): ResourceFacts {
    this.#described ??= describeResource(this.#resource, this.#settings, this.#options.name)
    return this.#described
  }
}

/** What was opened has the rights of then: it stays where none of them was taken back. While nothing can be found out, nobody is let go. */
function isHeld(found: Principal | CredentialDenial, { id, scopes = [] }: Principal): boolean {
  if ('status' in found) return found.status === unavailable.status
  return found.id === id && covers(found.scopes, scopes)
}

/** Told the first of many failures: the next ones mostly have the same cause, and each request would bring one. */
function sparing(report: AuthorizerOptions['failed'], clock: Clock): NonNullable<AuthorizerOptions['failed']> {
  let next = 0
  return (error, token) => {
    if (clock.now() < next) return
    next = clock.now() + pauseMs
    report?.(error, token)
  }
}

const pauseMs = 5_000
/** How long a token that the issuer does not know is refused without another question. */
const unknownMs = 10_000
const goodMs = 3_600_000

const unavailable: CredentialDenial = {
  status: 503,
  message: 'The token cannot be verified now because the issuer does not respond. Retry later',
  headers: { 'retry-after': '5' },
}

/** What a protected resource says of itself (RFC 9728), and the challenges that point to it (RFC 6750 §3, RFC 9728 §5.1). */
const wellKnown = '/.well-known/oauth-protected-resource'

/** What follows from the address of a server. */
interface ResourceFacts {
  /** Where the document is: the well-known path goes before the path of the resource (RFC 9728 §3.1). */
  readonly metadataUrl: string
  /** The paths at which it is served: that one, and the bare one for clients that try only it. */
  readonly paths: ReadonlySet<string>
  readonly document: string
}

function describeResource(resource: string, settings: Settings, name: string | undefined): ResourceFacts {
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

interface Challenge {
  readonly error?: 'invalid_token' | 'invalid_request' | 'insufficient_scope'
  readonly description?: string
  readonly scopes: readonly string[]
}

/** The scopes of a token may be anything; only what is a scope gets into a header, and not without end. */
const mostScopes = 100

/** `metadataUrl`: undefined where no document says more. */
function challengeText(metadataUrl: string | undefined, { error, description, scopes }: Challenge): string {
  const parts = [
    ...(error === undefined ? [] : [`error="${error}"`]),
    ...(description === undefined ? [] : [`error_description="${description.replace(/[^\x20-\x21\x23-\x5b\x5d-\x7e]/g, "'")}"`]),
    // A challenge has at least one parameter (RFC 6750 §3).
    metadataUrl === undefined ? 'realm="mcp"' : `resource_metadata="${metadataUrl}"`,
    ...(scopes.length === 0 ? [] : [`scope="${[...new Set(scopes)].filter(isScope).slice(0, mostScopes).join(' ')}"`]),
  ]
  return `Bearer ${parts.join(', ')}`
}
