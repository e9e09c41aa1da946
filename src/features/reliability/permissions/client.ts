/** Asking a server what it would allow, and for more. The token of what it granted goes with every request from then on. */
import { type Duration, toMilliseconds } from '../../../core/clock.ts'
import { defineClientFeature } from '../../../engine/client-feature.ts'
import type { Exchange } from '../../../engine/exchange.ts'
import { declaration } from '../../../engine/extensions.ts'
import type { Method } from '../../../engine/method.ts'
import { McpError } from '../../../jsonrpc/error.ts'
import { isRecord, type Params } from '../../../jsonrpc/message.ts'
import {
  checkPermissions,
  negotiatePermissions,
  permissionsEnded,
  permissionsExtension,
  type WireCheck,
  type WireChecked,
  type WireNegotiated,
} from './messages.ts'

/** What a call would get if it were made now. */
export interface Permission {
  readonly allowed: boolean
  /** All scopes that are missing. */
  readonly missing: readonly string[]
  readonly reason: string | undefined
  /** Where the user can grant them. Never opened by this client. */
  readonly elevationUrl: string | undefined
}

interface Negotiated {
  readonly granted: readonly string[]
  readonly denied: readonly { readonly scope: string; readonly reason: string }[]
  /** When what was granted ends. Undefined where nothing was. */
  readonly expiresAt: Date | undefined
}

interface NegotiateOptions {
  /** Shown to whoever decides. */
  readonly justification?: string
  /** How long it is needed. The server may grant less. */
  readonly ttl?: Duration
}

type Send = <P, R>(method: Method<P, R>, params: P) => Promise<R>

/** `mcp.permissions`. */
export class Permissions {
  readonly #send: Send
  #meta: Params | undefined

  constructor(send: Send) {
    this.#send = send
  }

  /** What goes into the `_meta` of every request; undefined where nothing was granted. */
  get meta(): Params | undefined {
    return this.#meta
  }

  /** Whether a call would be allowed. Nothing is done. */
  async check(tool: string, args?: Params): Promise<Permission> {
    return permissionOf(await this.#send(checkPermissions, wireCheck(tool, args)))
  }

  /** The same for many, in the same order. */
  async checkAll(calls: readonly { readonly tool: string; readonly arguments?: Params }[]): Promise<readonly Permission[]> {
    const answer: unknown = await this.#send(checkPermissions, {
      checks: calls.map(call => wireCheck(call.tool, call.arguments)),
    })
    const checks = isRecord(answer) ? answer['checks'] : undefined
    if (!Array.isArray(checks) || checks.length !== calls.length)
      throw new McpError('invalid-result', 'The server answered permissions/check without one entry for each check')
    return checks.map(permissionOf)
  }

  /** Asks for scopes. From then on calls have what was granted, and no more; what was granted before is let go. */
  async negotiate(scopes: readonly string[], { justification, ttl }: NegotiateOptions = {}): Promise<Negotiated> {
    const answer = await this.#send(negotiatePermissions, {
      requested_scopes: scopes,
      ...(justification === undefined ? {} : { justification }),
      ...(ttl === undefined ? {} : { ttl_seconds: Math.max(1, Math.floor(toMilliseconds(ttl, 'ttl') / 1000)) }),
    })
    return this.#keep(answer)
  }

  /** Lets go of what was granted: calls have again what the caller's own token gives. */
  drop(): void {
    this.#meta = undefined
  }

  #keep({ granted_scopes: granted, denied_scopes: denied, session }: WireNegotiated): Negotiated {
    if (!Array.isArray(granted) || (session !== undefined && typeof session?.token !== 'string'))
      throw new McpError('invalid-result', 'The server answered permissions/negotiate without granted_scopes, or without a token')
    if (session !== undefined) this.#meta = { [permissionsExtension]: { session_token: session.token } }
    const expiresAt = session === undefined ? undefined : new Date(session.expires_at)
    return { granted, denied: Array.isArray(denied) ? denied : [], expiresAt }
  }
}

/** Asking a server what it would allow. */
export interface PermissionsClientApi {
  /** What a server that knows permissions would allow, and asking it for more. */
  readonly permissions: Permissions
}

/** Asks for permissions, and sends along what was granted. */
export const permissionsClient = defineClientFeature({
  name: 'permissions',
  options: {},
  setup(kit) {
    const permissions = new Permissions((method, params) => kit.session.request(method, params, kit.send()))
    const client: PermissionsClientApi = { permissions }
    return {
      client,
      meta: () => permissions.meta,
      side: {
        // What was granted stays presented: without it calls would have what the caller's own token gives, which may be more.
        handlers: [[permissionsEnded, ({ engine, params }: Exchange) => engine.trace('permissions-ended', params)]],
        capabilities: revision => declaration(revision, permissionsExtension),
      },
    }
  },
})

function wireCheck(tool: string, args: Params | undefined): WireCheck {
  return { tool, ...(args === undefined ? {} : { parameters: args }) }
}

function permissionOf(answer: unknown): Permission {
  const { allowed, missing_scopes: missing, reason, elevation_url: url } = (answer ?? {}) as Partial<WireChecked>
  return {
    // Whatever is no clear yes is a no.
    allowed: allowed === true,
    missing: Array.isArray(missing) ? missing.filter(scope => typeof scope === 'string') : [],
    reason: typeof reason === 'string' ? reason : undefined,
    elevationUrl: typeof url === 'string' && URL.parse(url)?.protocol === 'https:' ? url : undefined,
  }
}
