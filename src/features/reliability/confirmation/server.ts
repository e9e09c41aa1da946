/** Tools that need a yes from the user. What asks for it is loaded with the first such call. */
import type { Audit } from '../../../core/audit/audit.ts'
import type { Clock } from '../../../core/clock.ts'
import type { Grants } from '../../../core/grant/grants.ts'
import type { Seal, Spending } from '../../../core/handle.ts'
import type { Problem } from '../../../core/problem.ts'
import { type CallContext, exchangeOf } from '../../../engine/context.ts'
import { compensation, type Exchange } from '../../../engine/exchange.ts'
import { declaration } from '../../../engine/extensions.ts'
import { ownerOf } from '../../../engine/owner.ts'
import type { Side } from '../../../engine/plan.ts'
import { defineServerFeature, provide } from '../../../engine/server-feature.ts'
import type { Layer, Next } from '../../../engine/stages.ts'
import type { Params } from '../../../jsonrpc/message.ts'
import type { Store } from '../../../stores/store.ts'
import { takesElicitation } from '../../mcp/elicitation/messages.ts'
import { tasksPort } from '../../mcp/tasks/messages.ts'
import { callTool, type ToolExtension, toolsPort } from '../../mcp/tools/messages.ts'
import { costPort } from '../cost/messages.ts'
import { type FacadePart, facadeParts } from '../facade/messages.ts'
import { problemPort } from '../problem/messages.ts'
import type { Approvals } from './approvals.ts'
import {
  type Confirmable,
  type ConfirmFacts,
  checkConfirm,
  confirmedAs,
  confirmFacts,
  confirmMessage,
  confirmMeta,
  isForClients,
  worstRisk,
} from './facts.ts'
import { type ApprovedCalls, confirmationExtension, confirmationPort } from './messages.ts'

/** The options of `createServer` that it reads. */
interface ConfirmationServerOptions {
  readonly facade?: boolean | readonly FacadePart[]
}

/** What it adds to the server of an author. */
export interface ConfirmationApi {
  /** For the page that approves calls of tools whose `confirm` has the channel `url`, and for whoever answers those that stand in line. */
  readonly confirmations: Pick<Approvals, 'find' | 'approve' | 'waiting' | 'refuse'>
}

/** What it adds to the context of a call. */
export interface ConfirmationContext {
  /**
   * The user has agreed to many calls of a tool at once: for them its `confirm` does not ask again. Each is counted.
   * @example if (await ctx.confirm('Delete 3 tickets?')) await ctx.allowCalls('delete_ticket', { calls: ids.map(id => ({ id })) })
   */
  allowCalls(tool: string, approved: ApprovedCalls): Promise<void>
}

/** The option `confirm` of tools; `server.confirmations` and `ctx.allowCalls`. */
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

/** What the user has to agree to: the call itself, what it costs, or both, which is one question. */
function withPrice(facts: Confirmable, costs: string | undefined): ConfirmFacts | undefined {
  const own = confirmFacts(facts)
  if (costs === undefined) return own
  const price = `It costs ${costs}.`
  if (own === undefined) return { message: `${price} Shall it be called?`, risk: 'safe' }
  // Where the price needs a yes, every call does.
  const { when: _, ...always } = own
  return { ...always, message: `${confirmMessage(own)} ${price}` }
}

export interface ConfirmationParts {
  /** The name of the server, as its user knows it. */
  readonly server: string
  readonly seal: Seal
  readonly clock: Clock
  readonly grants: () => Promise<Grants>
  readonly spending: () => Promise<Spending>
  readonly store: () => Promise<Store>
  /** What a tool says of it; undefined where it needs no yes. */
  readonly facts: (tool: string) => ConfirmFacts | undefined
  /** The digest of a tool as it is offered now. */
  readonly definition: (tool: string) => Promise<string> | undefined
  /** What a refusal's `_meta` says of its problem. */
  readonly problemMeta: (exchange: Exchange, problem: Problem) => Readonly<Record<string, unknown>> | undefined
  /** Whether refusals offer their token to every client, not only to those that declared to know what it is. */
  readonly toEveryone?: boolean
  readonly audit: () => Promise<Audit | undefined>
  /** How long a call that goes on may wait for answers. */
  readonly askMs: number
  /** Whether a call will go on as a task before its handler is entered. */
  readonly detaches: (exchange: Exchange) => boolean
  /** Called when the first tool declares it: until then no call is looked at. */
  readonly began: () => void
}

interface ConfirmationServer {
  readonly side: Side
  /** A tool is offered that says this of itself. Throws where it makes no sense. */
  declare(tool: string, facts: Confirmable): void
  readonly approvals: () => Promise<Approvals>
}

function confirmationServer(parts: ConfirmationParts): ConfirmationServer {
  let declared = false
  const agreed = new WeakSet<Exchange>()
  const factsOf = (exchange: Exchange): ConfirmFacts | undefined => factsFor(parts, exchange)
  const concerns = ({ params }: Exchange): boolean => parts.facts(params['name'] as string) !== undefined
  // What takes back a step was agreed to with the step.
  const needs = (exchange: Exchange): boolean =>
    declared && exchange.get(compensation) === undefined && factsOf(exchange) !== undefined
  const oblige = async (exchange: Exchange, next: Next): Promise<unknown> => {
    const facts = factsOf(exchange)
    if (facts === undefined) return next()
    const { obtainConfirmation } = await import('./obtain.ts')
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
    // A task asks by itself, where there is somebody to be asked: its caller need not wait for that.
    run: (exchange, next) => (asksLater(parts, exchange) ? next() : oblige(exchange, next)),
  }
  // Inside of what makes tasks of calls. Nothing gets past it unconfirmed, whatever was thought before.
  const inside: Layer = {
    stage: 'execute',
    methods: [callTool.name],
    concerns,
    when: needs,
    run: (exchange, next) => (agreed.has(exchange) ? next() : oblige(exchange, next)),
  }
  return {
    approvals: async () => (await import('./approvals.ts')).createApprovals(parts),
    declare: (tool, facts) => {
      checkConfirm(tool, facts)
      if (declared || confirmFacts(facts) === undefined) return
      declared = true
      parts.began()
    },
    side: {
      // Always there: a call may have been on its way, by the plan of then, before the first tool asked for this.
      layers: [layer, inside],
      capabilities: revision => (declared ? declaration(revision, confirmationExtension) : {}),
    },
  }
}

function asksLater(parts: ConfirmationParts, exchange: Exchange): boolean {
  const { channel } = factsFor(parts, exchange) ?? {}
  if (channel === 'queue') return false
  return parts.detaches(exchange) && takesElicitation(exchange.peer, channel === 'url' ? 'url' : 'form')
}

/** What this very call needs. */
function factsFor(parts: ConfirmationParts, exchange: Exchange): ConfirmFacts | undefined {
  const { params, caller } = exchange
  const facts = parts.facts(params['name'] as string)
  if (facts?.when === undefined) return facts
  return confirmedAs(facts, (params['arguments'] ?? {}) as Params, caller, exchange)
}
