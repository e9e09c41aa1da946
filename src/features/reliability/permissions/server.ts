/** Holding calls to what was granted, and granting it. What that takes is loaded with the first request that needs it. */
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

/** What a client asks for. */
interface PermissionRequest {
  readonly scopes: readonly string[]
  /** Why, in the client's words. Describes, never permits. */
  readonly justification: string | undefined
  /** Names what will be granted: `server.permissions` takes it. */
  readonly session: string
  readonly principal: Principal | undefined
}

export interface PermissionAnswer {
  /** Those that are granted. Others than were asked for, or than the caller's token has, are not. */
  readonly scopes: readonly string[]
  /** Why others are not, by scope. */
  readonly reasons?: Readonly<Record<string, string>>
  /** Default: that of the server. A client may ask for less, not for more. */
  readonly ttl?: Duration
}

/** Who was refused what. */
interface Refused {
  readonly tool: string
  readonly principal: Principal | undefined
  /** What was granted so far, where anything was: `server.permissions.extend` takes it. */
  readonly session: string | undefined
}

/** How a server answers questions about permissions, and grants more. */
export interface PermissionsOptions {
  /**
   * Decides what a client is granted. Where it is given, nobody has a scope who has neither a token nor a grant, also not
   * in memory and over stdio. Default: what the caller's token has.
   */
  readonly grant?: (request: PermissionRequest) => Awaitable<PermissionAnswer | readonly string[]>
  /** The page on which a user can grant what is missing: https. Offered to clients that open pages. */
  readonly elevationUrl?: (missing: readonly string[], refused: Refused) => string | undefined
  /** The longest that a grant lasts. Default 1 h. */
  readonly ttl?: Duration
  /** Ends a grant that was not used for so long. Default 15 min. */
  readonly idle?: Duration
  /** Lists show each caller only what its scopes allow it to use. Default false: all is listed, with the scopes it needs. */
  readonly hide?: boolean
}

/** The options of `createServer` for it. */
export interface PermissionsServerOptions {
  /** What callers may be granted beyond what their token says, and for how long. */
  readonly permissions?: PermissionsOptions
}

/** What it adds to the server of an author. */
export interface PermissionsApi {
  /** What was granted to callers: who holds it, what more they get, and its end. */
  readonly permissions: PermissionsControl
}

/** What an author can do about what was granted. */
interface PermissionsControl {
  /** All that a principal holds, by its id; without one what the owner of this process holds, over stdio and in memory. */
  sessions(principal?: string): Promise<readonly SessionFacts[]>
  /** Gives more to a session that lives; false where it does not. */
  extend(session: string, scopes: readonly string[]): Promise<boolean>
  /** Ends a session now, also for calls that are under way; false where there is none. */
  revoke(session: string): Promise<boolean>
}

const optionKinds: KindsOf<PermissionsOptions> = {
  grant: 'function',
  elevationUrl: 'function',
  ttl: 'any',
  idle: 'any',
  hide: 'boolean',
}

/** Scopes that are granted for a while; the option `scopesFor` of tools, and `server.permissions`. */
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

/** What requests aim at, and what that needs. */
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
      // Every call is asked: what needs nothing is told by one look.
      const facts = tools.facts<ScopedFacts>(name)
      return facts?.scopes === undefined && facts?.scopesFor === undefined ? undefined : tool(name)
    },
  }
}

/** The lists of what may have scopes. */
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

/** What ends with a grant says so to whoever knows of grants. */
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

/** What is opened under a grant is, also by a tool that needs none. */
async function admitByGrant({ rights }: PermissionsServer, exchange: Exchange): Promise<void> {
  if (exchange.get(admission) === undefined && presentedIn(exchange.meta) !== undefined) await (await rights()).admit(exchange)
}

/** Whether a caller may hear of an event, by what it was granted. */
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
  /** Further scopes that a call with these arguments needs. Where it throws, the call is refused. */
  readonly scopesFor?: (args: Params) => Awaitable<readonly string[]>
}

/** What a request aims at, and what that needs. */
export interface Aim {
  readonly name: string
  readonly scopes: Scopes
  readonly scopesFor: Scoped['scopesFor']
}

/** What permissions need of the server. */
export interface PermissionsParts extends PermissionsOptions {
  readonly seal: Seal
  readonly clock: Clock
  readonly trace: Trace
  readonly store: () => Promise<Store>
  readonly grants: () => Promise<Grants>
  /** What a target needs; undefined where it needs nothing. */
  readonly guarded: (target: Target) => Aim | undefined
  /** Undefined where there is no such tool. */
  readonly tool: (name: string) => Aim | undefined
  /** Whether anything here has scopes. */
  readonly offered: () => boolean
  /** What can be hidden. */
  readonly lists: readonly ListedKind[]
}

interface PermissionsServer {
  readonly side: Side
  /** Whether this decides on a request, instead of the token alone. */
  decides(exchange: Exchange): boolean
  readonly rights: () => Promise<Rights>
  /** Whether a caller may hear of what has these scopes. */
  readonly hears: Hears
  /** Ends what a request has opened when the grant that let it in is over. Gives what to call when it has ended before. */
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
  // Inside of what makes tasks of calls: their results come long after the decision.
  const late: Layer = {
    stage: 'execute',
    methods: ['tools/call'],
    concerns: aimed,
    when: decides,
    run: async (exchange, next) => {
      const aim = aimOf(exchange) as Aim
      const result = await next()
      // What it needs now, or did before it was taken away.
      if (exchange.detached) await (await rights()).confirmStill(exchange, aimOf(exchange) ?? aim)
      return result
    },
  }
  // They need nothing themselves, but what they open must not outlive what its holder was granted.
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
  // Those that let in are always there: a request may have been on its way, by the plan of then, before the first scopes were declared.
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

/** Whether what a request begins is undone or ended later, by what its caller was granted: of calls those that take part in a transaction. */
function opens(exchange: Exchange): boolean {
  const { route, meta } = exchange
  if (route.method.name !== 'tools/call' || exchange.get(carried)?.[transactionsExtension] !== undefined) return true
  return meta !== undefined && Object.hasOwn(meta, transactionsExtension)
}
