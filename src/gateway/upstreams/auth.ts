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

/** How the gateway authenticates at one upstream. Plain data, as in a config file. */
export interface UpstreamAuth {
  /** A person signs in once, and the gateway renews the tokens. Otherwise the gateway authenticates as itself. */
  readonly signIn?: boolean
  /** The client id at the authorization server. With `signIn` the gateway can register itself. */
  readonly clientId?: string
  readonly clientSecret?: string
  /** The file that holds the secret; read whenever it is needed. */
  readonly clientSecretFile?: string
  /** Signs assertions instead of a secret: PKCS #8 in PEM. */
  readonly privateKey?: string
  /** The file that holds the private key. */
  readonly privateKeyFile?: string
  /** The algorithm of the private key. Default ES256. */
  readonly algorithm?: SigningAlgorithm
  /** The id of the private key, where the authorization server knows several. */
  readonly keyId?: string
  /** With `signIn`: the https URL of a client metadata document. */
  readonly clientMetadataUrl?: string
  /** Scopes to request beside those that the upstream names. */
  readonly scopes?: readonly string[]
  /** The expected authorization server; any other is refused. Default: the first one that the upstream names. */
  readonly issuer?: string
  /** The expected token endpoint; a different one in the metadata is refused. */
  readonly tokenEndpoint?: string
  /** Private address ranges in which authorization servers may be: `10.1.0.0/16`. */
  readonly allow?: readonly string[]
  /** Requires DPoP-bound tokens, which only this gateway can use. */
  readonly dpop?: boolean
}

/** `sign-in` is short for `{ signIn: true }`. */
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
const remedies = { text: 'Give a text', texts: 'Give a list of texts', flag: 'Write true or false' } as const
/** Members of which at most one may be given. */
const keys = ['clientSecret', 'clientSecretFile', 'privateKey', 'privateKeyFile'] as const
const algorithms: readonly string[] = ['ES256', 'ES384', 'ES512', 'RS256', 'PS256', 'EdDSA'] satisfies SigningAlgorithm[]
const ways = 'Write auth: sign-in, or auth: { clientId, clientSecret } with the secret in a variable of the environment'

/** All mistakes in an `auth` value; empty where there are none. `address`: the upstream's URL, where it has one. */
export function authFaults(value: unknown, address: string | undefined): readonly AuthFault[] {
  if (address === undefined)
    return [{ message: 'auth is for servers with a url', fix: 'Give a command its credentials by env, and leave auth out' }]
  if (!carriesCredentials(new URL(address.replace(/^ws/i, 'http'))))
    return [{ message: 'auth would send credentials by plain http, where anybody could read them', fix: 'Use its https address' }]
  if (value === 'sign-in') return []
  if (!isRecord(value)) return [{ message: `auth is ${clip(JSON.stringify(value))}`, fix: ways }]
  const shape = Object.entries(value).flatMap(([name, member]) => memberFault(name, member))
  return shape.length > 0 ? shape : meaningFaults(value)
}

/** A member that is unknown or has the wrong type. */
function memberFault(member: string, value: unknown): readonly AuthFault[] {
  const kind = Object.hasOwn(kinds, member) ? kinds[member as keyof UpstreamAuth] : undefined
  const message = `auth has no member ${quoted(member)}`
  if (kind === undefined) return [{ member, message, fix: `There are ${Object.keys(kinds).join(', ')}` }]
  const isText = (text: unknown): boolean => typeof text === 'string' && text !== ''
  const fits = {
    text: isText(value),
    texts: Array.isArray(value) && value.every(isText),
    flag: typeof value === 'boolean',
  }[kind]
  return fits ? [] : [{ member, message: `auth.${member} is not what it must be`, fix: remedies[kind] }]
}

/** Members that contradict each other or are missing. */
function meaningFaults(auth: UpstreamAuth): readonly AuthFault[] {
  const given = keys.filter(name => auth[name] !== undefined)
  const { signIn = false, clientId, algorithm, clientMetadataUrl, tokenEndpoint } = auth
  if (given.length > 1)
    return [{ member: given[1] as string, message: `auth has ${given.join(' and ')}`, fix: 'Give one of them' }]
  if (algorithm !== undefined && !algorithms.includes(algorithm))
    return [{ member: 'algorithm', message: 'auth.algorithm is not known', fix: `Give one of ${algorithms.join(', ')}` }]
  if (tokenEndpoint !== undefined && !URL.canParse(tokenEndpoint))
    return [{ member: 'tokenEndpoint', message: 'auth.tokenEndpoint is no address', fix: 'Write it in full: https://…' }]
  if (!signIn && (clientId === undefined || given.length === 0))
    return [{ message: 'auth says not who the gateway is', fix: ways }]
  if (signIn && given[0]?.startsWith('privateKey') === true)
    return [{ member: given[0], message: 'A sign-in goes with a secret, or none', fix: 'Give clientSecret, or leave it out' }]
  if (!signIn && clientMetadataUrl !== undefined)
    return [{ member: 'clientMetadataUrl', message: 'clientMetadataUrl is for a sign-in', fix: 'Add signIn: true' }]
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
    super('browser', 'it asks for a sign-in, and here is nobody who could')
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
  const fix = 'Give its entry auth: sign-in, auth: { clientId, clientSecret } or headers'
  return why('SIGN_IN_NEEDED', 'upstream.auth', `The server ${quoted(upstream)} wants to know who calls (HTTP 401)`, fix)
}

/** The codes that `credentialsWhy` returns. */
export const credentialCodes: ReadonlySet<string> = new Set(['SIGN_IN_NEEDED', 'CREDENTIALS_REFUSED'])

/** The trimmed content of a file. */
async function contentOf(file: string | undefined): Promise<string | undefined> {
  if (file === undefined) return undefined
  try {
    return (await readFile(file, 'utf8')).trim()
  } catch {
    throw new AuthorizationError('options', `the file ${quoted(file)} cannot be read`)
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
    const fix = 'Give scopes in auth of its entry, or let the gateway have them at the authorization server'
    return of('SCOPE_MISSING', 'does not let the gateway do this', fix)
  }
  if (rule === 'issuer-mismatch') {
    const fix = 'Ask its operator. If the change is right, set issuer, or tokenEndpoint, in auth of its entry'
    return of('CREDENTIALS_REFUSED', 'asks for credentials that belong elsewhere', fix)
  }
  const isFinal = code !== undefined || ownRules.has(rule)
  const fix = isFinal
    ? 'Correct auth in its entry'
    : 'It is tried again by itself; correct auth in its entry if that does not help'
  return of('CREDENTIALS_REFUSED', 'cannot be shown who the gateway is', fix)
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
