/**
 * Server side of permissions: the options `permissions` and `scopesFor`, `server.permissions`, and the layers that enforce grants. The
 * decisions are loaded with the first request that needs them.
 */
import { type Duration, toMilliseconds } from '../../../core/clock.ts'
import { checkOptions, type KindsOf } from '../../../core/options.ts'
import { checkScopes } from '../../../core/scope.ts'
import { type Asker, type Exchange, retryState } from '../../../engine/exchange.ts'
import { declaredSettings, extensionCapability } from '../../../engine/extensions.ts'
import { ownerNamed } from '../../../engine/owner.ts'
import { defineServerFeature, lazily, provide, type ServerKit } from '../../../engine/server-feature.ts'
import type { Layer } from '../../../engine/stages.ts'
import type { Principal } from '../../../jsonrpc/connection.ts'
import type { Awaitable, Params } from '../../../jsonrpc/message.ts'
import {
  type AuthorizationPort,
  admission,
  aimingMethods,
  authorizationPort,
  type GrantedRights,
  permits,
  type RequestTarget,
  type Scopes,
  aimOf as targetOf,
} from '../../mcp/authorization/messages.ts'
import { listen } from '../../mcp/subscriptions/messages.ts'
import { type ToolFacts, type ToolsPort, toolsPort } from '../../mcp/tools/messages.ts'
import { beginTransaction, transactionsExtension } from '../transactions/messages.ts'
import { lazyEnds } from './grant-expiry.ts'
import { hidingLayer } from './hide.ts'
import {
  checkPermissions,
  negotiatePermissions,
  permissionsEnded,
  permissionsExtension,
  permissionsPort,
  presentedIn,
} from './messages.ts'
import type { Rights } from './rights.ts'
import type { SessionFacts } from './sessions.ts'

/** What a client requests. */
interface PermissionRequest {
  /** The requested scopes. */
  readonly scopes: readonly string[]
  /** The client's reason. Informative only. */
  readonly justification: string | undefined
  /** The id of the future grant, for `server.permissions`. */
  readonly session: string
  /** Who requests them. Undefined for local callers and without a token. */
  readonly principal: Principal | undefined
}

/** The author's decision. */
export interface PermissionAnswer {
  /** The granted scopes; others than requested, or than the caller's token has, are ignored. */
  readonly scopes: readonly string[]
  /** Why others are denied, by scope. */
  readonly reasons?: Readonly<Record<string, string>>
  /** The lifetime. Default: the server's. A client may ask for less. */
  readonly ttl?: Duration
}

/** What was refused to whom. */
interface RefusedCall {
  /** The tool that was refused. */
  readonly tool: string
  /** Who called. Undefined for local callers and without a token. */
  readonly principal: Principal | undefined
  /** The current grant, for `server.permissions.extend`. */
  readonly session: string | undefined
}

/** Options of permissions. */
export interface PermissionsOptions {
  /**
   * Decides what a client is granted. If set, nobody has scopes without a token or grant, not even locally. Default: what the caller's
   * token has.
   */
  readonly grant?: (request: PermissionRequest) => Awaitable<PermissionAnswer | readonly string[]>
  /** Returns the https page where a user can grant what is missing. It is offered to clients that support URLs. Default: none. */
  readonly elevationUrl?: (missing: readonly string[], refused: RefusedCall) => string | undefined
  /** The longest lifetime of a grant. Default 1 h. */
  readonly ttl?: Duration
  /** The idle timeout of a grant. Default 15 min. */
  readonly idle?: Duration
  /** Whether lists show only what the caller may use. Default false: everything is listed with its scopes. */
  readonly hide?: boolean
}

/** The options of `createServer` that this feature reads. */
export interface PermissionsServerOptions {
  /** What callers can be granted beyond their token, and for how long. Default: nothing. */
  readonly permissions?: PermissionsOptions
}

/** What the feature adds to the server. */
export interface PermissionsApi {
  /** Manages the grants of callers. */
  readonly permissions: PermissionsControl
}

/** Manages grants. */
interface PermissionsControl {
  /** The grants of a principal, or without one of the local user. */
  sessions(principal?: string): Promise<readonly SessionFacts[]>
  /** Adds scopes to a grant; false if it has ended. */
  extend(session: string, scopes: readonly string[]): Promise<boolean>
  /** Ends a grant at once, also for running calls; false if it is unknown. */
  revoke(session: string): Promise<boolean>
}

const optionKinds: KindsOf<PermissionsOptions> = {
  grant: 'function',
  elevationUrl: 'function',
  ttl: 'any',
  idle: 'any',
  hide: 'boolean',
}

/** The server feature: `permissions`, `scopesFor` and `server.permissions`. */
export const permissionsFeature = defineServerFeature<PermissionsServerOptions, PermissionsApi>({
  name: 'permissions',
  options: { permissions: 'object' },
  setup: (kit, { permissions = {} }) => {
    checkOptions('permissions', permissions, optionKinds)
    const tools = kit.port(toolsPort)
    const authorization = kit.port(authorizationPort)
    const granting = permissions.grant !== undefined
    const rights: OpenRights = lazily(async () => new (await import('./rights.ts')).Rights({ ...kit, ...permissions })).open
    const ends = lazyEnds(kit)
    /** Whether anything has scopes. */
    const offered = (): boolean => granting || authorization.declared
    const aimOf = (exchange: Exchange): RequiredScopes | undefined => {
      const target = targetOf(exchange)
      return target && aimAt(target, tools, authorization)
    }
    // Whether this feature decides about a request, instead of the token alone.
    const decides = (exchange: Exchange): boolean => {
      const aim = offered() ? aimOf(exchange) : undefined
      return aim !== undefined && (granting || aim.scopesFor !== undefined || presentedIn(exchange.meta) !== undefined)
    }
    const hears: GrantedRights['hears'] = (asker, name, scopes) => {
      if (scopes === undefined) return true
      if (!granting && presentedIn(asker.meta) === undefined) return permits(asker.caller, scopes)
      return rights().then(loaded => loaded.allows(asker, { name, scopes, scopesFor: undefined }))
    }
    // What a call opens under a grant ends with it, even if the tool needs no scopes.
    const admit = async (exchange: Exchange): Promise<void> => {
      if (exchange.get(admission) === undefined && presentedIn(exchange.meta) !== undefined)
        await (await rights()).admit(exchange)
    }
    // Always installed: a request may already be on its way under the old plan.
    const guards: readonly Layer[] = [
      {
        stage: 'decide',
        methods: aimingMethods,
        concerns: exchange => aimOf(exchange) !== undefined,
        when: decides,
        run: async (exchange, next) =>
          (await rights()).run(exchange, aimOf(exchange) as RequiredScopes, next, () => aimOf(exchange)),
      },
      {
        // Runs inside of tasks, because their results come long after the decision.
        stage: 'execute',
        methods: ['tools/call'],
        concerns: exchange => aimOf(exchange) !== undefined,
        when: decides,
        run: async (exchange, next) => {
          const aim = aimOf(exchange) as RequiredScopes
          const result = await next()
          // By its current needs, or the earlier ones if the tool was removed.
          if (exchange.detached) await (await rights()).confirmStill(exchange, aimOf(exchange) ?? aim)
          return result
        },
      },
      {
        // These need no scopes, but what they open must not outlive the grant.
        stage: 'decide',
        methods: [listen.name, beginTransaction.name, 'tools/call'],
        marked: true,
        when: exchange => presentedIn(exchange.meta) !== undefined && offered() && opens(exchange),
        run: async (exchange, next) => {
          await admit(exchange)
          return next()
        },
      },
    ]
    const layers = permissions.hide === true ? [...guards, hidingLayer(authorization, hears)] : guards
    authorization.grantsBy({
      decides,
      hears,
      lapses: ends.on,
      listens: (exchange, ended) => {
        const admitted = exchange.get(admission)
        return admitted && ends.on(admitted, reason => ended(reason, { [permissionsExtension]: { ended: reason } }))
      },
      // Clients that know grants are notified.
      lapsed: (conversation, uris, reason) => {
        const { peer } = conversation
        if (peer !== undefined && declaredSettings(peer, permissionsExtension) !== undefined)
          kit.engine().notify(conversation, permissionsEnded, { reason, uris })
      },
    })
    tools.extend({
      kinds: { scopesFor: 'function' },
      declare: (_, { scopes, scopesFor }: ScopedFacts) => {
        if (scopesFor !== undefined) authorization.declare(scopes ?? [], 'a tool')
      },
      meta: (_, { scopes }) => (scopes === undefined ? undefined : { [permissionsExtension]: { required_scopes: scopes } }),
    })
    return {
      sides: [
        {
          handlers: [
            [checkPermissions, { offered, execute: async (exchange: Exchange) => (await rights()).check(exchange) }],
            [negotiatePermissions, { offered, execute: async (exchange: Exchange) => (await rights()).negotiate(exchange) }],
          ],
          get layers() {
            return offered() ? layers : guards
          },
          capabilities: revision => (offered() ? extensionCapability(revision, permissionsExtension) : {}),
        },
      ],
      provides: provide(permissionsPort, {
        admit,
        judgeEvent: (asker, name, scopes) => {
          const guarded = presentedIn(asker.meta) !== undefined
          return guarded || granting ? eventVisibility(rights, asker, name, scopes, guarded) : undefined
        },
        sessionMs: granting ? toMilliseconds(permissions.idle ?? '15m', 'permissions.idle') : undefined,
      }),
      server: { permissions: controlOf(rights) },
      close: ends.close,
    }
  },
})

type OpenRights = () => Promise<Rights>

type ScopedFacts = ScopesToolOption & Pick<ToolFacts, 'scopes'>

/** What a request needs; undefined if nothing. Must be fast, because it runs for every call. */
function aimAt(target: RequestTarget, tools: ToolsPort, { needs }: AuthorizationPort): RequiredScopes | undefined {
  const [kind, name] = target
  const facts = kind === 'tool' ? tools.facts<ScopedFacts>(name) : undefined
  const scopes = kind === 'tool' ? facts?.scopes : needs(target)
  const scopesFor = facts?.scopesFor
  return scopes === undefined && scopesFor === undefined ? undefined : { name, scopes, scopesFor }
}

function controlOf(rights: OpenRights): PermissionsControl {
  return {
    sessions: async principal => (await rights()).sessions.list(await ownerNamed(principal)),
    extend: async (session, scopes) => {
      checkScopes(scopes, 'permissions.extend')
      return (await rights()).sessions.extend(session, scopes)
    },
    revoke: async session => (await rights()).sessions.revoke(session),
  }
}

/** Whether a caller may receive an event under its grant. */
async function eventVisibility(rights: OpenRights, asker: Asker, name: string, scopes: readonly string[], guarded: boolean) {
  const decision = await (await rights()).judge(asker, { name, scopes, scopesFor: undefined })
  if (decision.kind === 'allow') return { refusal: undefined, guarded }
  const why = decision.kind === 'ask' ? 'a grant has an obligation that this server cannot meet' : decision.why
  return { refusal: `The event "${name}" requires the scopes ${scopes.join(' ')}: ${why}`, guarded }
}

/** The option of a tool. */
export interface ScopesToolOption {
  /** Returns further scopes that a call with these arguments needs. If it throws, the call is refused. Default: none. */
  readonly scopesFor?: (args: Params) => Awaitable<readonly string[]>
}

/** What a request is about, and the scopes it needs. */
export interface RequiredScopes {
  readonly name: string
  readonly scopes: Scopes
  readonly scopesFor: ScopesToolOption['scopesFor']
}

/** What permissions need from the server. */
export interface PermissionsParts extends PermissionsOptions, Pick<ServerKit, 'seal' | 'clock' | 'grants' | 'port'> {}

/** Whether a request opens something that ends with the grant; for calls: a step of a transaction. */
function opens(exchange: Exchange): boolean {
  const { route, meta } = exchange
  if (route.method.name !== 'tools/call' || exchange.get(retryState)?.[transactionsExtension] !== undefined) return true
  return meta?.[transactionsExtension] !== undefined
}
