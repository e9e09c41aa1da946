/**
 * Authorizing a client, by plain functions that `connect` takes. Nothing of OAuth is loaded before a server asks for it.
 */
import type { CredentialHeaders, CredentialRefusal, Credentials } from '../../core/credentials.ts'
import { checkServer } from './addresses.ts'
import { Binding } from './binding.ts'
import type { Authorization, AuthorizationContext } from './context.ts'
import type { ClientCredentialsOptions, CommonOptions, EnterpriseOptions, OAuthOptions, WorkloadOptions } from './options.ts'
import { memoryStorage } from './storage.ts'

export { bearer } from './bearer.ts'
export type { Browser } from './browser.ts'
export { type CliOptions, cli } from './cli.ts'
export type { Authorization, AuthorizationContext } from './context.ts'
export { AuthorizationError, type AuthorizationRule } from './failure.ts'
export type { SigningAlgorithm } from './keys.ts'
export type {
  ClientCredentialsOptions,
  ClientKey,
  CommonOptions,
  EnterpriseOptions,
  OAuthOptions,
  WorkloadOptions,
} from './options.ts'
export { type FileStorageOptions, fileStorage, memoryStorage, type TokenStorage } from './storage.ts'

/**
 * A person signs in, when the server asks for it.
 * @example
 * await using mcp = await connect('https://example.com/mcp', { auth: oauth() })
 */
export function oauth(options: OAuthOptions = {}): Authorization {
  checkMetadataUrl(options.clientMetadataUrl)
  // Shared by all connections that are made with it.
  const storage = options.storage ?? memoryStorage()
  const binding = bindingOf(options, options.clientId, options.clientSecret ?? false)
  return lazily(async context => (await import('./ways.ts')).byCode(context, options, binding, storage))
}

/**
 * A program signs in for itself, by a secret or a private key.
 * @example
 * await using mcp = await connect(url, { auth: clientCredentials({ clientId: 'nightly', clientSecret }) })
 */
export function clientCredentials(options: ClientCredentialsOptions): Authorization {
  return boundCredentials(options, bindingOf(options, options.clientId, true))
}

/** The same, for who makes it anew for each connection and has to remember to whom the secret belongs. */
export function boundCredentials(options: ClientCredentialsOptions, binding: Binding): Authorization {
  need(
    options.clientSecret !== undefined || options.privateKey !== undefined,
    'clientCredentials needs a clientSecret or a privateKey',
  )
  return lazily(async context => (await import('./ways.ts')).byCredentials(context, options, binding))
}

/**
 * A workload shows the identity that its platform gives it (workload identity federation).
 * @example
 * await using mcp = await connect(url, { auth: workloadIdentity({ assertion: audience => platformToken(audience) }) })
 */
export function workloadIdentity(options: WorkloadOptions): Authorization {
  need(typeof options.assertion === 'function', 'workloadIdentity needs the function assertion')
  const binding = bindingOf(options, options.clientId ?? 'workload', true)
  return lazily(async context => (await import('./ways.ts')).byWorkload(context, options, binding))
}

/**
 * The sign-in at the enterprise's identity provider serves for every MCP server that it allows (enterprise-managed
 * authorization): nobody is asked again.
 * @example
 * const identityProvider = { tokenEndpoint, clientId: 'app', subjectToken: () => idToken }
 * await using mcp = await connect(url, { auth: enterprise({ clientId, clientSecret, identityProvider }) })
 */
export function enterprise(options: EnterpriseOptions): Authorization {
  need(
    typeof options.identityProvider?.subjectToken === 'function',
    'enterprise needs the function identityProvider.subjectToken',
  )
  const binding = bindingOf(options, options.clientId, true)
  return lazily(async context => (await import('./ways.ts')).byEnterprise(context, options, binding))
}

export function bindingOf(
  { issuer, tokenEndpoint }: CommonOptions,
  client: string | undefined,
  secret: boolean | string,
): Binding {
  need(tokenEndpoint === undefined || URL.canParse(tokenEndpoint), 'tokenEndpoint must be an address')
  return new Binding({ issuer, tokenEndpoint, client, secret })
}

function lazily(load: (context: AuthorizationContext) => Promise<Credentials>): Authorization {
  return {
    authorizer: context => {
      checkServer(context.server)
      return new LazyAuthorizer(() => load(context))
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
