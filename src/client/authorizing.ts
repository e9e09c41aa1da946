/** Turns the option `auth` into what carriers ask for credentials. */

import type { Clock } from '../core/clock.ts'
import type { Credentials } from '../core/credentials.ts'
import type { Outbound } from '../core/outbound.ts'
import type { ConnectOptions } from './options.ts'
import type { Target } from './target.ts'

interface AuthorizingFacts {
  readonly clock: Clock
  readonly clientName: string
  readonly revisions: readonly string[]
  readonly trace: (event: string, detail: unknown) => void
  /** Told that the server got other credentials than before: they may be another's. */
  readonly replaced: () => void
}

/** One authorizer for one client, whatever connections it opens to its server. */
export function authorizerOf(
  target: Target,
  options: ConnectOptions,
  { replaced, ...facts }: AuthorizingFacts,
): Credentials | undefined {
  const { auth, headers = {} } = options
  if (auth === undefined) return undefined
  if (typeof target !== 'string' && !(target instanceof URL)) {
    throw new TypeError('The option auth is for servers with an address; give a command its credentials by env')
  }
  if (Object.keys(headers).some(name => name.toLowerCase() === 'authorization')) {
    throw new TypeError('Give either the option auth or headers.authorization, not both')
  }
  const server = serverAddress(new URL(target))
  return noticing(auth.authorizer({ ...facts, server, reach: allow => lazyOutbound(server, allow) }), replaced)
}

function noticing(inner: Credentials, replaced: () => void): Credentials {
  return {
    headers: (method, url) => inner.headers(method, url),
    refused: async refusal => {
      await inner.refused(refusal)
      replaced()
    },
    answered: header => inner.answered?.(header),
  }
}

/** Authorization speaks of HTTP, also where a WebSocket is opened by it. */
function serverAddress(target: URL): URL {
  const server = new URL(target.href.replace(/^ws/, 'http'))
  server.hash = ''
  return server
}

/** Loaded with the first address that a server names. */
function lazyOutbound(server: URL, allow: readonly string[]): Outbound {
  let loaded: Promise<Outbound> | undefined
  return async (url, request) => {
    loaded ??= import('./outbound.ts').then(({ outboundFor }) => outboundFor(server, allow))
    return (await loaded)(url, request)
  }
}
