/**
 * Server side of permissions: the options `permissions` and `scopesFor`, `server.permissions`, and the layers that enforce grants. The
 * decisions are loaded with the first request that needs them.
 */
import { type Clock, type Duration, toMilliseconds } from '../../../core/clock.ts'
import type { Grants } from '../../../core/grant/grants.ts'
import type { Seal } from '../../../core/handle.ts'
import type { Trace } from '../../../core/log.ts'
import { checkOptions, type KindsOf } from '../../../core/options.ts'
import { checkScopes } from '../../../core/scope.ts'
import { type Asker, carried, type Exchange } from '../../../engine/exchange.ts'
import { declaration, declared } from '../../../engine/extensions.ts'
import type { Method } from '../../../engine/method.ts'
import { ownerNamed } from '../../../engine/owner.ts'
import type { Side } from '../../../engine/plan.ts'
import { defineServerFeature, provide, type ServerKit } from '../../../engine/server-feature.ts'
import type { Layer } from '../../../engine/stages.ts'
import type { Principal } from '../../../jsonrpc/connection.ts'
import type { Awaitable, Params } from '../../../jsonrpc/message.ts'
import type { Store } from '../../../stores/store.ts'
import {
  type AuthorizationPort,
  admission,
  aimingMethods,
  authorizationPort,
  type GrantedRights,
  permits,
  type Scopes,
  type RequestTarget as Target,
  aimOf as targetOf,
} from '../../mcp/authorization/messages.ts'
import { listPrompts } from '../../mcp/prompts/messages.ts'
import { listResources, listResourceTemplates } from '../../mcp/resources/messages.ts'
import { listen } from '../../mcp/subscriptions/messages.ts'
import { listTools, type ToolFacts, type ToolsPort, toolsPort } from '../../mcp/tools/messages.ts'
import { beginTransaction, transactionsExtension } from '../transactions/messages.ts'
import { lazyEnds, type OnGrantEnd } from './grant-expiry.ts'
import { type Hears, hidingLayer, type ListedKind } from './hide.ts'
import {
  checkPermissions,
  type EventVisibility,
  negotiatePermissions,
  permissionsEnded,
  permissionsExtension,
  permissionsPort,
  presentedIn,
} from './messages.ts'
import type { Rights } from './rights.ts'
import type { PermissionSessions, SessionFacts } from './sessions.ts'

/** What a client requests. */
interface PermissionRequest {
  readonly scopes: readonly string[]
  /** The client's reason. Informative only. */
  readonly justification: string | undefined
  /** The id of the future grant, for `server.permissions`. */
  readonly session: string
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
interface Refused {
  readonly tool: string
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
  /** The https page where a user can grant what is missing; offered to clients that support URLs. */
  readonly elevationUrl?: (missing: readonly string[], refused: Refused) => string | undefined
  /** The longest lifetime of a grant. Default 1 h. */
  readonly ttl?: Duration
  /** The idle timeout of a grant. Default 15 min. */
  readonly idle?: Duration
  /** Whether lists show only what the caller may use. Default false: everything is listed with its scopes. */
  readonly hide?: boolean
}

/** The options of `createServer` that this feature reads. */
export interface PermissionsServerOptions {
  /** What callers can be granted beyond their token, and for how long. */
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
    const server = permissionsServer({
      ...kit,
      ...permissions,
      ...aiming(tools, authorization),
      offered: () => authorization.declared,
      lists: listsOf(authorization),
    })
    authorization.grantsBy(grantedRights(server, kit))
    tools.extend({
      kinds: { scopesFor: 'function' },
      declare: (_, { scopes, scopesFor }: ScopedFacts) => {
        if (scopesFor !== undefined) authorization.declare(scopes ?? [], 'a tool')
      },
      meta: (_, { scopes }) => (scopes === undefined ? undefined : { [permissionsExtension]: { required_scopes: scopes } }),
    })
    return {
      sides: [server.side],
      provides: provide(permissionsPort, {
        admit: exchange => admitByGrant(server, exchange),
        judgeEvent: (asker, name, scopes) => {
          const guarded = presentedIn(asker.meta) !== undefined
          return guarded || permissions.grant !== undefined ? eventVisibility(server, asker, name, scopes, guarded) : undefined
        },
        sessionMs: permissions.grant === undefined ? undefined : toMilliseconds(permissions.idle ?? '15m', 'permissions.idle'),
      }),
      server: { permissions: controlOf(server) },
      close: server.close,
    }
  },
})

type ScopedFacts = Scoped & Pick<ToolFacts, 'scopes'>

/** Determines what a request needs. */
function aiming(tools: ToolsPort, { needs }: AuthorizationPort): Pick<PermissionsParts, 'guarded' | 'tool'> {
  const tool = (name: string): Aim | undefined => {
    const facts = tools.facts<ScopedFacts>(name)
    return facts === undefined ? undefined : { name, scopes: facts.scopes, scopesFor: facts.scopesFor }
  }
  return {
    tool,
    guarded: target => {
      const [kind, name] = target
      if (kind !== 'tool') {
        const scopes = needs(target)
        return scopes === undefined ? undefined : { name, scopes, scopesFor: undefined }
      }
      // Must be fast, because it runs for every call.
      const facts = tools.facts<ScopedFacts>(name)
      return facts?.scopes === undefined && facts?.scopesFor === undefined ? undefined : tool(name)
    },
  }
}

/** The lists whose entries may have scopes. */
function listsOf({ needs }: AuthorizationPort): readonly ListedKind[] {
  const listed = (method: Method, member: string, named: string, kind: Target[0]): ListedKind => ({
    method: method.name,
    member,
    named,
    scopes: name => needs([kind, name]),
  })
  return [
    listed(listTools, 'tools', 'name', 'tool'),
    listed(listPrompts, 'prompts', 'name', 'prompt'),
    listed(listResources, 'resources', 'uri', 'resource'),
    listed(listResourceTemplates, 'resourceTemplates', 'uriTemplate', 'template'),
  ]
}

/** Ends what was opened under a grant, and notifies clients that know grants. */
function grantedRights({ decides, hears, lapses }: PermissionsServer, { engine }: ServerKit): GrantedRights {
  return {
    decides,
    hears,
    lapses,
    listens: (exchange, ended) => {
      const admitted = exchange.get(admission)
      return admitted && lapses(admitted, reason => ended(reason, { [permissionsExtension]: { ended: reason } }))
    },
    lapsed: (conversation, uris, reason) => {
      const { peer } = conversation
      if (peer !== undefined && declared(peer, permissionsExtension) !== undefined)
        engine().notify(conversation, permissionsEnded, { reason, uris })
    },
  }
}

function controlOf({ rights }: PermissionsServer): PermissionsControl {
  const sessions = async (): Promise<PermissionSessions> => (await rights()).sessions
  return {
    sessions: async principal => (await sessions()).list(await ownerNamed(principal)),
    extend: async (session, scopes) => {
      checkScopes(scopes, 'permissions.extend')
      return (await sessions()).extend(session, scopes)
    },
    revoke: async session => (await sessions()).revoke(session),
  }
}

/** What a call opens under a grant ends with it, even if the tool needs no scopes. */
async function admitByGrant({ rights }: PermissionsServer, exchange: Exchange): Promise<void> {
  if (exchange.get(admission) === undefined && presentedIn(exchange.meta) !== undefined) await (await rights()).admit(exchange)
}

/** Whether a caller may receive an event under its grant. */
async function eventVisibility(
  { rights }: PermissionsServer,
  asker: Asker,
  name: string,
  scopes: readonly string[],
  guarded: boolean,
): Promise<EventVisibility> {
  const decision = await (await rights()).judge(asker, { name, scopes, scopesFor: undefined })
  if (decision.kind === 'allow') return { refusal: undefined, guarded }
  const why = decision.kind === 'ask' ? 'a grant has an obligation that nothing here meets' : decision.why
  return { refusal: `The event "${name}" needs the scopes ${scopes.join(' ')}: ${why}`, guarded }
}

/** The option of a tool. */
export interface Scoped {
  /** Further scopes that a call with these arguments needs. If it throws, the call is refused. */
  readonly scopesFor?: (args: Params) => Awaitable<readonly string[]>
}

/** What a request is about, and the scopes it needs. */
export interface Aim {
  readonly name: string
  readonly scopes: Scopes
  readonly scopesFor: Scoped['scopesFor']
}

/** What permissions need from the server. */
export interface PermissionsParts extends PermissionsOptions {
  readonly seal: Seal
  readonly clock: Clock
  readonly trace: Trace
  readonly store: () => Promise<Store>
  readonly grants: () => Promise<Grants>
  /** The needs of a target; undefined if none. */
  readonly guarded: (target: Target) => Aim | undefined
  /** The needs of a tool; undefined if it does not exist. */
  readonly tool: (name: string) => Aim | undefined
  /** Whether anything has scopes. */
  readonly offered: () => boolean
  /** The lists that can be filtered. */
  readonly lists: readonly ListedKind[]
}

interface PermissionsServer {
  readonly side: Side
  /** Whether this feature decides about a request, instead of the token alone. */
  decides(exchange: Exchange): boolean
  readonly rights: () => Promise<Rights>
  /** Whether a caller may see something with these scopes. */
  readonly hears: Hears
  /** Watches the end of a grant. */
  readonly lapses: OnGrantEnd
  close(): void
}

function permissionsServer(parts: PermissionsParts): PermissionsServer {
  const granting = parts.grant !== undefined
  let loading: Promise<Rights> | undefined
  const rights = (): Promise<Rights> => {
    loading ??= import('./rights.ts').then(({ createRights }) => createRights(parts))
    return loading
  }
  const aimOf = (exchange: Exchange): Aim | undefined => {
    const target = targetOf(exchange)
    return target === undefined ? undefined : parts.guarded(target)
  }
  const aimed = (exchange: Exchange): boolean => aimOf(exchange) !== undefined
  const offered = (): boolean => granting || parts.offered()
  const decides = (exchange: Exchange): boolean => {
    const aim = offered() ? aimOf(exchange) : undefined
    if (aim === undefined) return false
    return granting || aim.scopesFor !== undefined || presentedIn(exchange.meta) !== undefined
  }
  const layer: Layer = {
    stage: 'decide',
    methods: aimingMethods,
    concerns: aimed,
    when: decides,
    run: async (exchange, next) => (await rights()).run(exchange, aimOf(exchange) as Aim, next, () => aimOf(exchange)),
  }
  // Runs inside of tasks, because their results come long after the decision.
  const late: Layer = {
    stage: 'execute',
    methods: ['tools/call'],
    concerns: aimed,
    when: decides,
    run: async (exchange, next) => {
      const aim = aimOf(exchange) as Aim
      const result = await next()
      // By its current needs, or the earlier ones if the tool was removed.
      if (exchange.detached) await (await rights()).confirmStill(exchange, aimOf(exchange) ?? aim)
      return result
    },
  }
  // These need no scopes, but what they open must not outlive the grant.
  const opening: Layer = {
    stage: 'decide',
    methods: [listen.name, beginTransaction.name, 'tools/call'],
    marked: true,
    when: exchange => presentedIn(exchange.meta) !== undefined && offered() && opens(exchange),
    run: async (exchange, next) => {
      if (exchange.get(admission) === undefined) await (await rights()).admit(exchange)
      return next()
    },
  }
  const ends = lazyEnds(parts)
  const hears: Hears = (asker, name, scopes) => {
    if (scopes === undefined) return true
    if (!granting && presentedIn(asker.meta) === undefined) return permits(asker.caller, scopes)
    return rights().then(loaded => loaded.allows(asker, { name, scopes, scopesFor: undefined }))
  }
  // Always installed: a request may already be on its way under the old plan.
  const guards = [layer, late, opening]
  const layers = parts.hide === true ? [...guards, hidingLayer(parts.lists, hears)] : guards
  return {
    decides,
    rights,
    lapses: ends.on,
    close: ends.close,
    hears,
    side: {
      handlers: [
        [checkPermissions, { offered, execute: async (exchange: Exchange) => (await rights()).check(exchange) }],
        [negotiatePermissions, { offered, execute: async (exchange: Exchange) => (await rights()).negotiate(exchange) }],
      ],
      get layers() {
        return offered() ? layers : guards
      },
      capabilities: revision => (offered() ? declaration(revision, permissionsExtension) : {}),
    },
  }
}

/** Whether a request opens something that ends with the grant; for calls: a step of a transaction. */
function opens(exchange: Exchange): boolean {
  const { route, meta } = exchange
  if (route.method.name !== 'tools/call' || exchange.get(carried)?.[transactionsExtension] !== undefined) return true
  return meta !== undefined && Object.hasOwn(meta, transactionsExtension)
}
