/** How a gateway shows at a server behind it who it is: by credentials of its own. Plain data, as it lies in a file. */
import { carriesCredentials } from '../../auth/client/addresses.ts'
import type { SigningAlgorithm } from '../../auth/client/index.ts'
import { clip } from '../../jsonrpc/limits.ts'
import { isRecord } from '../../jsonrpc/message.ts'

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
