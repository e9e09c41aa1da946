/**
 * Client side of permissions: asks what a server would allow, and negotiates scopes. The token of a grant is sent with every later
 * request.
 */
import { type Duration, toMilliseconds } from '../../../core/clock.ts'
import { defineClientFeature } from '../../../engine/client-feature.ts'
import type { Exchange } from '../../../engine/exchange.ts'
import { extensionCapability } from '../../../engine/extensions.ts'
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
} from './messages.ts'

/** Whether a call would be allowed now. */
export interface Permission {
  /** Whether the call would be allowed. */
  readonly allowed: boolean
  /** The missing scopes. */
  readonly missing: readonly string[]
  /** Why it would be refused. Undefined if it would be allowed. */
  readonly reason: string | undefined
  /** Where the user can grant them. This client never opens it. */
  readonly elevationUrl: string | undefined
}

// The result of a negotiation.
/** The answer to a request for scopes. */
interface ScopeAnswer {
  /** The scopes that were granted. */
  readonly granted: readonly string[]
  /** The scopes that were denied. */
  readonly denied: readonly {
    /** The denied scope. */
    readonly scope: string
    /** Why it was denied. */
    readonly reason: string
  }[]
  /** When the grant ends; undefined if nothing was granted. */
  readonly expiresAt: Date | undefined
}

/** Options of a request for scopes. */
interface NegotiateOptions {
  /** Why the scopes are needed, for the person who decides. Default: none. */
  readonly justification?: string
  /** How long the scopes are needed; the server may grant less. Default: the server decides. */
  readonly ttl?: Duration
}

// Sends a request with the current options.
type Send = <P, R>(method: Method<P, R>, params: P) => Promise<R>

/** `client.permissions`. */
export class Permissions {
  readonly #send: Send
  // The token of the current grant.
  #meta: Params | undefined

  constructor(send: Send) {
    this.#send = send
  }

  /** The `_meta` for every request; undefined without a grant. */
  get meta(): Params | undefined {
    return this.#meta
  }

  /** Checks whether a call would be allowed. Nothing is executed. */
  async check(tool: string, args?: Params): Promise<Permission> {
    return permissionOf(await this.#send(checkPermissions, wireCheck(tool, args)))
  }

  /** Checks many calls; the answers have the same order. */
  async checkAll(
    calls: readonly {
      /** The name of the tool. */
      readonly tool: string
      /** The arguments of the call. Default: none. */
      readonly arguments?: Params
    }[],
  ): Promise<readonly Permission[]> {
    const answer: unknown = await this.#send(checkPermissions, {
      checks: calls.map(call => wireCheck(call.tool, call.arguments)),
    })
    const checks = isRecord(answer) ? answer['checks'] : undefined
    if (!Array.isArray(checks) || checks.length !== calls.length)
      throw new McpError('invalid-result', "The server's response to permissions/check does not have one entry for each check")
    return checks.map(permissionOf)
  }

  /** Requests scopes. Later calls have exactly what was granted; an earlier grant is dropped. */
  async negotiate(scopes: readonly string[], { justification, ttl }: NegotiateOptions = {}): Promise<ScopeAnswer> {
    const answer = await this.#send(negotiatePermissions, {
      requested_scopes: scopes,
      ...(justification === undefined ? {} : { justification }),
      ...(ttl === undefined ? {} : { ttl_seconds: Math.max(1, Math.floor(toMilliseconds(ttl, 'ttl') / 1000)) }),
    })
    const { granted_scopes: granted, denied_scopes: denied, session } = answer
    if (!Array.isArray(granted) || (session !== undefined && typeof session?.token !== 'string'))
      throw new McpError('invalid-result', "The server's response to permissions/negotiate has no granted_scopes or no token")
    if (session !== undefined) this.#meta = { [permissionsExtension]: { session_token: session.token } }
    return { granted, denied: Array.isArray(denied) ? denied : [], expiresAt: session && new Date(session.expires_at) }
  }

  /** Drops the grant; calls use the caller's own token again. */
  drop(): void {
    this.#meta = undefined
  }
}

/** What the feature adds to the client. */
export interface PermissionsClientApi {
  /** Checks and negotiates permissions. */
  readonly permissions: Permissions
}

/** The client feature: `client.permissions`, and the token with every request. */
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
        // An ended grant stays presented: without it, calls would use the caller's own token, which may allow more.
        handlers: [[permissionsEnded, ({ engine, params }: Exchange) => engine.trace('permissions-ended', params)]],
        capabilities: revision => extensionCapability(revision, permissionsExtension),
      },
    }
  },
})

// The wire form of a check.
function wireCheck(tool: string, args: Params | undefined): WireCheck {
  return { tool, ...(args === undefined ? {} : { parameters: args }) }
}

// Tolerates malformed answers.
function permissionOf(answer: unknown): Permission {
  const { allowed, missing_scopes: missing, reason, elevation_url: url } = (answer ?? {}) as Partial<WireChecked>
  return {
    // Everything but a clear yes is a no.
    allowed: allowed === true,
    missing: Array.isArray(missing) ? missing.filter(scope => typeof scope === 'string') : [],
    reason: typeof reason === 'string' ? reason : undefined,
    elevationUrl: typeof url === 'string' && URL.parse(url)?.protocol === 'https:' ? url : undefined,
  }
}
