/** Authentication of the gateway at upstreams: the `auth` setting and its validation, and the credentials made from it. */

import { readFile } from 'node:fs/promises'
import { carriesCredentials } from '../../auth/addresses.ts'
import {
  type AuthorizationContext,
  AuthorizationError,
  type AuthorizationRule,
  type Browser,
  boundCredentials,
  type ClientAuthorization,
  oauth,
  type SigningAlgorithm,
  type TokenStorage,
} from '../../auth/client/index.ts'
import type { Binding } from '../../auth/client/issuer-binding.ts'
import type { CredentialHeaders, CredentialRefusal, Credentials } from '../../core/credentials.ts'
import { quoted, type Why, why } from '../../core/suggestion.ts'
import { ConnectionError } from '../../jsonrpc/connection.ts'
import { clip } from '../../jsonrpc/limits.ts'
import { isRecord, picked } from '../../jsonrpc/message.ts'

/**
 * How the gateway authenticates at one upstream. Plain data, as in a config file.
 * @atLeastOne signIn clientId
 * @atMostOne clientSecret clientSecretFile privateKey privateKeyFile
 */
export interface UpstreamAuth {
  /**
   * Whether a person signs in once, after which the gateway renews the tokens. Otherwise the gateway authenticates as itself, with a
   * client id and a secret or key.
   * @default false
   */
  readonly signIn?: boolean
  /**
   * The client id at the authorization server. With `signIn` the gateway can register itself instead.
   * @minLength 1
   */
  readonly clientId?: string
  /**
   * The client secret. Use a variable instead of writing it into the file.
   * @minLength 1
   * @example ${CLIENT_SECRET}
   */
  readonly clientSecret?: string
  /**
   * The file that holds the client secret; it is read whenever the secret is needed.
   * @minLength 1
   */
  readonly clientSecretFile?: string
  /**
   * The private key that signs assertions instead of a secret: PKCS #8 in PEM.
   * @minLength 1
   */
  readonly privateKey?: string
  /**
   * The file that holds the private key; it is read whenever the key is needed.
   * @minLength 1
   * @example keys/crm.pem
   */
  readonly privateKeyFile?: string
  /**
   * The algorithm of the private key.
   * @default ES256
   */
  readonly algorithm?: (typeof algorithms)[number]
  /**
   * The id of the private key, if the authorization server knows several.
   * @minLength 1
   */
  readonly keyId?: string
  /**
   * With `signIn`: the https URL of a client metadata document.
   * @minLength 1
   */
  readonly clientMetadataUrl?: string
  /**
   * Scopes to request in addition to those that the upstream names.
   * @default []
   * @minLength 1
   */
  readonly scopes?: readonly string[]
  /**
   * The authorization server that the secret is for; any other is refused. By default the first one that the upstream names.
   * @minLength 1
   */
  readonly issuer?: string
  /**
   * The expected token endpoint; a different one in the metadata is refused. By default that of the metadata.
   * @pattern ^[a-zA-Z][a-zA-Z0-9+.-]*:
   */
  readonly tokenEndpoint?: string
  /**
   * Private address ranges in which authorization servers may be. By default none.
   * @minLength 1
   * @example ["10.1.0.0/16"]
   */
  readonly allow?: readonly string[]
  /**
   * Whether to require DPoP-bound tokens, which only this gateway can use.
   * @default false
   */
  readonly dpop?: boolean
}

/** Credentials for an upstream. `sign-in` is short for `{ signIn: true }`. */
export type UpstreamAuthOption = 'sign-in' | UpstreamAuth

/** The option in its long form. */
export function authOf(option: UpstreamAuthOption): UpstreamAuth {
  return option === 'sign-in' ? { signIn: true } : option
}

interface AuthFault {
  /** The wrong member; undefined: the whole value. */
  readonly member?: string
  readonly message: string
  readonly fix: string
}

/** The type of each member. */
const kinds: Readonly<Record<keyof UpstreamAuth, 'text' | 'texts' | 'flag'>> = {
  signIn: 'flag',
  clientId: 'text',
  clientSecret: 'text',
  clientSecretFile: 'text',
  privateKey: 'text',
  privateKeyFile: 'text',
  algorithm: 'text',
  keyId: 'text',
  clientMetadataUrl: 'text',
  scopes: 'texts',
  issuer: 'text',
  tokenEndpoint: 'text',
  allow: 'texts',
  dpop: 'flag',
}
const remedies = { text: 'Use a string', texts: 'Use a list of strings', flag: 'Use true or false' } as const
/** Members of which at most one may be given. */
const keys = ['clientSecret', 'clientSecretFile', 'privateKey', 'privateKeyFile'] as const
const algorithms = ['ES256', 'ES384', 'ES512', 'RS256', 'PS256', 'EdDSA'] as const satisfies readonly SigningAlgorithm[]
const ways = 'Write auth: sign-in, or auth: { clientId, clientSecret } with the secret in an environment variable'

/** All mistakes in an `auth` value; empty where there are none. `address`: the upstream's URL, where it has one. */
export function authFaults(value: unknown, address: string | undefined): readonly AuthFault[] {
  if (address === undefined)
    return [{ message: 'auth is only for servers with a url', fix: 'Pass the credentials of a command in env, and remove auth' }]
  if (!carriesCredentials(new URL(address.replace(/^ws/i, 'http'))))
    return [{ message: 'auth would send credentials unencrypted over http', fix: 'Use the https address of the server' }]
  if (value === 'sign-in') return []
  if (!isRecord(value)) return [{ message: `auth cannot be ${clip(JSON.stringify(value))}`, fix: ways }]
  const shape = Object.entries(value).flatMap(([name, member]) => memberFault(name, member))
  return shape.length > 0 ? shape : meaningFaults(value)
}

/** A member that is unknown or has the wrong type. */
function memberFault(member: string, value: unknown): readonly AuthFault[] {
  const kind = Object.hasOwn(kinds, member) ? kinds[member as keyof UpstreamAuth] : undefined
  const message = `auth has no setting ${quoted(member)}`
  if (kind === undefined) return [{ member, message, fix: `Use ${Object.keys(kinds).join(', ')}` }]
  const isText = (text: unknown): boolean => typeof text === 'string' && text !== ''
  const fits = {
    text: isText(value),
    texts: Array.isArray(value) && value.every(isText),
    flag: typeof value === 'boolean',
  }[kind]
  return fits ? [] : [{ member, message: `auth.${member} is not valid`, fix: remedies[kind] }]
}

/** Members that contradict each other or are missing. */
function meaningFaults(auth: UpstreamAuth): readonly AuthFault[] {
  const given = keys.filter(name => auth[name] !== undefined)
  const { signIn = false, clientId, algorithm, clientMetadataUrl, tokenEndpoint } = auth
  if (given.length > 1)
    return [
      {
        member: given[1] as string,
        message: `auth has ${given.join(' and ')}, which cannot be combined`,
        fix: 'Keep one of them',
      },
    ]
  if (algorithm !== undefined && !algorithms.some(known => known === algorithm))
    return [{ member: 'algorithm', message: 'auth.algorithm is not supported', fix: `Use one of ${algorithms.join(', ')}` }]
  if (tokenEndpoint !== undefined && !URL.canParse(tokenEndpoint))
    return [{ member: 'tokenEndpoint', message: 'auth.tokenEndpoint is not a URL', fix: 'Write it in full: https://…' }]
  if (!signIn && (clientId === undefined || given.length === 0))
    return [{ message: 'auth has no credentials of the gateway', fix: ways }]
  if (signIn && given[0]?.startsWith('privateKey') === true)
    return [
      {
        member: given[0],
        message: 'signIn cannot be combined with a private key',
        fix: 'Use clientSecret or clientSecretFile, or remove the private key',
      },
    ]
  if (!signIn && clientMetadataUrl !== undefined)
    return [{ member: 'clientMetadataUrl', message: 'clientMetadataUrl needs signIn', fix: 'Add signIn: true' }]
  return []
}

// Credentials. Nobody can be asked interactively: where a person has to sign in, the error says how. Tokens of clients are never used for
// upstreams.

/** What credentials are made with. */
export interface CredentialsParts {
  /** The tokens of sign-ins. */
  tokens(): TokenStorage
  /** How to sign in at an upstream. */
  signInBy(upstream: string, server: URL): string
  /** The authorization server that an entry's secret is bound to; remembered across reconnects and other changes of the entry. */
  binding(auth: UpstreamAuth, server: URL): Binding
}

/** The upstream does not accept the gateway's current credentials. */
export class CredentialsNeeded extends Error {
  override readonly name = 'CredentialsNeeded'
  readonly why: Why

  constructor(said: Why, cause: unknown) {
    super(said.message, { cause })
    this.why = said
  }
}

/** A sign-in is needed, and nobody is there. */
class SignInNeeded extends AuthorizationError {
  constructor() {
    super('browser', 'it requires a sign-in, and no user is present to sign in')
  }
}

const unseen = (): Promise<never> => Promise.reject(new SignInNeeded())
/** A browser that always fails, so that no client is registered for a sign-in that cannot happen. Stored tokens are still used and renewed. */
const nobody: Browser = { redirectUri: unseen, authorize: unseen }

/** Credentials for one upstream, whose errors say what the operator has to do. */
export function credentialsFor(
  upstream: string,
  auth: UpstreamAuth | ClientAuthorization,
  parts: CredentialsParts,
): ClientAuthorization {
  const told = (error: unknown, { server }: AuthorizationContext): unknown => {
    if (!(error instanceof AuthorizationError)) return error
    const signIn = error instanceof SignInNeeded ? parts.signInBy(upstream, server) : undefined
    return new CredentialsNeeded(signIn === undefined ? refused(upstream, error) : unsigned(upstream, signIn), error)
  }
  return {
    authorizer: context => {
      const made = 'authorizer' in auth ? auth.authorizer(context) : undefined
      const load = async (): Promise<Credentials> =>
        made ?? (await authorizationOf(auth as UpstreamAuth, context.server, parts)).authorizer(context)
      return new UpstreamCredentials(made, load, error => told(error, context))
    },
  }
}

/** The authorization that the settings describe. Secret files are read now, so that a replaced file takes effect. */
async function authorizationOf(auth: UpstreamAuth, server: URL, parts: CredentialsParts): Promise<ClientAuthorization> {
  if (auth.signIn === true) return signInWith(auth, parts.tokens(), nobody)
  const { clientId = '', privateKeyFile } = auth
  const privateKey = auth.privateKey ?? (await contentOf(privateKeyFile))
  const options = {
    ...(await commonOf(auth)),
    ...picked(auth, 'algorithm', 'keyId'),
    clientId,
    ...(privateKey !== undefined && { privateKey }),
  }
  return boundCredentials(options, parts.binding(auth, server))
}

/** The authorization for a sign-in. */
export async function signInWith(auth: UpstreamAuth, storage: TokenStorage, browser: Browser): Promise<ClientAuthorization> {
  return oauth({ ...(await commonOf(auth)), ...picked(auth, 'clientId', 'clientMetadataUrl'), storage, browser })
}

/** The options that both kinds share. */
async function commonOf(auth: UpstreamAuth) {
  const clientSecret = auth.clientSecret ?? (await contentOf(auth.clientSecretFile))
  const common = picked(auth, 'scopes', 'issuer', 'tokenEndpoint', 'allow', 'dpop')
  return { ...common, ...(clientSecret !== undefined && { clientSecret }) }
}

/** Why an upstream is down, where credentials are the reason. */
export function credentialsWhy(upstream: string, reason: unknown): Why | undefined {
  if (!(reason instanceof ConnectionError)) return undefined
  if (reason.cause instanceof CredentialsNeeded) return reason.cause.why
  if (reason.status !== 401) return undefined
  const fix = 'Add auth: sign-in, auth: { clientId, clientSecret } or headers to its entry'
  return why('SIGN_IN_NEEDED', 'upstream.auth', `The server ${quoted(upstream)} requires authentication (HTTP 401)`, fix)
}

/** The codes that `credentialsWhy` returns. */
export const credentialCodes: ReadonlySet<string> = new Set(['SIGN_IN_NEEDED', 'CREDENTIALS_REFUSED'])

/** The trimmed content of a file. */
async function contentOf(file: string | undefined): Promise<string | undefined> {
  if (file === undefined) return undefined
  try {
    return (await readFile(file, 'utf8')).trim()
  } catch {
    throw new AuthorizationError('options', `the file ${quoted(file)} does not exist or is not readable`)
  }
}

/** The reason for a missing sign-in. */
function unsigned(upstream: string, by: string): Why {
  return why('SIGN_IN_NEEDED', 'upstream.auth', `The server ${quoted(upstream)} needs a sign-in`, by)
}

/** Errors that the settings cause, so that retrying does not help. */
const ownRules: ReadonlySet<AuthorizationRule> = new Set(['options', 'address', 'registration', 'token-type'])

/** The reason for other authorization errors. */
function refused(upstream: string, { rule, code, message }: AuthorizationError): Why {
  const of = (what: string, told: string, fix: string): Why =>
    why(what, 'upstream.auth', `The server ${quoted(upstream)} ${told}: ${clip(message, 400)}`, fix)
  if (rule === 'scope') {
    const fix = 'Set scopes in auth of its entry, or grant them to the gateway at the authorization server'
    return of('SCOPE_MISSING', 'does not permit the gateway to do this', fix)
  }
  if (rule === 'issuer-mismatch') {
    const fix = 'Ask the operator of the server. If the change is correct, set issuer or tokenEndpoint in auth of its entry'
    return of('CREDENTIALS_REFUSED', 'requests credentials for a different authorization server', fix)
  }
  const isFinal = code !== undefined || ownRules.has(rule)
  const fix = isFinal
    ? 'Correct auth in its entry'
    : 'The gateway retries automatically. If the error persists, correct auth in its entry'
  return of('CREDENTIALS_REFUSED', 'cannot be used, because authentication failed', fix)
}

/** Credentials that are loaded when the upstream first asks for them. */
class UpstreamCredentials implements Credentials {
  readonly #load: () => Promise<Credentials>
  readonly #told: (error: unknown) => unknown
  #loading: Promise<Credentials> | undefined = undefined
  #inner: Credentials | undefined

  constructor(inner: Credentials | undefined, load: () => Promise<Credentials>, told: (error: unknown) => unknown) {
    this.#inner = inner
    this.#load = load
    this.#told = told
  }

  headers(method: string, url: URL): CredentialHeaders | undefined | Promise<CredentialHeaders | undefined> {
    return this.#inner?.headers(method, url)
  }

  /** Loads credentials on the first refusal, then passes refusals on. */
  async refused(refusal: CredentialRefusal): Promise<void> {
    try {
      this.#loading ??= this.#load()
      this.#inner = await this.#loading
      await this.#inner.refused(refusal)
    } catch (error) {
      // Try again at the next refusal.
      if (this.#inner === undefined) this.#loading = undefined
      throw this.#told(error)
    }
  }

  answered(header: (name: string) => string | undefined): void {
    this.#inner?.answered?.(header)
  }
}
