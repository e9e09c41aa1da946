/** How the ways of serving get their authorizer: loaded when it is wanted, so that an open server never pays for it. */
import type { ResourceAuthorization } from '../auth/resource/options.ts'
import type { Authorizer } from '../core/credentials.ts'
import type { Engine } from '../engine/engine.ts'
import type { Caller, Principal } from '../jsonrpc/connection.ts'

/** Whose tokens are accepted: the result of `oauth`. `'none'` states that everybody who reaches the server may call it. */
export type Auth = ResourceAuthorization | 'none'

/** `resource`: the server's address, for settings that name none. Undefined: there is nothing to authorize. */
export async function loadAuthorizer(
  auth: Auth | undefined,
  engine: Engine,
  resource?: () => string | undefined,
): Promise<Authorizer | undefined> {
  if (auth === undefined || auth === 'none') return undefined
  const { createAuthorizer } = await import('../auth/resource/authorizer.ts')
  return createAuthorizer(auth, authorizerOptions(engine, resource))
}

/** Whoever names the address of a server has named its host, too. */
export function namedHosts({
  auth,
  hosts = [],
}: {
  readonly auth?: Auth
  readonly hosts?: readonly string[]
}): readonly string[] {
  const resource = auth === undefined || auth === 'none' ? undefined : auth.settings.resource
  return resource === undefined ? hosts : [...hosts, new URL(resource).hostname]
}

/** What an engine knows that an authorizer needs. */
export function authorizerOptions(engine: Engine, resource?: () => string | undefined) {
  const { info, clock, trace } = engine
  const failed = (error: unknown, token?: string): void => trace('authorization', error, bearerOf(token))
  const disconnected = (matches: (principal: Principal) => boolean): void => engine.disconnect(matches)
  return { name: info.title ?? info.name, clock, resource, failed, disconnected }
}

/** Lets the log know what must not stand in it: an author's own function may say anything when it fails. */
function bearerOf(token: string | undefined): Caller {
  return { carrier: 'http', connection: {}, header: name => (name === 'authorization' && token ? `Bearer ${token}` : undefined) }
}
