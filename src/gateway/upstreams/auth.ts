/** How a gateway shows at a server behind it who it is: by credentials of its own. Plain data, as it lies in a file. */

import { readFile } from 'node:fs/promises'
import { carriesCredentials } from '../../auth/client/addresses.ts'
import type { Binding } from '../../auth/client/binding.ts'
import {
  type AuthorizationContext,
  AuthorizationError,
  type AuthorizationRule,
  type Browser,
  bindingOf,
  boundCredentials,
  type ClientAuthorization,
  oauth,
  type SigningAlgorithm,
  type TokenStorage,
} from '../../auth/client/index.ts'
import type { CredentialHeaders, CredentialRefusal, Credentials } from '../../core/credentials.ts'
import { quoted, type Why, why } from '../../core/suggestion.ts'
import { ConnectionError } from '../../jsonrpc/connection.ts'
import { clip } from '../../jsonrpc/limits.ts'
import { isRecord, picked } from '../../jsonrpc/message.ts'

/** How the gateway authenticates at one server. */
export interface UpstreamAuth {
  /** A person signs in once for it, and the gateway renews what that brought. Otherwise it signs in for itself. */
  readonly signIn?: boolean
  /** The gateway, as it was registered at the authorization server. With `signIn` it may register itself. */
  readonly clientId?: string
  readonly clientSecret?: string
  /** The file that holds the secret; read whenever it is needed. */
  readonly clientSecretFile?: string
  /** Signs assertions in the place of a secret: PKCS #8 in PEM. */
  readonly privateKey?: string
  readonly privateKeyFile?: string
  /** Of the private key. Default ES256. */
  readonly algorithm?: SigningAlgorithm
  /** Of the private key, where the authorization server knows several. */
  readonly keyId?: string
  /** With `signIn`: the https address of a client metadata document. */
  readonly clientMetadataUrl?: string
  /** Scopes to ask for beside those that the server names. */
  readonly scopes?: readonly string[]
  /** The authorization server that the client is registered at; another one is refused. Default: the first one that the server names. */
  readonly issuer?: string
  /** Its token endpoint; another one in its metadata is refused. */
  readonly tokenEndpoint?: string
  /** Private ranges in which authorization servers may lie: `10.1.0.0/16`. */
  readonly allow?: readonly string[]
  /** Asks for tokens that only this gateway can use, and for no others. */
  readonly dpop?: boolean
}

/** In short: a person signs in, and nothing else is to be said of it. */
export type UpstreamAuthOption = 'sign-in' | UpstreamAuth

/** The option in its long form. */
export function authOf(option: UpstreamAuthOption): UpstreamAuth {
  return option === 'sign-in' ? { signIn: true } : option
}

interface AuthFault {
  /** The member that is mistaken; undefined: all of it. */
  readonly member?: string
  readonly message: string
  readonly fix: string
}

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
const keys = ['clientSecret', 'clientSecretFile', 'privateKey', 'privateKeyFile'] as const
const algorithms: readonly string[] = ['ES256', 'ES384', 'ES512', 'RS256', 'PS256', 'EdDSA'] satisfies SigningAlgorithm[]
const ways = 'Write auth: sign-in, or auth: { clientId, clientSecret } with the secret in a variable of the environment'

/** What is wrong with it; empty: nothing. `address`: the server that it is for, where that has one. */
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

/** A member that is unknown, or of the wrong type. */
function memberFault(member: string, value: unknown): readonly AuthFault[] {
  const kind = Object.hasOwn(kinds, member) ? kinds[member as keyof UpstreamAuth] : undefined
  if (kind === undefined)
    return [
      {
        member,
        message: `auth has no member ${JSON.stringify(clip(member))}`,
        fix: `There are ${Object.keys(kinds).join(', ')}`,
      },
    ]
  const isText = (text: unknown): boolean => typeof text === 'string' && text !== ''
  const fits = {
    text: isText(value),
    texts: Array.isArray(value) && value.every(isText),
    flag: typeof value === 'boolean',
  }[kind]
  return fits ? [] : [{ member, message: `auth.${member} is not what it must be`, fix: remedies[kind] }]
}

/** Members that contradict each other, or that are missing. */
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

// Credentials of the gateway's own for the servers behind it. Nobody is there to be asked: where a person has to sign in, that is said,
// with the way to do it. What a caller shows to the gateway is not known here at all.

/** What credentials for servers are made with. */
export interface CredentialsParts {
  /** Where the tokens of those who signed in are. */
  tokens(): TokenStorage
  /** What somebody has to do to sign in at a server. */
  signInBy(upstream: string, server: URL): string
  /** To whom the secret of an entry belongs: remembered however often its server is connected to, and whatever else in the entry changes. */
  binding(auth: UpstreamAuth, server: URL): Binding
}

/** By what makes an entry another one to an authorization server. */
export function bindings(): CredentialsParts['binding'] {
  const known = new Map<string, Binding>()
  return (auth, { href }) => {
    const { clientId, issuer, tokenEndpoint } = auth
    const key = JSON.stringify([href, clientId, issuer, tokenEndpoint])
    const binding = known.get(key) ?? bindingOf(auth, clientId, true)
    known.set(key, binding)
    return binding
  }
}

/** The server will not have the gateway as it is now. */
export class CredentialsNeeded extends Error {
  override readonly name = 'CredentialsNeeded'
  readonly why: Why

  constructor(said: Why, cause: unknown) {
    super(said.message, { cause })
    this.why = said
  }
}

class SignInNeeded extends AuthorizationError {
  constructor() {
    super('browser', 'it asks for a sign-in, and here is nobody who could')
  }
}

const unseen = (): Promise<never> => Promise.reject(new SignInNeeded())
/** So no client is registered for a sign-in that cannot be. Tokens that are kept are used and renewed. */
const nobody: Browser = { redirectUri: unseen, authorize: unseen }

/** Credentials for one server, whose failures say what the operator has to do. */
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

/** The way that the settings stand for. Files are read now, so that what was put in their place since counts. */
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

/** Where somebody signs in, or has. */
export async function signInWith(auth: UpstreamAuth, storage: TokenStorage, browser: Browser): Promise<ClientAuthorization> {
  return oauth({ ...(await commonOf(auth)), ...picked(auth, 'clientId', 'clientMetadataUrl'), storage, browser })
}

/** What both ways have in common. */
async function commonOf(auth: UpstreamAuth) {
  const clientSecret = auth.clientSecret ?? (await contentOf(auth.clientSecretFile))
  const common = picked(auth, 'scopes', 'issuer', 'tokenEndpoint', 'allow', 'dpop')
  return { ...common, ...(clientSecret !== undefined && { clientSecret }) }
}

/** Why a server is not up, where that is a matter of credentials. */
export function credentialsWhy(upstream: string, reason: unknown): Why | undefined {
  if (!(reason instanceof ConnectionError)) return undefined
  if (reason.cause instanceof CredentialsNeeded) return reason.cause.why
  if (reason.status !== 401) return undefined
  const fix = 'Give its entry auth: sign-in, auth: { clientId, clientSecret } or headers'
  return why('SIGN_IN_NEEDED', 'upstream.auth', `The server ${quoted(upstream)} wants to know who calls (HTTP 401)`, fix)
}

/** Codes of those whys. */
export const credentialCodes: ReadonlySet<string> = new Set(['SIGN_IN_NEEDED', 'CREDENTIALS_REFUSED'])

async function contentOf(file: string | undefined): Promise<string | undefined> {
  if (file === undefined) return undefined
  try {
    return (await readFile(file, 'utf8')).trim()
  } catch {
    throw new AuthorizationError('options', `the file ${quoted(file)} cannot be read`)
  }
}

function unsigned(upstream: string, by: string): Why {
  return why('SIGN_IN_NEEDED', 'upstream.auth', `The server ${quoted(upstream)} needs a sign-in`, by)
}

/** What is wrong with the settings, and not with what they lead to. */
const ownRules: ReadonlySet<AuthorizationRule> = new Set(['options', 'address', 'registration', 'token-type'])

function refused(upstream: string, { rule, code, message }: AuthorizationError): Why {
  const said = clip(message, 400)
  if (rule === 'scope')
    return why(
      'SCOPE_MISSING',
      'upstream.auth',
      `The server ${quoted(upstream)} does not let the gateway do this: ${said}`,
      'Give scopes in auth of its entry, or let the gateway have them at the authorization server',
    )
  if (rule === 'issuer-mismatch')
    return why(
      'CREDENTIALS_REFUSED',
      'upstream.auth',
      `The server ${quoted(upstream)} asks for credentials that belong elsewhere: ${said}`,
      'Ask its operator. If the change is right, set issuer, or tokenEndpoint, in auth of its entry',
    )
  const fix = 'orrect auth in its entry'
  return why(
    'CREDENTIALS_REFUSED',
    'upstream.auth',
    `The server ${quoted(upstream)} cannot be shown who the gateway is: ${said}`,
    code !== undefined || ownRules.has(rule) ? `C${fix}` : `It is tried again by itself; c${fix} if that does not help`,
  )
}

/** Credentials that are got ready when the server first asks for them, and whose failures say what to do. */
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

  /** Gets credentials when the server first asks for them. */
  async refused(refusal: CredentialRefusal): Promise<void> {
    try {
      this.#loading ??= this.#load()
      this.#inner = await this.#loading
      await this.#inner.refused(refusal)
    } catch (error) {
      if (this.#inner === undefined) this.#loading = undefined
      throw this.#told(error)
    }
  }

  answered(header: (name: string) => string | undefined): void {
    this.#inner?.answered?.(header)
  }
}
