/** What an author says of a tool that needs a yes, and what others are told of it. */
import { checkOptions } from '../../../core/options.ts'
import { clip } from '../../../jsonrpc/limits.ts'
import type { Params } from '../../../jsonrpc/message.ts'
import { confirmationExtension, isRisk, type Risk, risks, type WireConfirmation } from './messages.ts'

/** An approval that a page of yours is to ask for. */
export interface PageRequest {
  /** Names the request: the page gives it back to `server.confirmations`. */
  readonly id: string
  readonly tool: string
  readonly arguments: Params
  readonly message: string
  readonly risk: Risk
}

export interface ConfirmFacts {
  /** What the user is asked. `{name}` stands for that argument. Default: whether to call the tool. */
  readonly message?: string
  /** The worst that can come of a call. Default `destructive`. */
  readonly risk?: Risk
  /** A lower risk that a call with these arguments has: shown instead. The user is asked all the same. */
  readonly riskOf?: (args: Params) => Risk
  /** `url`: only a page of yours can approve, nothing that the client says. Needs `url`. */
  readonly channel?: 'url'
  /** The address of that page for one approval: https, or http on this machine. */
  readonly url?: (request: PageRequest) => string
}

/** The option of a tool. */
export interface Confirmable {
  /** The user has to say yes to each call. */
  readonly confirm?: true | ConfirmFacts
}

const standard: ConfirmFacts = {}
const asked = 'Shall it be called?'

/** Undefined where no yes is needed. */
export function confirmFacts({ confirm }: Confirmable): ConfirmFacts | undefined {
  return confirm === true ? standard : confirm
}

/** Throws where what was said makes no sense. */
export function checkConfirm(tool: string, { confirm }: Confirmable): void {
  if (confirm === undefined || confirm === true) return
  const where = `The option confirm of tool "${clip(tool)}"`
  checkOptions(where, confirm, { message: 'string', risk: 'string', riskOf: 'function', channel: 'string', url: 'function' })
  if (confirm.risk !== undefined && !isRisk(confirm.risk))
    throw new TypeError(`${where}: risk is "${clip(String(confirm.risk))}"; give one of ${risks.join(', ')}`)
  if (confirm.channel !== undefined && confirm.channel !== 'url')
    throw new TypeError(`${where}: channel is "${clip(String(confirm.channel))}"; give 'url', or leave it out`)
  if ((confirm.channel === 'url') !== (confirm.url !== undefined))
    throw new TypeError(`${where}: channel: 'url' and url belong together`)
}

export function messageOf({ message = asked }: ConfirmFacts): string {
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

/** What a list tells everybody of the tool. */
export function confirmMeta(facts: ConfirmFacts): Readonly<Record<string, WireConfirmation>> {
  return {
    [confirmationExtension]: {
      requires_confirmation: true,
      confirmation_message: messageOf(facts),
      risk_level: worstRisk(facts),
    },
  }
}
