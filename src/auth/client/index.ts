/**
 * Authorizing a client, by plain functions that `connect` takes. Nothing of OAuth is loaded before a server asks for it.
 */
import { type CredentialHeaders, type CredentialRefusal, type Credentials, challengeParameter } from '../../core/credentials.ts'
import { clip } from '../../jsonrpc/limits.ts'
import { AuthorizationError, checkServer } from '../addresses.ts'
import type { OAuthGrant } from './grants.ts'
import { Binding } from './issuer-binding.ts'
import type {
  ClientAuthorization,
  ClientCredentialsOptions,
  CommonOptions,
  EnterpriseOptions,
  OAuthClientOptions,
  WorkloadOptions,
} from './options.ts'
import { memoryStorage, type TokenStorage } from './storage.ts'

export { AuthorizationError, type AuthorizationRule } from '../addresses.ts'
export { type Browser, type CliOptions, cli } from './browser.ts'
export type {
  AuthorizationContext,
  ClientAuthorization,
  ClientCredentialsOptions,
  ClientKey,
  CommonOptions,
  EnterpriseOptions,
  OAuthClientOptions,
  SigningAlgorithm,
  WorkloadOptions,
} from './options.ts'
export { type FileStorageOptions, fileStorage, memoryStorage, type TokenStorage } from './storage.ts'

/**
 * Signs a user in when the server asks for it (authorization code grant with PKCE). Tokens are renewed automatically.
 * @example
 * await using mcp = await connect('https://example.com/mcp', { auth: oauth() })
 */
export function oauth(options: OAuthClientOptions = {}): ClientAuthorization {
  checkMetadataUrl(options.clientMetadataUrl)
  // Shared by all connections that are made with it.
  const storage = options.storage ?? memoryStorage()
  const binding = bindingOf(options, options.clientId, options.clientSecret ?? false)
  return lazily(options, binding, ({ codeGrant }) => codeGrant(options), storage)
}

/**
 * Signs in as the program itself, with a client secret or a private key (client credentials grant).
 * @example
 * await using mcp = await connect(url, { auth: clientCredentials({ clientId: 'nightly', clientSecret }) })
 */
export function clientCredentials(options: ClientCredentialsOptions): ClientAuthorization {
  return boundCredentials(options, bindingOf(options, options.clientId, true))
}

/** The same, for who makes it anew for each connection and has to remember to whom the secret belongs. */
export function boundCredentials(options: ClientCredentialsOptions, binding: Binding): ClientAuthorization {
  need(
    options.clientSecret !== undefined || options.privateKey !== undefined,
    'clientCredentials needs a clientSecret or a privateKey',
  )
  return lazily(options, binding, ({ credentialsGrant }) => credentialsGrant(options))
}

/**
 * Signs in with the identity that the platform gives to a workload (workload identity federation).
 * @example
 * await using mcp = await connect(url, { auth: workloadIdentity({ assertion: audience => platformToken(audience) }) })
 */
export function workloadIdentity(options: WorkloadOptions): ClientAuthorization {
  need(typeof options.assertion === 'function', 'workloadIdentity needs the function assertion')
  const binding = bindingOf(options, options.clientId ?? 'workload', true)
  return lazily(options, binding, ({ workloadGrant }) => workloadGrant(options))
}

/**
 * Signs in with the ID token of a company's identity provider (enterprise-managed authorization). The user is not asked again for
 * each MCP server.
 * @example
 * const identityProvider = { tokenEndpoint, clientId: 'app', subjectToken: () => idToken }
 * await using mcp = await connect(url, { auth: enterprise({ clientId, clientSecret, identityProvider }) })
 */
export function enterprise(options: EnterpriseOptions): ClientAuthorization {
  need(
    typeof options.identityProvider?.subjectToken === 'function',
    'enterprise needs the function identityProvider.subjectToken',
  )
  const binding = bindingOf(options, options.clientId, true)
  return lazily(options, binding, ({ enterpriseGrant }) => enterpriseGrant(options))
}

/** What credentials are bound to, from the options that they were made with. */
export function bindingOf(
  { issuer, tokenEndpoint }: CommonOptions,
  client: string | undefined,
  secret: boolean | string,
): Binding {
  need(tokenEndpoint === undefined || URL.canParse(tokenEndpoint), 'tokenEndpoint must be an address')
  return new Binding({ issuer, tokenEndpoint, client, secret })
}

/** Loads the way to get tokens with the first refusal. */
function lazily(
  options: CommonOptions & { readonly dpop?: boolean },
  binding: Binding,
  grantOf: (ways: typeof import('./grants.ts')) => OAuthGrant,
  storage?: TokenStorage,
): ClientAuthorization {
  return {
    authorizer: context => {
      checkServer(context.server)
      return new LazyAuthorizer(async () => {
        const ways = await import('./grants.ts')
        return ways.authorizerFor(context, options, binding, grantOf(ways), storage)
      })
    },
  }
}

class LazyAuthorizer implements Credentials {
  readonly #load: () => Promise<Credentials>
  #loading: Promise<Credentials> | undefined
  #loaded: Credentials | undefined

  constructor(load: () => Promise<Credentials>) {
    this.#load = load
  }

  headers(method: string, url: URL): CredentialHeaders | undefined | Promise<CredentialHeaders | undefined> {
    return this.#loaded?.headers(method, url)
  }

  async refused(refusal: CredentialRefusal): Promise<void> {
    this.#loading ??= this.#load()
    this.#loaded = await this.#loading
    return this.#loaded.refused(refusal)
  }

  answered(header: (name: string) => string | undefined): void {
    this.#loaded?.answered?.(header)
  }
}

/** 2026-07-28 basic/authorization/client-registration: https, and with a path. */
function checkMetadataUrl(text: string | undefined): void {
  if (text === undefined) return
  const url = URL.parse(text)
  const good = url !== null && url.protocol === 'https:' && url.pathname !== '/' && url.hash === '' && url.username === ''
  need(good, 'clientMetadataUrl must be an https address with a path, without a fragment')
}

function need(fine: boolean, message: string): void {
  if (!fine) throw new TypeError(message)
}

// A token that somebody else takes care of.

/**
 * Sends a token that you already have. A function is called again when the server refuses the token that it returned before.
 * @example
 * await connect(url, { auth: bearer(() => readToken()) })
 */
export function bearer(token: string | (() => string | Promise<string>)): ClientAuthorization {
  const ask = typeof token === 'string' ? () => token : token
  return {
    authorizer: ({ server }) => {
      checkServer(server)
      return new BearerAuthorizer(ask)
    },
  }
}

class BearerAuthorizer implements Credentials {
  readonly #ask: () => string | Promise<string>
  #headers: { readonly authorization: string } | undefined

  constructor(ask: () => string | Promise<string>) {
    this.#ask = ask
  }

  headers(): { readonly authorization: string } | Promise<{ readonly authorization: string }> {
    return this.#headers ?? this.#fetch()
  }

  async refused({ status, header, sent, times }: CredentialRefusal): Promise<void> {
    if (status === 403) {
      const scopes = challengeParameter(header('www-authenticate'), 'scope')
      const wanted = scopes === undefined ? 'more scopes' : `the scopes ${clip(scopes, 500)}`
      throw new AuthorizationError('scope', `The token lacks a scope (HTTP 403); use a token with ${wanted}`)
    }
    const refused = sent?.['authorization']
    if (times <= 2) {
      if (this.#headers?.authorization !== refused) return
      const { authorization } = await this.#fetch()
      if (authorization !== refused) return
    }
    throw new AuthorizationError(
      'refused-again',
      'The server refuses the token (HTTP 401); use a token that is valid for this server',
    )
  }

  async #fetch(): Promise<{ readonly authorization: string }> {
    const token = await this.#ask()
    if (!/^[A-Za-z0-9\-._~+/]+=*$/.test(token)) {
      throw new AuthorizationError(
        'options',
        'The token contains characters that bearer tokens must not contain (RFC 6750 section 2.1)',
      )
    }
    this.#headers = { authorization: `Bearer ${token}` }
    return this.#headers
  }
}
