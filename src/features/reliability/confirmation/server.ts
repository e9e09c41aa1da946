/**
 * Server side of confirmation: the option `confirm` of tools, `server.confirmations` and `ctx.allowCalls`. The code that asks is loaded
 * with the first call that needs it.
 */
import { type Duration, toMilliseconds } from '../../../core/clock.ts'
import { checkOptions, type KindsOf } from '../../../core/options.ts'
import { type CallContext, exchangeOf } from '../../../engine/context.ts'
import { compensation, type Exchange, field } from '../../../engine/exchange.ts'
import { extensionCapability } from '../../../engine/extensions.ts'
import { ownerOf } from '../../../engine/owner.ts'
import { defineServerFeature, provide, type ServerKit } from '../../../engine/server-feature.ts'
import type { Next } from '../../../engine/stages.ts'
import type { Caller } from '../../../jsonrpc/connection.ts'
import { clip } from '../../../jsonrpc/limits.ts'
import type { Params } from '../../../jsonrpc/message.ts'
import { takesElicitation } from '../../mcp/elicitation/messages.ts'
import { tasksPort } from '../../mcp/tasks/messages.ts'
import { callTool, toolsPort } from '../../mcp/tools/messages.ts'
import { costPort } from '../cost/messages.ts'
import { type FacadePart, facadeParts } from '../facade/messages.ts'
import { type ApprovedCalls, confirmationExtension, confirmationPort, isRisk, type Risk, risks } from './messages.ts'
import type { WaitingCall } from './queue.ts'
import type { OutOfCallApprovals } from './runtime.ts'

/** The options of `createServer` that this feature reads. */
interface ConfirmationServerOptions {
  readonly facade?: boolean | readonly FacadePart[]
}

/** What the feature adds to the server. */
export interface ConfirmationApi {
  /** For your approval page (`channel: 'url'`), and for answering waiting calls (`queue`). */
  readonly confirmations: Pick<OutOfCallApprovals, 'find' | 'approve' | 'waiting' | 'argumentsOf' | 'answered' | 'refuse'>
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
    const tools = kit.port(toolsPort)
    const parts: ConfirmationParts = { ...kit, toEveryone: facadeParts(facade).has('confirmation') }
    const approvals = async (): Promise<OutOfCallApprovals> => new (await import('./runtime.ts')).OutOfCallApprovals(parts)
    const approvalOf = (facts: ConfirmToolOption): ConfirmFacts | undefined => withPrice(facts, kit.port(costPort).price(facts))
    const factsOf = ({ params }: Exchange): ConfirmFacts | undefined => {
      const facts = tools.facts<ConfirmToolOption>(params['name'] as string)
      return facts && approvalOf(facts)
    }
    const settingsOf = (exchange: Exchange): ConfirmFacts | undefined => settingsFor(factsOf(exchange), exchange)
    let used = false
    const concerns = (exchange: Exchange): boolean => factsOf(exchange) !== undefined
    // A compensation was confirmed together with its step.
    const needs = (exchange: Exchange): boolean =>
      used && exchange.get(compensation) === undefined && settingsOf(exchange) !== undefined
    const oblige = async (exchange: Exchange, next: Next): Promise<unknown> => {
      const facts = settingsOf(exchange)
      if (facts === undefined) return next()
      const { obtainConfirmation } = await import('./runtime.ts')
      return obtainConfirmation(parts, exchange, facts, () => {
        exchange.set(confirmed, true)
        return next()
      })
    }
    // A task asks later by itself, so that its caller need not wait. Only elicitation can be used from inside of it.
    const asksLater = (exchange: Exchange): boolean => {
      const { channel } = settingsOf(exchange) ?? {}
      if (channel === 'queue' || !kit.port(tasksPort).detaches(exchange)) return false
      return takesElicitation(exchange.peer, channel === 'url' ? 'url' : 'form')
    }
    tools.extend<ConfirmToolOption>({
      kinds: { confirm: 'any' },
      declare: (tool, facts) => {
        checkConfirm(tool, facts)
        if (used || approvalOf(facts) === undefined) return
        used = true
        // Until then the layers are skipped.
        kit.began()
      },
      meta: (_, facts) => {
        const confirm = approvalOf(facts)
        return confirm !== undefined && isForClients(confirm) ? confirmMeta(confirm) : undefined
      },
      annotations: facts => {
        const confirm = confirmFacts(facts)
        return confirm === undefined || confirm.when !== undefined
          ? undefined
          : { destructiveHint: (confirm.risk ?? worst) === worst }
      },
    })
    return {
      sides: [
        {
          // Always installed: a call may already be on its way under the old plan when the first tool declares `confirm`.
          layers: [
            {
              stage: 'oblige',
              methods: [callTool.name],
              concerns,
              when: needs,
              run: (exchange, next) => (asksLater(exchange) ? next() : oblige(exchange, next)),
            },
            {
              // Runs inside of tasks; guarantees that nothing runs unconfirmed.
              stage: 'execute',
              methods: [callTool.name],
              concerns,
              when: needs,
              run: (exchange, next) => (exchange.get(confirmed) === true ? next() : oblige(exchange, next)),
            },
          ],
          capabilities: revision => (used ? extensionCapability(revision, confirmationExtension) : {}),
        },
      ],
      provides: provide(confirmationPort, {
        allow: async (exchange, tool, approved) => (await approvals()).allow(await ownerOf(exchange), tool, approved),
      }),
      server: {
        confirmations: {
          find: async id => (await approvals()).find(id),
          approve: async (id, by, reason) => (await approvals()).approve(id, by, reason),
          waiting: async () => (await approvals()).waiting(),
          argumentsOf: async id => (await approvals()).argumentsOf(id),
          answered: async id => (await approvals()).answered(id),
          refuse: async (id, by, reason) => (await approvals()).refuse(id, by, reason),
        },
      },
    }
  },
})

/** Set on calls that are confirmed in this process. */
const confirmed = field<boolean>()

/** Combines the confirmation of the call with that of its price into one question. */
function withPrice(facts: ConfirmToolOption, costs: string | undefined): ConfirmFacts | undefined {
  const own = confirmFacts(facts)
  if (costs === undefined) return own
  const price = `It costs ${costs}.`
  if (own === undefined) return { message: `${price} Allow this call?`, risk: 'safe' }
  // If the price needs approval, every call does.
  const { when: _, ...always } = own
  return { ...always, message: `${confirmMessage(own)} ${price}` }
}

/** What the feature needs from the server. */
export interface ConfirmationParts
  extends Pick<ServerKit, 'name' | 'seal' | 'clock' | 'grants' | 'store' | 'audit' | 'askMs' | 'port'> {
  /** Whether refusals offer tokens to every client, not only to those that declared the extension. */
  readonly toEveryone: boolean
}

/** An approval that your page asks for. */
interface PageRequest {
  /** Names the request; pass it to `server.confirmations`. */
  readonly id: string
  /** The name of the tool. */
  readonly tool: string
  /** The arguments of the call. */
  readonly arguments: Params
  /** The question, as a user reads it. */
  readonly message: string
  /** The worst effect that the call can have. */
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
  /** Returns a lower risk for these arguments, which is shown instead. The user is asked anyway. Default: `risk`. */
  readonly riskOf?: (args: Params) => Risk
  /**
   * Who answers instead of the user of the client. `url`: only your page can approve (needs `url`). `queue`: the operator
   * approves by `server.confirmations`. `either`: the queue is used if the client cannot ask its user. Default: the user of the
   * client.
   */
  readonly channel?: 'url' | 'queue' | 'either'
  /** Returns the address of your page for one approval: https, or http on this machine. Required with `channel: 'url'`. */
  readonly url?: (request: PageRequest) => string
  /** For `queue`: how long a call waits for the answer before it is refused. Default: not at all. */
  readonly wait?: Duration
  /** Further facts for the operator and the audit log. Default: none. */
  readonly about?: Readonly<Record<string, string | undefined>>
  /** Called when a call starts to wait. Default: not called. */
  readonly onWait?: (call: WaitingCall) => void
}

/** The option of a tool. */
export interface ConfirmToolOption {
  /** Whether each call needs a confirmation of the user, and how it is asked for. Default: no confirmation. */
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
const asked = 'Allow this call?'
const worst = 'destructive'

/** The settings; undefined if no confirmation is needed. */
function confirmFacts({ confirm }: ConfirmToolOption): ConfirmFacts | undefined {
  return confirm === true ? standard : confirm
}

/** Throws if the settings are invalid. */
function checkConfirm(tool: string, { confirm }: ConfirmToolOption): void {
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
    throw new TypeError(`${where}: set channel: 'url' and url together, or neither`)
}

/** The settings for one call; undefined if it needs no confirmation. If `when` throws, confirmation is required. */
function settingsFor(facts: ConfirmFacts | undefined, exchange: Exchange): ConfirmFacts | undefined {
  if (facts?.when === undefined) return facts
  let said: boolean | ConfirmFacts
  try {
    said = facts.when((exchange.params['arguments'] ?? {}) as Params, exchange.caller, exchange)
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

/** Whether every call needs confirmation by the client's user; only then the tool list says so. */
function isForClients({ when, channel }: ConfirmFacts): boolean {
  return when === undefined && channel !== 'queue' && channel !== 'either'
}

/** What the tool list tells clients. */
function confirmMeta(facts: ConfirmFacts): Params {
  return {
    [confirmationExtension]: {
      requires_confirmation: true,
      confirmation_message: confirmMessage(facts),
      risk_level: facts.risk ?? worst,
    },
  }
}
