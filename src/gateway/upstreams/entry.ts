/** A server behind a gateway, as a program or a file says it. */
import type { ClientAuthorization } from '../../auth/client/index.ts'
import { userStorage } from '../../auth/client/user-storage.ts'
import { quoted } from '../../core/why.ts'
import { type KnownServer, knownServer, type Opening, type ServerOption } from '../../host/servers/entry.ts'
import type { GatewayOptions } from '../options.ts'
import { authFaults, authOf, type UpstreamAuthOption } from './auth.ts'
import { bindings, type CredentialsParts, credentialsFor } from './credentials.ts'

type Detailed = Exclude<ServerOption, Opening>

/** What to connect to, or that with more about it. */
export type GatewayServer =
  | ServerOption
  | (Detailed & {
      /** How the gateway shows there who it is: `sign-in`, credentials of its own, or a way that `vivarium/client` makes. */
      readonly auth?: UpstreamAuthOption | ClientAuthorization
      /** Stands in front of all its names, so that none ever changes: its name (`true`), or this. */
      readonly prefix?: boolean | string
      /**
       * False: where it is started, or called, in another way than before, that is applied and told, not held back. Default: true for
       * what a program or an included file says, false for entries of the gateway's own file, which only its operator writes.
       */
      readonly pinLaunch?: boolean
    })

/** What stands in front of all names of a server, if anything. */
export function prefixIn(name: string, option: GatewayServer, names: GatewayOptions['names']): string | undefined {
  const said: unknown = typeof option === 'object' && 'prefix' in option ? option.prefix : undefined
  if (typeof said === 'string') return said
  return said === true || (names === 'prefixed' && said !== false) ? name : undefined
}

/** Whether another way to start it is held back. */
export function pinsLaunch(option: GatewayServer): boolean {
  return !(typeof option === 'object' && 'pinLaunch' in option && option.pinLaunch === false)
}

/** Its address, where it has one that is known beforehand. */
export function addressOf(target: Opening): string | undefined {
  if (target instanceof URL) return target.href
  return typeof target === 'string' ? target : undefined
}

export function upstreamEntry(name: string, option: GatewayServer, parts: CredentialsParts): KnownServer {
  if (!('target' in Object(option))) return knownServer(name, option)
  const { auth, prefix: _, pinLaunch: __, ...rest } = option as Extract<GatewayServer, { readonly auth?: unknown }>
  const entry = knownServer(name, rest)
  if (auth === undefined) return entry
  const own = typeof auth === 'object' && 'authorizer' in auth ? auth : authOf(checked(name, auth, entry.target))
  return { ...entry, connect: { ...entry.connect, auth: credentialsFor(name, own, parts) } }
}

function checked(name: string, auth: UpstreamAuthOption, target: Opening): UpstreamAuthOption {
  const [first] = authFaults(auth, addressOf(target))
  if (first === undefined) return auth
  throw new TypeError(`The server ${quoted(name)}: ${first.message}. ${first.fix}`)
}

/** As a word of a command line. */
function word(text: string): string {
  return /^[\w./:@-]+$/.test(text) ? text : JSON.stringify(text)
}

/** What somebody has to do who finds the way right in which a server is to be started. */
export function approveBy({ config, store = 'memory:' }: GatewayOptions, upstream: string): string {
  if (config === undefined) return 'Look at it in approvals(), and approve it by its id'
  const fix = store === 'memory:' ? 'restart the gateway' : `vivarium gateway ${word(config)} --approve ${word(upstream)}`
  return `Look at its entry. If that is as you want it: ${fix}`
}

/** Where tokens are, and what somebody is told who has to sign in. */
export function credentialsParts({ config, tokens }: GatewayOptions): CredentialsParts {
  let kept = tokens
  return {
    binding: bindings(),
    tokens: () => {
      kept ??= userStorage(process.env)
      return kept
    },
    signInBy: (upstream, { href, origin, pathname, search }) => {
      if (config !== undefined) return `Sign in: vivarium gateway ${word(config)} --sign-in ${word(upstream)}`
      // What is told to others must not hold a key that stands in the address.
      if (tokens === undefined) return `Sign in: vivarium list ${search === '' ? word(href) : `${origin}${pathname}?…`}`
      return 'Sign in with oauth() of vivarium/client and the storage that is the option tokens'
    },
  }
}
