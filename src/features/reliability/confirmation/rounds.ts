/**
 * Where questions travel inside results, a call is made again with the answers, and what is known of its confirmation goes
 * along in the sealed state. Each such state is good for one more try: whoever sends it twice is not let in twice.
 */
import type { Exchange } from '../../../engine/exchange.ts'
import { isRecord } from '../../../jsonrpc/message.ts'
import { approvalMs, type ObligedCall, required } from './call.ts'
import { confirmationExtension } from './messages.ts'
import type { ConfirmationParts } from './server.ts'

/** JSON. */
interface Round {
  /** Names the question. Nobody can know it who was not asked. */
  readonly id: string
  /** How often the call was made with it. */
  readonly count: number
  /** The answer counts until then. */
  readonly expires: number
  /** The tool as it was when it was asked about. */
  readonly definition: string
  readonly approved: boolean
}

/** The round that this call continues, unless the tool is another one now or the time is over: then it is asked anew. */
export function roundOf({ carried }: Exchange, call: ObligedCall, now: number): Round {
  const text = carried?.[confirmationExtension]
  const kept: unknown = text === undefined ? undefined : JSON.parse(text)
  if (isRecord(kept) && kept['definition'] === call.definition) {
    const round = kept as unknown as Round
    if (round.approved || round.expires > now) return round
  }
  return { ...fresh(call), expires: now + approvalMs }
}

export function keep(exchange: Exchange, round: Round): void {
  exchange.carried = { ...exchange.carried, [confirmationExtension]: JSON.stringify(round) }
}

/** The user has agreed to this call, by whatever way: it is not asked about again for as long as it goes on. */
export function keepApproved(exchange: Exchange, call: ObligedCall): void {
  keep(exchange, { ...fresh(call), approved: true })
}

/** Whether the call goes on that was agreed to before. */
export async function approvedRound(parts: ConfirmationParts, exchange: Exchange, call: ObligedCall): Promise<boolean> {
  const now = parts.clock.now()
  const round = roundOf(exchange, call, now)
  if (!round.approved) return false
  // Its state may wait that long for the answers to other questions.
  await useRound(parts, exchange, call, { ...round, expires: now + parts.askMs })
  return true
}

/** Counts one try, and keeps the next one. */
export async function useRound(parts: ConfirmationParts, exchange: Exchange, call: ObligedCall, round: Round): Promise<void> {
  const handle = { id: `confirmation/${round.id}/${round.count}`, expiresAt: round.expires, data: undefined }
  if (!(await (await parts.spending()).spend(handle)))
    throw required(call, 'that answer was used before', 'Call it again without requestState: the user is asked anew')
  keep(exchange, { ...round, approved: true, count: round.count + 1 })
}

function fresh({ definition }: ObligedCall): Round {
  return { id: crypto.randomUUID(), count: 0, expires: 0, definition, approved: false }
}
