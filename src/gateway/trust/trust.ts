/**
 * Assembles the trust features of a gateway: rules, approvals, budgets, pins, audit log and visibility. Upstreams know nothing of these;
 * most become options of the exposed tools or layers of the server face.
 */
import { createHash, timingSafeEqual } from 'node:crypto'
import { handedOutTokens, oauth, type ResourceAuthorization, type VerifiedToken } from '../../auth/resource/options.ts'
import type { Clock } from '../../core/clock.ts'
import type { Trace } from '../../core/log.ts'
import { stopCall, underWay } from '../../engine/disconnect.ts'
import type { Engine } from '../../engine/engine.ts'
import { compensation, type Exchange } from '../../engine/exchange.ts'
import { declaration } from '../../engine/extensions.ts'
import { aimOf } from '../../features/mcp/authorization/messages.ts'
import type { Tool } from '../../features/mcp/tools/messages.ts'
import type { WaitingCall } from '../../features/reliability/confirmation/queue.ts'
import type { SharedQuota } from '../../features/reliability/cost/server.ts'
import { provenanceExtension } from '../../features/reliability/provenance/messages.ts'
import type { Caller, Principal } from '../../jsonrpc/connection.ts'
import { clip } from '../../jsonrpc/limits.ts'
import type { Awaitable, Params } from '../../jsonrpc/message.ts'
import { type AuditControl, Notes } from '../../policy/audit/call-notes.ts'
import { Denials } from '../../policy/audit/denials.ts'
import { changedText, type HeldLaunch, Launches } from '../../policy/pins/launches.ts'
import { heldText, idOf, invisibleIn, ToolPins } from '../../policy/pins/tool-pins.ts'
import { type DecidedCalls, GatewayPolicy, oldRulesText, type ToolPolicy } from '../../policy/rules/call-policy.ts'
import { Counts, type RateCounts, SharedCounts } from '../../policy/rules/counts.ts'
import type { Server } from '../../server/api.ts'
import type { ServerOptions } from '../../server/options.ts'
import type { Store } from '../../stores/store.ts'
import { type Approval, approvalsOf, type TellNotice } from './approvals.ts'
import { answeredLayer, type CallWrapper, callWrapper, failedCall, type KnownTool, refusedNotes } from './call-wrapper.ts'
import { checkTrust } from './check.ts'
import { Clients, tokenIssuer } from './clients.ts'
import { type UpstreamNews, upstreamNews } from './events.ts'
import { callDenied, decideLayer, type ExplainedCall, type Explaining, explain, readingLayer } from './gate.ts'
import { type AddedOptions, judgedOf, toolOptions } from './options.ts'
import type { AuthSettings, TrustSettings } from './settings.ts'
import { Views, Visibility } from './visibility.ts'
import {
  readingOf,
  type Shown,
  sees,
  shows,
  targetAbsent,
  type VisibilityLayersParts,
  visibilityLayers,
} from './visibility-layers.ts'

interface TrustParts {
  /** The name that the gateway gives itself. */
  readonly name: string
  readonly store: Store
  /** Other gateways may share the store. */
  readonly shared: boolean
  readonly clock: Clock
  readonly trace: Trace
  /** Lists the tools of an upstream again. */
  relist(upstream: string): void
  /** Starts an upstream whose launch was held. */
  relaunch(upstream: string): void
  /** Delivers a message to the operator. */
  readonly notice: TellNotice
  /** How the operator approves the entry of that id. */
  approveWith(id: string): string
  /** Asks the operator whether a changed entry of the gateway's own file is intended. */
  readonly askLaunch?: ((launch: HeldLaunch) => Awaitable<boolean>) | undefined
  /** How the operator approves the launch of an upstream. */
  approveBy(upstream: string): string
  /** The origin of a prompt or resource by exposed name or address; of a tool only while its upstream is down. */
  originOf(kind: Shown, exposed: string): { readonly upstream: string; readonly own: string } | undefined
}

/** The operator's controls. */
export interface TrustControl {
  /** Everything that waits for an answer: calls, tool definitions and launches. */
  approvals(): Promise<readonly Approval[]>
  /** False where the id is unknown or already answered. `by`: who answers, for the audit log. */
  approve(id: string, by?: string): Promise<boolean>
  /** The same for a refusal. */
  refuse(id: string, by?: string): Promise<boolean>
  /** What would happen to a call, and by which rule. Counts nothing and asks nobody. */
  explain(call: Explaining): ExplainedCall
  /** Reads and verifies the audit log. */
  readonly audit: AuditControl
}

/** The trust features as the rest of the gateway uses them. */
export interface Trust {
  /** Options for `createServer`. */
  readonly serverOptions: Pick<ServerOptions, 'cost' | 'audit'>
  /** The authorization for every HTTP listener. */
  readonly auth: ResourceAuthorization | undefined
  /** Checks tool definitions against their pins. */
  readonly pins: Pick<ToolPins, 'look' | 'approve'>
  /** Checks commands and addresses of upstreams against their pins. */
  readonly launches: Pick<Launches, 'admit'>
  /** Middleware around upstream calls. */
  readonly wrap: CallWrapper
  /** The operator's controls. */
  readonly control: TrustControl
  /** Connects to the server face, once it exists. */
  attach(server: Server): void
  /** Registers an offered tool and returns the options that rules add. */
  options(upstream: string, tool: Tool, exposed: string): AddedOptions
  /** Unregisters a tool. */
  forget(exposed: string): void
  /** Reports invisible text in prompts and resources; tools are checked where they are pinned. */
  inspect(upstream: string, items: readonly { readonly name: string }[]): void
  /** What callers may see. */
  readonly visibility: Visibility
  /** Events of upstreams. */
  readonly news: UpstreamNews
  /** Audits a rejected token. */
  denied(status: number, address: string | undefined): void
  /** Applies other settings from the next call on; settings outside `changeable` are ignored. */
  change(settings: TrustSettings): void
  /** Stops calls that the current settings no longer allow. Returns the same check for parked calls. */
  withdraw(): (first: Exchange) => boolean
  close(): Promise<void>
}

/** Creates the trust features. Throws where a setting is wrong. */
export function createTrust(first: TrustSettings, parts: TrustParts): Trust {
  checkTrust(first)
  let settings = first
  const { store, clock, trace, name } = parts
  const fixed = new FixedTokens()
  const clients = new Clients(settings.clients)
  const failed = (error: unknown): void => trace('gateway-store', error)
  const counts: RateCounts = parts.shared ? new SharedCounts(store, clock, failed) : new Counts(clock)
  const ruled = (): GatewayPolicy => new GatewayPolicy(settings.rules ?? [], settings.otherwise, clock, counts)
  let policy = ruled()
  const notes = new Notes({ store, clock, audit: settings.audit, notice: parts.notice, failed })
  const denials = new Denials<readonly [from: string, status: number]>({
    clock,
    most: 100,
    note: ([from, status], times) =>
      notes.note({ client: '', upstream: '', tool: '', outcome: 'refused', code: `TOKEN_REFUSED_${status}`, from, times }),
  })
  const refused = refusedNotes(clock, notes)
  const policies = new Map<string, ToolPolicy>()
  const tools = new Map<string, KnownTool>()
  const decided: DecidedCalls = new WeakMap()
  const noted = new WeakSet<object>()
  const views = new Views({ clients, policy: () => policy, tools: policies, listed: () => settings.listed })
  const visibility = new Visibility({ clients, views, policy: () => policy, listed: () => settings.listed })
  const flagged = (upstream: string, tool: string, found: string): void => {
    trace('tool-flagged', { upstream, tool, found })
    notes.note({ client: '', upstream, tool, outcome: 'held', rule: 'invisible-text', code: found })
  }
  const inspected = new WeakSet<object>()
  const pins = new ToolPins({
    store,
    clock,
    mode: settings.pins ?? 'block',
    held: held => {
      const { server, tool, why } = held
      trace('tool-held', why)
      const id = idOf(held)
      const hidden = settings.pins !== 'warn'
      parts.notice({
        kind: 'tool-held',
        id,
        message: `${heldText(held)}${hidden ? ', which is hidden until somebody approves it' : ''}`,
        fix: parts.approveWith(id),
      })
      notes.note({ client: '', upstream: server, tool: tool.name, outcome: 'held', rule: 'pins', code: why.code })
    },
    flagged,
    relook: parts.relist,
  })
  const launches = new Launches({
    store,
    mode: settings.pins ?? 'block',
    approveBy: parts.approveBy,
    relaunch: parts.relaunch,
    held: ({ upstream, why, id }) => {
      trace('launch-held', why)
      parts.notice({ kind: 'launch-held', id, message: why.message, fix: why.fix })
      notes.note({ client: '', upstream, tool: '', outcome: 'held', rule: 'pins', code: why.code })
    },
    changed: launch => {
      const { upstream, changes, why, id } = launch
      trace('launch-changed', { upstream, changes })
      parts.notice({ kind: 'launch-changed', id, message: changedText(launch), fix: 'If that was not you, correct the file' })
      notes.note({ client: '', upstream, tool: '', outcome: 'approved', rule: 'pins', code: why.code, by: 'file' })
    },
    ask: parts.askLaunch,
  })
  const waits = ({ id, tool, principal, about = {} }: WaitingCall): void => {
    const who = [about['client'], principal].filter(each => each !== undefined).join(', ')
    const message = `A call of ${clip(tool)} by ${clip(who)} waits for a yes, by the rule ${clip(about['rule'] ?? '')}`
    parts.notice({ kind: 'call-waits', id, message, fix: parts.approveWith(id) })
  }
  let face: Server | undefined
  const news = upstreamNews(settings.events, () => face, { store: parts.shared ? store : undefined, clock, failed })
  /** Installs the visibility layers; most gateways never need them. */
  let hide: () => void = () => {}
  const auth = authorizationOf(settings.auth, fixed)
  /** Principals that the last reload locked out. */
  let shutOut: (principal: Principal) => boolean = () => false
  const seen = { clients, views, visibility, tools: policies, originOf: parts.originOf, policy: () => policy }
  let toldOld: string | undefined
  /** Warns about old-style rules, once per set of rules. */
  const tellOldRules = (): void => {
    const text = oldRulesText(settings.rules ?? [])
    if (text !== undefined && text !== toldOld) trace('rules-deprecated', new Error(text))
    toldOld = text
  }
  const attach = (server: Server): void => {
    face = server
    tellOldRules()
    server.engine.inFlight.keepsAll = true
    hide = () => {
      hide = () => {}
      server.engine.shows = (caller, kind, name, payload) => shows(seen, caller, kind, name, payload)
      server.engine.extend({ layers: visibilityLayers(seen) })
    }
    if (visibility.limits) hide()
    const refusals = { clients, notes, refused, noted, tools, policies }
    if (settings.audit !== false) server.engine.onFail.add((exchange, error) => failedCall(refusals, exchange, error))
    const layers = [
      ...(settings.audit === false ? [] : [answeredLayer(refusals)]),
      decideLayer({ clients, tools: policies, decided }),
      readingLayer(seen),
    ]
    const declares = settings.provenance !== false
    server.engine.extend({ layers, ...(declares && { capabilities: revision => declaration(revision, provenanceExtension) }) })
  }
  return {
    serverOptions: serverOptionsOf(clients),
    auth,
    pins,
    launches,
    wrap: callWrapper({
      name,
      clock,
      clients,
      notes,
      noted,
      provenance: settings.provenance !== false,
      tool: exposed => tools.get(exposed),
    }),
    control: {
      ...approvalsOf({ pins, launches, notes, confirmations: () => face?.confirmations }),
      explain: call => explain({ clients, policy, listed: settings.listed }, call),
      audit: notes.control,
    },
    attach,
    options: (upstream, tool, exposed) => {
      const own = policy.for('tool', upstream, tool.name)
      const added = toolOptions({ settings, clients, decided, waits }, own, tool)
      const reports = added.cost !== undefined && own.say('cost', undefined) === undefined
      policies.set(exposed, own)
      views.reset()
      tools.set(exposed, { upstream, tool: tool.name, reports })
      return added
    },
    forget: exposed => {
      policies.delete(exposed)
      views.reset()
      tools.delete(exposed)
    },
    inspect: (upstream, items) => {
      for (const item of items) {
        const found = inspected.has(item) ? undefined : invisibleIn(item)
        inspected.add(item)
        if (found !== undefined) flagged(upstream, clip(item.name), found)
      }
    },
    visibility,
    news,
    change: next => {
      checkTrust(next)
      settings = next
      clients.change(next.clients)
      policy = ruled()
      tellOldRules()
      views.reset()
      pins.change(next.pins ?? 'block')
      launches.change(next.pins ?? 'block')
      if (visibility.limits) hide()
      // Also without tokens: other kinds of auth only change with a restart.
      const revoked = fixed.take(next.auth !== undefined && 'tokens' in next.auth ? next.auth.tokens : {})
      const isRevoked = ({ issuer, subject = '' }: Principal): boolean => issuer === tokenIssuer && revoked.has(subject)
      shutOut = principal => isRevoked(principal) || clients.isStranger({ principal, carrier: 'http' })
      auth?.disconnect(shutOut)
    },
    withdraw: () => {
      if (face !== undefined) stopWithdrawn(face.engine, seen)
      return first => {
        const { principal } = first.caller
        return (principal !== undefined && shutOut(principal)) || withdrawnFrom(seen, first) !== undefined
      }
    },
    denied: (status, address = 'elsewhere') => denials.add(clip(address), [clip(address), status], ['elsewhere', status]),
    close: async () => {
      denials.flush()
      refused.flush()
      pins.close()
      launches.close()
      await news.close()
      await counts.close?.()
      await notes.close()
    },
  }
}

/** Client budgets as quotas of the server. */
function serverOptionsOf(clients: Clients): Trust['serverOptions'] {
  const none: readonly SharedQuota[] = []
  const quotasFor = (caller: Caller): readonly SharedQuota[] => {
    const { name, budgets } = clients.of(caller) ?? { name: '', budgets: [] }
    return budgets.length === 0 ? none : budgets.map((budget, i) => ({ ...budget, name: `${name}.${i}` }))
  }
  return { cost: { quotasFor } }
}

/** Fixed tokens, stored as hashes; each identifies a client. */
class FixedTokens {
  #known: ReadonlyMap<string, Buffer> = new Map()

  /** Replaces the tokens. Returns the clients whose token was removed or changed. */
  take(tokens: Readonly<Record<string, string>>): ReadonlySet<string> {
    const before = this.#known
    this.#known = new Map(Object.entries(tokens).map(([client, token]) => [client, hashOf(token)]))
    const isSame = (client: string, hash: Buffer): boolean => this.#known.get(client)?.equals(hash) === true
    return new Set([...before].flatMap(([client, hash]) => (isSame(client, hash) ? [] : [client])))
  }

  /** The client of a token; compared in constant time. */
  verify(token: string): VerifiedToken | undefined {
    const hash = hashOf(token)
    const found = [...this.#known].find(([, known]) => timingSafeEqual(known, hash))
    return found === undefined ? undefined : { subject: found[0], client: found[0], issuer: tokenIssuer }
  }
}

/** The authorization that the settings describe. */
function authorizationOf(auth: AuthSettings | undefined, fixed: FixedTokens): ResourceAuthorization | undefined {
  if (auth === undefined) return undefined
  if (!('tokens' in auth)) return oauth(auth)
  fixed.take(auth.tokens)
  return handedOutTokens({ issuer: tokenIssuer, resource: auth.resource, verify: token => fixed.verify(token) })
}

function hashOf(token: string): Buffer {
  return createHash('sha256').update(token).digest()
}

/** Stops calls under way that are no longer allowed, with the reason. */
function stopWithdrawn(engine: Engine, parts: VisibilityLayersParts): void {
  for (const exchange of underWay(engine)) {
    const why = withdrawnFrom(parts, exchange)
    if (why !== undefined) stopCall(exchange, why)
  }
}

/** Why a caller may no longer make this call; undefined where it may. */
function withdrawnFrom(parts: VisibilityLayersParts, exchange: Exchange): Error | undefined {
  const aim = aimOf(exchange)
  if (aim === undefined || exchange.get(compensation) !== undefined) return undefined
  const [kind, name] = aim
  const { caller, params } = exchange
  if (!sees(parts, caller, kind, name)) return targetAbsent(aim)
  const policy = kind === 'tool' ? parts.tools.get(name) : readingOf(parts, kind, name)
  const args = kind === 'tool' ? ((params['arguments'] ?? {}) as Params) : {}
  const verdict = policy?.judge({ ...judgedOf(parts.clients, caller, args), begun: true })
  return policy !== undefined && verdict?.do === 'deny' ? callDenied(policy, verdict) : undefined
}
