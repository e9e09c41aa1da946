/** Callers that take turns on a pipe on which nothing says whose a question is. Until that matters nobody waits. */
import type { Cancel, Clock } from '../../core/clock.ts'
import { problem } from '../../core/problem.ts'
import { quoted } from '../../core/suggestion.ts'
import type { Exchange } from '../../engine/exchange.ts'
import { type ShareOptions, type Sharer, SlotShares, sharerOf } from '../shares.ts'
import type { UpstreamCall } from './upstream-call.ts'

/** How long a caller waits for its turn. */
const patienceMs = 30_000
/** How long one may keep its turn while it is asked something and others wait; half of it after each time that it did not answer. */
const holdMs = 60_000
const leastMs = 1_000
/** So long that is remembered. */
const rememberMs = 600_000

/** A call that waits to be let in. */
interface Waiter {
  readonly owner: object
  readonly sharer: Sharer
  readonly go: () => void
}

interface WaitOptions {
  readonly clock: Clock
  /** How long it waits at most. */
  readonly ms: number
  /** It waits no longer, whatever the reason. */
  left(): void
  /** Why it was not let in within that time. */
  refusal(): Error
}

/** Settles when it is let in; rejects when its caller cancels it, and when it takes too long. */
function waitIn(queue: Waiter[], who: Omit<Waiter, 'go'>, signal: AbortSignal, options: WaitOptions): Promise<void> {
  return new Promise((resolve, reject) => {
    const end = (settle: () => void) => (): void => {
      queue.splice(queue.indexOf(waiter), 1)
      options.left()
      cancel()
      signal.removeEventListener('abort', aborted)
      settle()
    }
    const aborted = end(() => reject(signal.reason))
    const waiter: Waiter = { ...who, go: end(resolve) }
    const late = end(() => reject(options.refusal()))
    const cancel = options.clock.setTimeout(late, options.ms, true)
    queue.push(waiter)
    signal.addEventListener('abort', aborted, { once: true })
  })
}

interface TurnsPort {
  readonly upstream: string
  readonly clock: Clock
  /** Calls that may wait, of all clients. */
  readonly waiting: number
  /** Ends calls of this caller that wait for its answers. */
  giveWay(owner: object): void
}

/** A queue in which one caller at a time has calls under way, once `begin` was called. */
export class CallTurns {
  readonly #port: TurnsPort
  /** By caller, its calls under way. Undefined: nobody takes turns here. */
  #busy: Map<object, number> | undefined = undefined
  readonly #waiting: Waiter[] = []
  readonly #places: SlotShares
  /** Whose turn it was last. */
  #last: Sharer | undefined = undefined
  /** Whose turn it is, where it is one's. */
  #holder: Sharer | undefined = undefined
  /** Who had to give way because of a question that was not answered: how often, and when last. */
  readonly #gaveWay = new Map<Sharer, { readonly times: number; readonly at: number }>()
  /** Ends the turn of somebody who keeps it for too long. */
  #holding: Cancel | undefined = undefined

  constructor(port: TurnsPort) {
    this.#port = port
    this.#places = new SlotShares(port.waiting)
  }

  /** From now on only one caller at a time has calls under way. */
  begin(upstreamCalls: Iterable<UpstreamCall>): void {
    if (this.#busy !== undefined) return
    this.#busy = new Map()
    for (const { owner } of upstreamCalls) this.#busy.set(owner, (this.#busy.get(owner) ?? 0) + 1)
  }

  /** Undefined: it is this caller's turn. */
  enter(call: Pick<Exchange, 'conversation' | 'caller' | 'signal'>): Promise<void> | undefined {
    const busy = this.#busy
    if (busy === undefined) return undefined
    const { conversation: owner } = call
    const sharer = sharerOf(call.caller)
    if (this.#waiting.length === 0 && (busy.size === 0 || (busy.size === 1 && busy.has(owner)))) {
      this.#holder = sharer
      return this.#take(busy, owner)
    }
    return this.#wait(owner, sharer, call.signal)
  }

  /** A call of this caller has ended. With its last one, the next caller gets its turn. */
  leave(owner: object): void {
    const busy = this.#busy
    if (busy === undefined) return
    const count = (busy.get(owner) ?? 1) - 1
    if (count > 0) busy.set(owner, count)
    else busy.delete(owner)
    if (busy.size > 0) return
    this.#holding?.()
    this.#holding = undefined
    this.#holder = undefined
    // Another client first, where one waits: whoever waits with many calls gets one turn like the others.
    const next = this.#waiting.find(({ sharer }) => sharer !== this.#last) ?? this.#waiting[0]
    if (next === undefined) return
    this.#last = next.sharer
    this.#holder = next.sharer
    // All that the next caller waits with is let in together.
    const turn = this.#waiting.filter(waiter => waiter.owner === next.owner)
    for (const { go } of turn) {
      go()
      this.#take(busy, next.owner)
    }
    if (this.#waiting.length > 0) this.#hold()
  }

  #take(busy: Map<object, number>, owner: object): undefined {
    busy.set(owner, (busy.get(owner) ?? 0) + 1)
  }

  /** Somebody waits: whose turn it is has so long to answer what it is asked. */
  #hold(): void {
    this.#holding ??= this.#port.clock.setTimeout(
      () => {
        this.#holding = undefined
        if (this.#waiting.length === 0) return
        this.#note()
        for (const owner of [...(this.#busy?.keys() ?? [])]) this.#port.giveWay(owner)
      },
      Math.max(leastMs, holdMs / 2 ** this.#times(this.#holder)),
      true,
    )
  }

  /** Whoever leaves questions unanswered again and again keeps the others waiting for less and less. */
  #note(): void {
    if (this.#holder === undefined) return
    const at = this.#port.clock.now()
    for (const [sharer, known] of this.#gaveWay) if (known.at + rememberMs <= at) this.#gaveWay.delete(sharer)
    this.#gaveWay.set(this.#holder, { times: this.#times(this.#holder) + 1, at })
  }

  /** How often somebody had to give way lately. */
  #times(sharer: Sharer | undefined): number {
    const known = sharer === undefined ? undefined : this.#gaveWay.get(sharer)
    return known === undefined || known.at + rememberMs <= this.#port.clock.now() ? 0 : known.times
  }

  #wait(owner: object, sharer: Sharer, signal: AbortSignal): Promise<void> {
    if (!this.#places.take(sharer)) return Promise.reject(this.#full(sharer))
    this.#hold()
    return waitIn(this.#waiting, { owner, sharer }, signal, {
      clock: this.#port.clock,
      ms: patienceMs,
      left: () => this.#places.leave(sharer),
      refusal: () => this.#refusal(),
    })
  }

  /** The refusal of a client that has its share of the queue. */
  #full(sharer: Sharer): Error {
    const { upstream } = this.#port
    const held = this.#places.of(sharer)
    return problem(
      'RATE_LIMIT_EXCEEDED',
      `${held} of your calls wait for their turn at the server ${quoted(upstream)}, which is your share: ${this.#places.most} may wait in all (shares.waiting)`,
      {
        retryAfter: 5_000,
        suggestion: 'Wait until some of them are done, or ask whoever runs the gateway to raise shares.waiting',
        details: { upstream, held, limit: this.#places.most },
      },
    )
  }

  /** The refusal of a call whose turn did not come in time. */
  #refusal(): Error {
    const { upstream } = this.#port
    return problem(
      'SERVER_UNAVAILABLE',
      `The server ${quoted(upstream)} asks its callers questions, and works for one caller at a time`,
      {
        retryAfter: 5_000,
        suggestion: 'Try again when the other caller has answered; over HTTP the server could serve both at once',
        details: { upstream },
      },
    )
  }
}

// Places for calls at one server, shared by clients. Many quick calls at once are no flood: one that goes beyond its client's share
// waits a moment for a place, and is refused when none becomes free.

/** How long a call waits for a place. */
const momentMs = 1_000

/** The slots for calls at one upstream, with a short queue for those that find none free. */
export class UpstreamSlots {
  readonly #upstream: string
  readonly #clock: Clock
  readonly #taken: SlotShares
  readonly #queued: SlotShares
  readonly #waiting: Waiter[] = []

  constructor(upstream: string, clock: Clock, { calls, waiting }: Required<ShareOptions>) {
    this.#upstream = upstream
    this.#clock = clock
    this.#taken = new SlotShares(calls)
    this.#queued = new SlotShares(waiting)
  }

  /** Undefined: it has its place. Rejects where there is none for it. */
  enter(call: Pick<Exchange, 'caller' | 'signal'>): Promise<void> | undefined {
    const sharer = sharerOf(call.caller)
    if (this.#taken.take(sharer)) return undefined
    // A signal is made when it is first asked for: most calls need none.
    if (!this.#queued.take(sharer)) return Promise.reject(this.#refusal(sharer))
    return waitIn(this.#waiting, { owner: call, sharer }, call.signal, {
      clock: this.#clock,
      ms: momentMs,
      left: () => this.#queued.leave(sharer),
      refusal: () => this.#refusal(sharer),
    })
  }

  /** Frees a slot for the first that waits and may have it. */
  leave(sharer: Sharer): void {
    this.#taken.leave(sharer)
    if (this.#waiting.length === 0) return
    const next = this.#waiting.find(waiter => this.#taken.take(waiter.sharer))
    next?.go()
  }

  /** Says whether the client has its share, or all slots are taken by others. */
  #refusal(sharer: Sharer): Error {
    const { most } = this.#taken
    const held = this.#taken.of(sharer)
    const where = `at the server ${quoted(this.#upstream)}`
    const details = { upstream: this.#upstream, held, limit: most }
    if (held === 0)
      return problem('SERVER_UNAVAILABLE', `All ${most} places for calls ${where} are taken (shares.calls)`, {
        retryAfter: 1_000,
        suggestion: 'Try again soon; whoever runs the gateway can raise shares.calls',
        details,
      })
    const message = `You have ${held} calls under way ${where}, which is your share: all clients together may have ${most} (shares.calls)`
    return problem('RATE_LIMIT_EXCEEDED', message, {
      retryAfter: 1_000,
      suggestion: 'Wait until some of them have ended, or ask whoever runs the gateway to raise shares.calls',
      details,
    })
  }
}
