/** The resource server at the door: which token, whose, good for what. A token that was good a moment ago lets in at once. */
import type { Authorizer, Denial, Entrance, HeaderReader } from '../../core/authorizer.ts'
import { type Clock, realClock } from '../../core/clock.ts'
import { covers } from '../../core/scope.ts'
import type { Principal } from '../../jsonrpc/connection.ts'
import { type Awaitable, isThenable } from '../../jsonrpc/message.ts'
import { bearerOf } from './bearer.ts'
import { type Challenge, challengeText, describeResource, type ResourceFacts } from './metadata.ts'
import { type Authorization, checkResource, type Settings } from './options.ts'
import { createVerified, fingerprint, type Verified } from './verified.ts'
import { createVerifier, type Verifier } from './verifier.ts'

export interface AuthorizerOptions {
  /** The address of the server where the settings name none; asked for with the first request. */
  readonly resource?: (() => string | undefined) | undefined
  /** By which people know the server. */
  readonly name?: string
  readonly clock?: Clock
  /** Told what keeps tokens from being verified, and of which token it might speak. */
  readonly failed?: (error: unknown, token?: string) => void
}

export function createAuthorizer(authorization: Authorization, options: AuthorizerOptions = {}): Authorizer {
  if (options.resource === undefined) checkResource(authorization)
  return new ResourceServer(authorization.settings, options)
}

class ResourceServer implements Authorizer {
  readonly #settings: Settings
  readonly #options: AuthorizerOptions
  readonly #report: NonNullable<AuthorizerOptions['failed']>
  readonly #verifier: Verifier
  readonly #verified: Verified
  /** Tokens that are just being verified: however often one comes meanwhile, it is verified once. */
  readonly #pending = new Map<string, Promise<Principal | Denial>>()
  #described: ResourceFacts | undefined = undefined

  constructor(settings: Settings, options: AuthorizerOptions) {
    const { clock = realClock } = options
    this.#settings = settings
    this.#options = options
    this.#report = sparing(options.failed, clock)
    this.#verified = createVerified(settings.cacheMs, clock)
    this.#verifier = createVerifier({ settings, resource: () => this.#resource, clock, failed: this.#report })
  }

  identify(header: HeaderReader, entrance: Entrance): Awaitable<Principal | Denial> {
    const brought = bearerOf(header, entrance)
    if (brought === undefined) return this.#denial(401, noToken, { scopes: this.#settings.scopes })
    if ('fault' in brought) return this.#refused('invalid_request', brought.fault)
    const { token } = brought
    const key = fingerprint(token)
    return isThenable(key) ? key.then(found => this.#recognise(found, token)) : this.#recognise(key, token)
  }

  challenge(principal: Principal | undefined, scopes: readonly string[]): Readonly<Record<string, string>> {
    // What was granted before is asked for again, or the next token would be good for the new scopes alone.
    const all = [...(principal?.scopes ?? []), ...this.#settings.scopes, ...scopes]
    return this.#headers({ error: 'insufficient_scope', description: 'This needs scopes that the token lacks', scopes: all })
  }

  document(path: string): string | undefined {
    return path.startsWith('/.well-known/') && this.#facts.paths.has(path) ? this.#facts.document : undefined
  }

  #recognise(key: string, token: string): Awaitable<Principal | Denial> {
    const known = this.#verified.get(key)
    if (known !== undefined) return this.#admitted(known)
    let pending = this.#pending.get(key)
    if (pending === undefined) {
      pending = this.#verify(key, token).finally(() => this.#pending.delete(key))
      this.#pending.set(key, pending)
    }
    return pending
  }

  async #verify(key: string, token: string): Promise<Principal | Denial> {
    let found: Principal | string
    try {
      found = await this.#verifier(token)
    } catch (error) {
      this.#report(error, token)
      return unavailable
    }
    if (typeof found === 'string') return this.#refused('invalid_token', `The token is not good here: ${found}`)
    this.#verified.add(key, found)
    return this.#admitted(found)
  }

  #admitted(principal: Principal): Principal | Denial {
    const { scopes } = this.#settings
    if (scopes.length === 0 || covers(principal.scopes, scopes)) return principal
    const message = `Every request here needs the scopes ${scopes.join(' ')}. Ask the authorization server for them`
    return { status: 403, message, headers: this.challenge(principal, scopes) }
  }

  #refused(error: 'invalid_token' | 'invalid_request', description: string): Denial {
    return this.#denial(401, description, { error, description, scopes: this.#settings.scopes })
  }

  #denial(status: number, message: string, challenge: Challenge): Denial {
    return { status, message, headers: this.#headers(challenge) }
  }

  #headers(challenge: Challenge): Readonly<Record<string, string>> {
    return { 'www-authenticate': challengeText(this.#facts.metadataUrl, challenge) }
  }

  get #resource(): string {
    const resource = this.#settings.resource ?? this.#options.resource?.()
    if (resource !== undefined) return resource
    throw new TypeError('The address of this server is not known yet')
  }

  get #facts(): ResourceFacts {
    this.#described ??= describeResource(this.#resource, this.#settings, this.#options.name)
    return this.#described
  }
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

const noToken = 'This server needs a bearer token. Get one from the authorization server that its metadata names'

const unavailable: Denial = {
  status: 503,
  message: 'The token cannot be verified at the moment. Try again later',
  headers: { 'retry-after': '5' },
}
