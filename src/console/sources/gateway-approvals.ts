/** The approvals of a gateway as entries of the one queue: read from its store, and followed while somebody looks. */
import { type Clock, pauseFor } from '../../core/clock.ts'
import type { Gateway } from '../../gateway/gateway.ts'
import type { Approval as GatewayApproval } from '../../gateway/trust/approvals.ts'
import { type ApprovalSource, approvalDigestOf } from '../approvals.ts'
import type { Answered, Approval } from '../contract/approvals.ts'

/** Payloads up to this length are listed; longer ones are read one by one. */
export const listedPayload = 65_536
const mostDigests = 4_000
const mostSeen = 1_000
/** How often the queue is read again, in case a hint was lost. */
const lookMs = 5_000
/** Changes within this time are one. */
const gatherMs = 50

/** What is remembered of an approval whose payload is long. */
type Known = Pick<Approval, 'digest' | 'length' | 'refuseOnly' | 'since'>

type Facts = Omit<Approval, 'digest' | 'length' | 'since' | 'until' | 'lasts'>

/** The approvals of a gateway. */
export class GatewayApprovals implements ApprovalSource {
  readonly #gateway: Gateway
  /** By id: an id stands for one exact call, definition or launch. */
  readonly #digests = new Map<string, Known>()
  readonly #clock: Clock
  /** Those that somebody was shown, or that waited at the last look; until a look finds that they are answered. */
  readonly #seen = new Map<string, Approval>()

  constructor(gateway: Gateway, clock: Clock) {
    this.#gateway = gateway
    this.#clock = clock
  }

  async list(): Promise<readonly Approval[]> {
    const found: Approval[] = []
    for (const each of await this.#gateway.approvals()) {
      const known = this.#digests.get(each.id)
      const isLong = each.kind === 'call' && each.arguments === undefined
      const whole = known === undefined && isLong ? await this.#gateway.approval(each.id) : each
      // It was answered in the meantime.
      if (whole === undefined) continue
      const approval = await this.#approval(whole, known)
      found.push(isLong ? withoutPayload(approval) : shortened(approval))
    }
    for (const each of found) this.#see(each)
    return found
  }

  async find(id: string): Promise<Approval | undefined> {
    const found = await this.#gateway.approval(id)
    if (found === undefined) return undefined
    const approval = await this.#approval(found)
    this.#see(shortened(approval))
    return approval
  }

  answer(id: string, { yes, reason }: { readonly yes: boolean; readonly reason?: string }, by: string): Promise<boolean> {
    return yes ? this.#gateway.approve(id, by, reason) : this.#gateway.refuse(id, by, reason)
  }

  async answered(id: string): Promise<Answered | undefined> {
    const found = await this.#gateway.answered(id)
    return found && { id, ...found }
  }

  last(id: string): Approval | undefined {
    return this.#seen.get(id)
  }

  /** All that waits, and what waited before and does no more. */
  async look(): Promise<{ readonly now: readonly Approval[]; readonly over: readonly Approval[] }> {
    // What is seen for the first time while the list is read may be missing there, and waits all the same.
    const before = [...this.#seen.values()]
    const now = await this.list()
    const waiting = new Set(now.map(({ id }) => id))
    return { now, over: before.filter(({ id }) => !waiting.has(id)) }
  }

  /** It was told that this one is over. */
  forget(id: string): void {
    this.#seen.delete(id)
  }

  #see(approval: Approval): void {
    this.#seen.set(approval.id, approval)
    const [oldest] = this.#seen.keys()
    if (this.#seen.size > mostSeen && oldest !== undefined) this.#seen.delete(oldest)
  }

  /** Calls back when the queue may have changed, until the signal is aborted. */
  async follow(clock: Clock, signal: AbortSignal, look: () => Promise<void>): Promise<void> {
    const hints = this.#gateway.approvalChanges(signal)[Symbol.asyncIterator]()
    let hint = hints.next()
    while (!signal.aborted) {
      await look()
      const heard = await Promise.race([hint, pauseFor(clock, lookMs, signal).catch(() => undefined)])
      if (heard === undefined) continue
      if (heard.done === true) return
      hint = hints.next()
      await pauseFor(clock, gatherMs, signal).catch(() => undefined)
    }
    await hints.return?.()
  }

  async #approval(given: GatewayApproval, known?: Known): Promise<Approval> {
    const { facts, since = this.#digests.get(given.id)?.since ?? this.#clock.now(), until } = factsOf(given)
    const { refuseOnly, ...rest } = facts
    const sum: Known = known ?? {
      digest: await approvalDigestOf(facts),
      length: given.kind === 'call' ? given.length : JSON.stringify(facts.payload ?? null).length,
      since,
      ...(refuseOnly !== undefined && { refuseOnly }),
    }
    if (this.#digests.size >= mostDigests) this.#digests.clear()
    this.#digests.set(given.id, sum)
    return { ...rest, ...sum, ...(until !== undefined && { until }), lasts: ['once'] }
  }
}

/** A long payload is read by its id alone. */
export function shortened(approval: Approval): Approval {
  const { before, after } = approval
  const length = approval.length + (JSON.stringify(before ?? null).length + JSON.stringify(after ?? null).length)
  return length > listedPayload ? withoutPayload(approval) : approval
}

function withoutPayload({ payload: _, before: __, after: ___, ...rest }: Approval): Approval {
  return rest
}

/** The same approval for those who may not see arguments and definitions. The question and the differences repeat parts of them. */
export function reducedApproval(approval: Approval): Approval {
  const { changes: _, scopes: __, flaw: ___, wider: ____, ...rest } = withoutPayload(approval)
  const about = approval.tool === undefined ? approval.server : `${approval.tool} of ${approval.server}`
  return { ...rest, text: `${whats[approval.kind]} ${about} waits for an answer.` }
}

const whats: Readonly<Record<Approval['kind'], string>> = {
  call: 'A call of',
  tool: 'The definition of',
  launch: 'The launch of',
  form: 'A form of',
  page: 'A page of',
  sampling: 'An inference for',
  set: 'A feature set of',
  access: 'A request of',
  config: 'A change of',
}

function factsOf(given: GatewayApproval): { readonly facts: Facts; readonly since?: number; readonly until?: number } {
  const { id, kind, message: text } = given
  if (kind === 'call') {
    const { rule = '', server = '', tool = given.tool, client, subject } = given.about ?? {}
    const who = subject ?? given.principal
    const facts: Facts = {
      ...{ id, kind, server, tool, text, rule, risk: given.risk },
      ...(given.arguments === undefined
        ? { refuseOnly: 'Its arguments are no longer in the store.' }
        : { payload: given.arguments }),
      ...(client !== undefined && { client }),
      ...(who !== undefined && { subject: who }),
    }
    return { facts, since: given.askedAt, until: given.expires }
  }
  const about = { id, kind, server: given.upstream, text, rule: 'pins', risk: 'unknown', changes: given.changes } as const
  if (kind === 'launch') return { facts: { ...about, payload: given.changes } }
  const { tool, definition, before, since } = given
  const facts = { ...about, tool, payload: definition, after: definition, ...(before !== undefined && { before }) }
  return { facts, since }
}
