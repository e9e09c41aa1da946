/**
 * Assembles the trust features of a gateway: rules, approvals, budgets, pins, audit log and visibility. Upstreams know nothing of these;
 * most become options of the exposed tools or layers of the server face.
 */
import { createHash, timingSafeEqual } from 'node:crypto'
import { handedOutTokens, oauth, type ResourceAuthorization, type VerifiedToken } from '../../auth/resource/options.ts'
import type { Clock } from '../../core/clock.ts'
import type { Trace } from '../../core/log.ts'
import { activeExchanges, stopCall } from '../../engine/disconnect.ts'
import { compensation, type Exchange } from '../../engine/exchange.ts'
import { extensionCapability } from '../../engine/extensions.ts'
import { aimOf } from '../../features/mcp/authorization/messages.ts'
import type { Tool } from '../../features/mcp/tools/messages.ts'
import type { WaitingCall } from '../../features/reliability/confirmation/queue.ts'
import type { SharedQuota } from '../../features/reliability/cost/server.ts'
import { provenanceExtension } from '../../features/reliability/provenance/messages.ts'
import type { Caller, Principal } from '../../jsonrpc/connection.ts'
import { clip } from '../../jsonrpc/limits.ts'
import type { Params } from '../../jsonrpc/message.ts'
import { Denials } from '../../policy/audit/denials.ts'
import { type GatewayAuditControl, GatewayAuditLog } from '../../policy/audit/gateway-audit.ts'
import { changedText, Launches } from '../../policy/pins/launches.ts'
import { heldText, invisibleIn, ToolPins } from '../../policy/pins/tool-pins.ts'
import { type CallVerdict, GatewayPolicy, oldRulesText } from '../../policy/rules/call-policy.ts'
import { Counts, type RateCounts, SharedCounts } from '../../policy/rules/counts.ts'
import type { Server } from '../../server/api.ts'
import type { ServerOptions } from '../../server/options.ts'
import type { Store } from '../../stores/store.ts'
import type { GatewayOptions } from '../gateway.ts'
import { howToApproveLaunch } from '../upstreams/entry.ts'
import { budgetName, budgetsOf, ClientActivity, type ClientsControl } from './activity.ts'
import { ApprovalNews, type ApprovalsControl, approvalsOf, howToApproveEntry, noticesTo } from './approvals.ts'
import { CallWrapper } from './call-wrapper.ts'
import { checkTrust } from './check.ts'
import { Clients, tokenIssuer } from './clients.ts'
import { UpstreamEvents } from './events.ts'
import { type AddedOptions, policyCallFacts, toolOptions } from './options.ts'
import { callDenied, decideLayer, type ExplainedCall, type Explaining, explain, readingLayer } from './rule-layers.ts'
import { type AuthSettings, type TrustSettings, trustOf } from './settings.ts'
import { Visibility } from './visibility.ts'
import { targetAbsent, visibilityLayers } from './visibility-layers.ts'

interface TrustParts {
  /** The name that the gateway gives itself. */
  readonly name: string
  readonly store: Store
  readonly clock: Clock
  readonly trace: Trace
  /** Lists the tools of an upstream again. */
  relist(upstream: string): void
  /** Starts an upstream whose launch was held. */
  relaunch(upstream: string): void
  readonly originOf: Visibility['originOf']
  /** The names of all upstreams, in config order. */
  upstreams(): readonly string[]
}

/** The operator's controls. */
export interface TrustControl extends ApprovalsControl, ClientsControl {
  /** What would happen to a call, and by which rule. Counts nothing and asks nobody. */
  explain(call: Explaining): ExplainedCall
  /** Reads and verifies the audit log. */
  readonly audit: GatewayAuditControl
}

/** The trust features as the rest of the gateway uses them. */
export type Trust = ReturnType<typeof createTrust>

/** Creates the trust features. Throws where a setting is wrong. */
export function createTrust(
  options: GatewayOptions,
  { name, store, clock, trace, relist, relaunch, originOf, upstreams }: TrustParts,
) {
  let settings = trustOf(options)
  checkTrust(settings)
  // Other gateways may share a store that is given.
  const shared = options.store !== undefined
  const tell = noticesTo(options)
  const provenance = settings.provenance !== false
  const fixed = new FixedTokens()
  const clients = new Clients(settings.clients)
  const failed = (error: unknown): void => trace('gateway-store', error)
  const counts: RateCounts = shared ? new SharedCounts(store, clock, failed) : new Counts(clock)
  const ruled = (): GatewayPolicy => new GatewayPolicy(settings.rules ?? [], settings.otherwise, clock, counts)
  const visibility = new Visibility(clients, ruled(), settings.listed, originOf)
  const approvalNews = new ApprovalNews()
  const activity = new ClientActivity(clock)
  const notes = new GatewayAuditLog({
    store,
    clock,
    audit: settings.audit,
    notice: tell,
    failed,
    onEntry: entry => {
      activity.take(entry)
      options.onAuditEntry?.(entry)
    },
  })
  const denials = new Denials<readonly [from: string, status: number]>({
    clock,
    most: 100,
    note: ([from, status], times) =>
      notes.note({ client: '', upstream: '', tool: '', outcome: 'refused', code: `TOKEN_REFUSED_${status}`, from, times }),
  })
  const reporting = new Set<string>()
  const decided = new WeakMap<object, CallVerdict>()
  const calls = new CallWrapper({ name, clock, notes, provenance, clients, tools: visibility.tools, reporting })
  const flagged = (upstream: string, tool: string, found: string): void => {
    trace('tool-flagged', { upstream, tool, found })
    notes.note({ client: '', upstream, tool, outcome: 'held', rule: 'invisible-text', code: found })
  }
  const inspected = new WeakSet<object>()
  const pins = new ToolPins({
    store,
    clock,
    mode: settings.pins ?? 'block',
    held: (held, id) => {
      const { server, tool, why } = held
      trace('tool-held', why)
      const message = `${heldText(held)}${settings.pins === 'warn' ? '' : '. The tool is hidden until it is approved'}`
      approvalNews.changed()
      tell({ kind: 'tool-held', id, message, fix: howToApproveEntry(options, id) })
      notes.note({ client: '', upstream: server, tool: tool.name, outcome: 'held', rule: 'pins', code: why.code })
    },
    flagged,
    relook: relist,
  })
  const launches = new Launches({
    store,
    clock,
    mode: settings.pins ?? 'block',
    approveBy: upstream => howToApproveLaunch(options, upstream),
    relaunch,
    held: ({ upstream, why, id }) => {
      trace('launch-held', why)
      approvalNews.changed()
      tell({ kind: 'launch-held', id, message: why.message, fix: why.fix })
      notes.note({ client: '', upstream, tool: '', outcome: 'held', rule: 'pins', code: why.code })
    },
    changed: launch => {
      const { upstream, changes, why, id } = launch
      trace('launch-changed', { upstream, changes })
      tell({ kind: 'launch-changed', id, message: changedText(launch), fix: 'If you did not make this change, correct the file' })
      notes.note({ client: '', upstream, tool: '', outcome: 'approved', rule: 'pins', code: why.code, by: 'file' })
    },
    ask: options.onLaunchChanged,
  })
  const waits = ({ id, tool, principal, about = {} }: WaitingCall): void => {
    const who = [about['client'], principal].filter(each => each !== undefined).join(', ')
    const message = `A call of ${clip(tool)} by ${clip(who)} waits for approval (rule ${clip(about['rule'] ?? '')})`
    approvalNews.changed()
    tell({ kind: 'call-waits', id, message, fix: howToApproveEntry(options, id) })
  }
  let served: Server | undefined
  const { events = false } = settings
  const news = events && new UpstreamEvents(events, () => served, { store: shared ? store : undefined, clock, failed })
  /** Installs the visibility layers; most gateways never need them. */
  let hide: () => void = () => {}
  const auth = authorizationOf(settings.auth, fixed)
  /** Principals that the last reload locked out. */
  let shutOut: (principal: Principal) => boolean = () => false
  let toldOld: string | undefined
  /** Warns about old-style rules, once per set of rules. */
  const tellOldRules = (): void => {
    const text = oldRulesText(settings.rules ?? [])
    if (text !== undefined && text !== toldOld) trace('rules-deprecated', new Error(text))
    toldOld = text
  }
  const control: TrustControl = {
    ...approvalsOf({ store, shared, news: approvalNews, pins, launches, notes, confirmations: () => served?.confirmations }),
    explain: call => explain(visibility, call),
    clients: () => activity.list(clients, upstreams()),
    budgets: () => budgetsOf(clients, served),
    audit: notes.control,
  }
  return {
    /** Options for `createServer`. */
    serverOptions: serverOptionsOf(clients),
    /** The authorization for every HTTP listener. */
    auth,
    /** Checks tool definitions against their pins. */
    pins,
    /** Checks commands and addresses of upstreams against their pins. */
    launches,
    /** Middleware around upstream calls. */
    calls,
    /** The operator's controls. */
    control,
    /** What callers may see. */
    visibility,
    /** Events of upstreams; undefined where they are off. */
    news: news || undefined,
    /** Connects to the server face, once it exists. */
    attach: (server: Server): void => {
      served = server
      tellOldRules()
      server.engine.inFlight.keepsAll = true
      hide = () => {
        hide = () => {}
        server.engine.shows = (caller, kind, shown, payload) => visibility.shows(caller, kind, shown, payload)
        server.engine.extend({ layers: visibilityLayers(visibility) })
      }
      if (visibility.limits) hide()
      server.engine.onFail.add((exchange, error) => calls.failed(exchange, error))
      const layers = [calls.layer, decideLayer(visibility, decided), readingLayer(visibility)]
      server.engine.extend({
        layers,
        ...(provenance && { capabilities: revision => extensionCapability(revision, provenanceExtension) }),
      })
    },
    /** Registers an offered tool and returns the options that rules add. */
    options: (upstream: string, tool: Tool, exposed: string): AddedOptions => {
      const own = visibility.policy.for('tool', upstream, tool.name)
      const added = toolOptions({ settings, clients, decided, waits }, own, tool)
      visibility.offer(exposed, own)
      if (added.cost !== undefined && own.say('cost', undefined) === undefined) reporting.add(exposed)
      else reporting.delete(exposed)
      return added
    },
    /** Unregisters a tool. */
    forget: (exposed: string): void => {
      visibility.offer(exposed, undefined)
      reporting.delete(exposed)
    },
    /** Reports invisible text in prompts and resources; tools are checked where they are pinned. */
    inspect: (upstream: string, items: readonly { readonly name: string }[]): void => {
      for (const item of items) {
        const found = inspected.has(item) ? undefined : invisibleIn(item)
        inspected.add(item)
        if (found !== undefined) flagged(upstream, clip(item.name), found)
      }
    },
    /** Applies other settings from the next call on; settings outside `changeable` are ignored. Throws where one is wrong. */
    change: (next: TrustSettings): void => {
      checkTrust(next)
      settings = next
      clients.change(next.clients)
      visibility.change(ruled(), next.listed)
      tellOldRules()
      pins.change(next.pins ?? 'block')
      launches.change(next.pins ?? 'block')
      if (visibility.limits) hide()
      // Also without tokens: other kinds of auth only change with a restart.
      const revoked = fixed.take(next.auth !== undefined && 'tokens' in next.auth ? next.auth.tokens : {})
      const isRevoked = ({ issuer, subject = '' }: Principal): boolean => issuer === tokenIssuer && revoked.has(subject)
      shutOut = principal => isRevoked(principal) || clients.isUnknownClient({ principal, carrier: 'http' })
      auth?.disconnect(shutOut)
    },
    /** Stops calls that the current settings no longer allow. Returns the same check for parked calls. */
    withdraw: (): ((first: Exchange) => boolean) => {
      for (const exchange of served === undefined ? [] : activeExchanges(served.engine)) {
        const why = withdrawnFrom(visibility, exchange)
        if (why !== undefined) stopCall(exchange, why)
      }
      return first => {
        const { principal } = first.caller
        return (principal !== undefined && shutOut(principal)) || withdrawnFrom(visibility, first) !== undefined
      }
    },
    /** Audits a rejected token. */
    denied: (status: number, address = 'elsewhere'): void =>
      denials.add(clip(address), [clip(address), status], ['elsewhere', status]),
    close: async (): Promise<void> => {
      denials.flush()
      calls.flush()
      pins.close()
      launches.close()
      if (news) await news.close()
      await counts.close?.()
      await notes.close()
    },
  }
}

/** Client budgets as quotas of the server. */
function serverOptionsOf(clients: Clients): Pick<ServerOptions, 'cost'> {
  const none: readonly SharedQuota[] = []
  const quotasFor = (caller: Caller): readonly SharedQuota[] => {
    const { name, budgets } = clients.of(caller) ?? { name: '', budgets: [] }
    return budgets.length === 0 ? none : budgets.map((budget, i) => ({ ...budget, name: budgetName(name, i) }))
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

/** Why a caller may no longer make this call; undefined where it may. */
function withdrawnFrom(visibility: Visibility, exchange: Exchange): Error | undefined {
  const aim = aimOf(exchange)
  if (aim === undefined || exchange.get(compensation) !== undefined) return undefined
  const { caller, params } = exchange
  if (!visibility.sees(caller, ...aim)) return targetAbsent(aim)
  const policy = visibility.policyOf(...aim)
  const args = aim[0] === 'tool' ? ((params['arguments'] ?? {}) as Params) : {}
  const verdict = policy?.judge({ ...policyCallFacts(visibility.clients, caller, args), begun: true })
  return policy !== undefined && verdict?.do === 'deny' ? callDenied(policy, verdict) : undefined
}
