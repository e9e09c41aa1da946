/**
 * Server side of confirmation: the option `confirm` of tools, `server.confirmations` and `ctx.allowCalls`. The code that asks is loaded
 * with the first call that needs it.
 */
import type { Audit } from '../../../core/audit/audit.ts'
import { type Clock, type Duration, toMilliseconds } from '../../../core/clock.ts'
import type { Grants } from '../../../core/grant/grants.ts'
import type { Seal, Spending } from '../../../core/handle.ts'
import { checkOptions, type KindsOf } from '../../../core/options.ts'
import type { Problem } from '../../../core/problem.ts'
import { type CallContext, exchangeOf } from '../../../engine/context.ts'
import { compensation, type Exchange } from '../../../engine/exchange.ts'
import { declaration } from '../../../engine/extensions.ts'
import { ownerOf } from '../../../engine/owner.ts'
import type { Side } from '../../../engine/plan.ts'
import { defineServerFeature, provide } from '../../../engine/server-feature.ts'
import type { Layer, Next } from '../../../engine/stages.ts'
import type { Caller } from '../../../jsonrpc/connection.ts'
import { clip } from '../../../jsonrpc/limits.ts'
import type { Params } from '../../../jsonrpc/message.ts'
import type { Store } from '../../../stores/store.ts'
import { takesElicitation } from '../../mcp/elicitation/messages.ts'
import { tasksPort } from '../../mcp/tasks/messages.ts'
import { callTool, type ToolExtension, toolsPort } from '../../mcp/tools/messages.ts'
import { costPort } from '../cost/messages.ts'
import { type FacadePart, facadeParts } from '../facade/messages.ts'
import { problemPort } from '../problem/messages.ts'
import {
  type ApprovedCalls,
  confirmationExtension,
  confirmationPort,
  isRisk,
  type Risk,
  risks,
  type WireConfirmation,
} from './messages.ts'
import type { WaitingCall } from './queue.ts'
import type { Approvals } from './runtime.ts'

/** The options of `createServer` that this feature reads. */
interface ConfirmationServerOptions {
  readonly facade?: boolean | readonly FacadePart[]
}

/** What the feature adds to the server. */
export interface ConfirmationApi {
  /** For your approval page (`channel: 'url'`), and for answering waiting calls (`queue`). */
  readonly confirmations: Pick<Approvals, 'find' | 'approve' | 'waiting' | 'refuse'>
}

/** What the feature adds to `ctx`. */
export interface ConfirmationContext {
  /**
   * The user has agreed to many calls of a tool at once: for them its `confirm` does not ask again. Each is counted.
   * @example if (await ctx.confirm('Delete 3 tickets?')) await ctx.allowCalls('delete_ticket', { calls: ids.map(id => ({ id })) })
   */
  allowCalls(tool: string, approved: ApprovedCalls): Promise<void>
}

/** The server feature: `confirm`, `server.confirmations` and `ctx.allowCalls`. */
export const confirmationFeature = defineServerFeature<ConfirmationServerOptions, ConfirmationApi>({
  name: 'confirmation',
  context: {
    allowCalls(tool, approved) {
      const exchange = exchangeOf(this)
      return exchange.engine.ports.get(confirmationPort).allow(exchange, tool, approved)
    },
  } satisfies ConfirmationContext & ThisType<CallContext>,
  setup: (kit, { facade }) => {
    const { name, clock, store } = kit
    const tools = kit.port(toolsPort)
    const approvalOf = (facts: Confirmable): ConfirmFacts | undefined => withPrice(facts, kit.port(costPort).price(facts))
    const server = confirmationServer({
      ...kit,
      server: name,
      toEveryone: facadeParts(facade).has('confirmation'),
      problemMeta: (exchange, problem) => kit.port(problemPort).meta(exchange, problem),
      detaches: exchange => kit.port(tasksPort).detaches(exchange),
      spending: async () => {
        const [{ Spending }, opened] = await Promise.all([import('../../../core/handle.ts'), store()])
        return new Spending({ store: opened, clock })
      },
      facts: tool => {
        const facts = tools.facts<Confirmable>(tool)
        return facts === undefined ? undefined : approvalOf(facts)
      },
      definition: tool => tools.catalog.digestOf(tool),
    })
    tools.extend(extending(server, approvalOf))
    const { approvals } = server
    return {
      sides: [server.side],
      provides: provide(confirmationPort, {
        allow: async (exchange, tool, approved) => (await approvals()).allow(await ownerOf(exchange), tool, approved),
      }),
      server: {
        confirmations: {
          find: async id => (await approvals()).find(id),
          approve: async (id, by) => (await approvals()).approve(id, by),
          waiting: async () => (await approvals()).waiting(),
          refuse: async (id, by) => (await approvals()).refuse(id, by),
        },
      },
    }
  },
})

type ApprovalOf = (facts: Confirmable) => ConfirmFacts | undefined

// Adds `confirm` to the options of tools, with its checks, `_meta` and annotations.
function extending({ declare }: ConfirmationServer, approvalOf: ApprovalOf): ToolExtension<Confirmable> {
  return {
    kinds: { confirm: 'any' },
    declare: (tool, facts: Confirmable) => {
      checkConfirm(tool, facts)
      const confirm = approvalOf(facts)
      declare(tool, confirm === undefined ? {} : { confirm })
    },
    meta: (_, facts: Confirmable) => {
      const confirm = approvalOf(facts)
      return confirm !== undefined && isForClients(confirm) ? confirmMeta(confirm) : undefined
    },
    annotations: (facts: Confirmable) => {
      const confirm = confirmFacts(facts)
      return confirm === undefined || confirm.when !== undefined
        ? undefined
        : { destructiveHint: worstRisk(confirm) === 'destructive' }
    },
  }
}

/** Combines the confirmation of the call with that of its price into one question. */
function withPrice(facts: Confirmable, costs: string | undefined): ConfirmFacts | undefined {
  const own = confirmFacts(facts)
  if (costs === undefined) return own
  const price = `It costs ${costs}.`
  if (own === undefined) return { message: `${price} Shall it be called?`, risk: 'safe' }
  // If the price needs approval, every call does.
  const { when: _, ...always } = own
  return { ...always, message: `${confirmMessage(own)} ${price}` }
}

/** What the feature needs from the server. */
export interface ConfirmationParts {
  /** The server name, as users know it. */
  readonly server: string
  readonly seal: Seal
  readonly clock: Clock
  readonly grants: () => Promise<Grants>
  readonly spending: () => Promise<Spending>
  readonly store: () => Promise<Store>
  /** The confirmation settings of a tool; undefined if it needs none. */
  readonly facts: (tool: string) => ConfirmFacts | undefined
  /** The digest of the tool's current definition. */
  readonly definition: (tool: string) => Promise<string> | undefined
  /** The `_meta` that describes a problem to this client. */
  readonly problemMeta: (exchange: Exchange, problem: Problem) => Readonly<Record<string, unknown>> | undefined
  /** Whether refusals offer tokens to every client, not only to those that declared the extension. */
  readonly toEveryone?: boolean
  readonly audit: () => Promise<Audit | undefined>
  /** How long a call may wait for answers. */
  readonly askMs: number
  /** Whether the call will become a task before its handler runs. */
  readonly detaches: (exchange: Exchange) => boolean
  /** Called when the first tool declares `confirm`; until then the layers are skipped. */
  readonly began: () => void
}

interface ConfirmationServer {
  readonly side: Side
  /** Called for each offered tool. Throws if its settings are invalid. */
  declare(tool: string, facts: Confirmable): void
  readonly approvals: () => Promise<Approvals>
}

function confirmationServer(parts: ConfirmationParts): ConfirmationServer {
  let declared = false
  // Calls that are confirmed in this process.
  const agreed = new WeakSet<Exchange>()
  const factsOf = (exchange: Exchange): ConfirmFacts | undefined => factsFor(parts, exchange)
  const concerns = ({ params }: Exchange): boolean => parts.facts(params['name'] as string) !== undefined
  // A compensation was confirmed together with its step.
  const needs = (exchange: Exchange): boolean =>
    declared && exchange.get(compensation) === undefined && factsOf(exchange) !== undefined
  const oblige = async (exchange: Exchange, next: Next): Promise<unknown> => {
    const facts = factsOf(exchange)
    if (facts === undefined) return next()
    const { obtainConfirmation } = await import('./runtime.ts')
    return obtainConfirmation(parts, exchange, facts, () => {
      agreed.add(exchange)
      return next()
    })
  }
  const layer: Layer = {
    stage: 'oblige',
    methods: [callTool.name],
    concerns,
    when: needs,
    // A task asks later by itself, so that its caller need not wait.
    run: (exchange, next) => (asksLater(parts, exchange) ? next() : oblige(exchange, next)),
  }
  // Runs inside of tasks; guarantees that nothing runs unconfirmed.
  const inside: Layer = {
    stage: 'execute',
    methods: [callTool.name],
    concerns,
    when: needs,
    run: (exchange, next) => (agreed.has(exchange) ? next() : oblige(exchange, next)),
  }
  return {
    approvals: async () => (await import('./runtime.ts')).createApprovals(parts),
    declare: (tool, facts) => {
      checkConfirm(tool, facts)
      if (declared || confirmFacts(facts) === undefined) return
      declared = true
      parts.began()
    },
    side: {
      // Always installed: a call may already be on its way under the old plan when the first tool declares `confirm`.
      layers: [layer, inside],
      capabilities: revision => (declared ? declaration(revision, confirmationExtension) : {}),
    },
  }
}

// Only elicitation can be used from inside a task.
function asksLater(parts: ConfirmationParts, exchange: Exchange): boolean {
  const { channel } = factsFor(parts, exchange) ?? {}
  if (channel === 'queue') return false
  return parts.detaches(exchange) && takesElicitation(exchange.peer, channel === 'url' ? 'url' : 'form')
}

/** The settings that apply to this call. */
function factsFor(parts: ConfirmationParts, exchange: Exchange): ConfirmFacts | undefined {
  const { params, caller } = exchange
  const facts = parts.facts(params['name'] as string)
  if (facts?.when === undefined) return facts
  return confirmedAs(facts, (params['arguments'] ?? {}) as Params, caller, exchange)
}

/** An approval that your page asks for. */
interface PageRequest {
  /** Names the request; pass it to `server.confirmations`. */
  readonly id: string
  readonly tool: string
  readonly arguments: Params
  readonly message: string
  readonly risk: Risk
}

/** What `when` may know of the caller. */
export type ConfirmCaller = Pick<Caller, 'principal' | 'carrier'>

/** How and when a tool asks for confirmation. */
export interface ConfirmFacts {
  /**
   * Which calls need confirmation, by raw arguments and caller; may override the other settings. Called several times per call with the
   * same `call` object. Default: all.
   */
  readonly when?: (args: Params, caller: ConfirmCaller, call: object) => boolean | Omit<ConfirmFacts, 'when'>
  /** The question. `{name}` is replaced by that argument. Default: whether to call the tool. */
  readonly message?: string
  /** The worst effect of a call. Default `destructive`. */
  readonly risk?: Risk
  /** A lower risk for these arguments, shown instead. The user is asked anyway. */
  readonly riskOf?: (args: Params) => Risk
  /**
   * `url`: only your page can approve (needs `url`). `queue`: the operator approves by `server.confirmations`. `either`: the queue is
   * used if the client cannot ask its user.
   */
  readonly channel?: 'url' | 'queue' | 'either'
  /** The address of the page for one approval: https, or http on this machine. */
  readonly url?: (request: PageRequest) => string
  /** For `queue`: how long a call waits for the answer before it is refused. Default: not at all. */
  readonly wait?: Duration
  /** Further facts for the operator and the audit log. */
  readonly about?: Readonly<Record<string, string | undefined>>
  /** Called when a call starts to wait. */
  readonly onWait?: (call: WaitingCall) => void
}

/** The option of a tool. */
export interface Confirmable {
  /** Each call needs the user's confirmation. */
  readonly confirm?: true | ConfirmFacts
}

const standard: ConfirmFacts = {}
const channels = ['url', 'queue', 'either'] as const
const confirmKinds: KindsOf<ConfirmFacts> = {
  when: 'function',
  message: 'string',
  risk: 'string',
  riskOf: 'function',
  channel: 'string',
  url: 'function',
  wait: 'any',
  about: 'object',
  onWait: 'function',
}
const asked = 'Shall it be called?'

/** The settings; undefined if no confirmation is needed. */
function confirmFacts({ confirm }: Confirmable): ConfirmFacts | undefined {
  return confirm === true ? standard : confirm
}

/** Throws if the settings are invalid. */
function checkConfirm(tool: string, { confirm }: Confirmable): void {
  if (confirm === undefined || confirm === true) return
  const where = `The option confirm of tool "${clip(tool)}"`
  checkOptions(where, confirm, confirmKinds)
  if (confirm.risk !== undefined && !isRisk(confirm.risk))
    throw new TypeError(`${where}: risk is "${clip(String(confirm.risk))}"; give one of ${risks.join(', ')}`)
  if (confirm.channel !== undefined && !channels.includes(confirm.channel))
    throw new TypeError(
      `${where}: channel is "${clip(String(confirm.channel))}"; give ${channels.map(each => `'${each}'`).join(', ')}, or leave it out`,
    )
  if (confirm.wait !== undefined) toMilliseconds(confirm.wait, `${where}: wait`)
  if ((confirm.channel === 'url') !== (confirm.url !== undefined))
    throw new TypeError(`${where}: channel: 'url' and url belong together`)
}

/** The settings for one call; undefined if it needs no confirmation. If `when` throws, confirmation is required. */
function confirmedAs(facts: ConfirmFacts, args: Params, caller: ConfirmCaller, call: object): ConfirmFacts | undefined {
  if (facts.when === undefined) return facts
  let said: boolean | ConfirmFacts
  try {
    said = facts.when(args, caller, call)
  } catch {
    said = true
  }
  if (said === false) return undefined
  const { when: _, ...rest } = facts
  return said === true ? rest : { ...rest, ...said }
}

/** The author's question, or the default. */
export function confirmMessage({ message = asked }: ConfirmFacts): string {
  return message
}

function worstRisk({ risk = 'destructive' }: ConfirmFacts): Risk {
  return risk
}

/** The risk shown for one call; never above what the tool declares. */
export function riskOf(facts: ConfirmFacts, args: Params): Risk {
  const worst = worstRisk(facts)
  try {
    const said = facts.riskOf?.(args)
    return isRisk(said) && risks.indexOf(said) < risks.indexOf(worst) ? said : worst
  } catch {
    return worst
  }
}

/** Whether every call needs confirmation by the client's user; only then the tool list says so. */
function isForClients({ when, channel }: ConfirmFacts): boolean {
  return when === undefined && channel !== 'queue' && channel !== 'either'
}

/** What the tool list tells clients. */
function confirmMeta(facts: ConfirmFacts): Readonly<Record<string, WireConfirmation>> {
  return {
    [confirmationExtension]: {
      requires_confirmation: true,
      confirmation_message: confirmMessage(facts),
      risk_level: worstRisk(facts),
    },
  }
}
