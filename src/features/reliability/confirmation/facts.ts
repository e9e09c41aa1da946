/** What an author says of a tool that needs a yes, and what others are told of it. */
import { type Duration, toMilliseconds } from '../../../core/clock.ts'
import { checkOptions, type KindsOf } from '../../../core/options.ts'
import type { Caller } from '../../../jsonrpc/connection.ts'
import { clip } from '../../../jsonrpc/limits.ts'
import type { Params } from '../../../jsonrpc/message.ts'
import { confirmationExtension, isRisk, type Risk, risks, type WireConfirmation } from './messages.ts'
import type { WaitingCall } from './queue.ts'

/** An approval that a page of yours is to ask for. */
export interface PageRequest {
  /** Names the request: the page gives it back to `server.confirmations`. */
  readonly id: string
  readonly tool: string
  readonly arguments: Params
  readonly message: string
  readonly risk: Risk
}

/** Who calls, where it matters to whether he is asked. */
export type ConfirmCaller = Pick<Caller, 'principal' | 'carrier'>

export interface ConfirmFacts {
  /**
   * Of which calls, by their arguments as they came and by who calls; it may say otherwise how one is asked about. Asked more than
   * once of a call: `call` is the same each time, and another one's is another. Default all.
   */
  readonly when?: (args: Params, caller: ConfirmCaller, call: object) => boolean | Omit<ConfirmFacts, 'when'>
  /** What the user is asked. `{name}` stands for that argument. Default: whether to call the tool. */
  readonly message?: string
  /** The worst that can come of a call. Default `destructive`. */
  readonly risk?: Risk
  /** A lower risk that a call with these arguments has: shown instead. The user is asked all the same. */
  readonly riskOf?: (args: Params) => Risk
  /**
   * `url`: only a page of yours can approve, nothing that the client says. Needs `url`. `queue`: it waits in line for whoever runs
   * the server, who answers by `server.confirmations`; `either`: the same where the client cannot ask its user.
   */
  readonly channel?: 'url' | 'queue' | 'either'
  /** The address of that page for one approval: https, or http on this machine. */
  readonly url?: (request: PageRequest) => string
  /** Of what stands in line: how long a call waits for the answer before it is refused, to be made again. Default not at all. */
  readonly wait?: Duration
  /** What is told beside it to whoever looks at what stands in line, and written into the audit log. */
  readonly about?: Readonly<Record<string, string | undefined>>
  /** Told of a call that has begun to stand in line. */
  readonly onWait?: (call: WaitingCall) => void
}

/** The option of a tool. */
export interface Confirmable {
  /** The user has to say yes to each call. */
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

/** Undefined where no yes is needed. */
export function confirmFacts({ confirm }: Confirmable): ConfirmFacts | undefined {
  return confirm === true ? standard : confirm
}

/** Throws where what was said makes no sense. */
export function checkConfirm(tool: string, { confirm }: Confirmable): void {
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

/** What holds for one call; undefined where it needs no yes. Whatever fails here must not let a call through. */
export function confirmedAs(facts: ConfirmFacts, args: Params, caller: ConfirmCaller, call: object): ConfirmFacts | undefined {
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

export function confirmMessage({ message = asked }: ConfirmFacts): string {
  return message
}

export function worstRisk({ risk = 'destructive' }: ConfirmFacts): Risk {
  return risk
}

/** The risk shown for one call: never above what the tool declares, whatever its author's function says. */
export function riskOf(facts: ConfirmFacts, args: Params): Risk {
  const worst = worstRisk(facts)
  try {
    const said = facts.riskOf?.(args)
    return isRisk(said) && risks.indexOf(said) < risks.indexOf(worst) ? said : worst
  } catch {
    return worst
  }
}

/** Whether every call needs a yes that clients can get from their users: then they are told so, and may ask before they call. */
export function isForClients({ when, channel }: ConfirmFacts): boolean {
  return when === undefined && channel !== 'queue' && channel !== 'either'
}

/** What a list tells everybody of the tool. */
export function confirmMeta(facts: ConfirmFacts): Readonly<Record<string, WireConfirmation>> {
  return {
    [confirmationExtension]: {
      requires_confirmation: true,
      confirmation_message: confirmMessage(facts),
      risk_level: worstRisk(facts),
    },
  }
}
