/**
 * Fair use of one upstream by many clients: `CallTurns` lets clients take turns on a shared pipe once questions make their origin matter,
 * `UpstreamSlots` bounds the calls under way. Both queue waiting calls in the same way.
 */
import type { Cancel, Clock } from '../../core/clock.ts'
import { problem } from '../../core/problem.ts'
import { quoted } from '../../core/suggestion.ts'
import type { Exchange } from '../../engine/exchange.ts'
import { type ShareOptions, type Sharer, SlotShares, sharerOf } from '../shares.ts'
import type { UpstreamCall } from './upstream-call.ts'

/** How long a call waits for its turn. */
const waitMs = 30_000
/** How long a client may keep its turn with an unanswered question while others wait; halved after each time it did not answer. */
const holdMs = 60_000
/** The least time that this shrinks to. */
const leastMs = 1_000
/** How long missed answers are remembered. */
const rememberMs = 600_000

/** A queued call. */
interface Waiter {
  readonly owner: object
  readonly sharer: Sharer
  readonly go: () => void
}

interface WaitOptions {
  readonly clock: Clock
  /** The longest wait. */
  readonly ms: number
  /** Called when the call leaves the queue, for any reason. */
  left(): void
  /** The error after the longest wait. */
  refusal(): Error
}

/** Queues a call. Resolves when it is let in; rejects when the client cancels or the wait is too long. */
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

/** What turns need from the connection. */
interface TurnsPort {
  readonly upstream: string
  readonly clock: Clock
  /** How many calls of all clients may wait. */
  readonly waiting: number
  /** Ends this client's calls that wait for its answers. */
  giveWay(owner: object): void
}

/** A queue in which, after `begin`, only one client at a time has calls under way. */
export class CallTurns {
  readonly #port: TurnsPort
  /** Calls under way by client. Undefined until turns begin. */
  #busy: Map<object, number> | undefined = undefined
  readonly #waiting: Waiter[] = []
  readonly #places: SlotShares
  /** The client of the previous turn. */
  #last: Sharer | undefined = undefined
  /** The client of the current turn, if any. */
  #holder: Sharer | undefined = undefined
  /** Clients that lost their turn over an unanswered question: how often, and when last. */
  readonly #gaveWay = new Map<Sharer, { readonly times: number; readonly at: number }>()
  /** Cancels the timer that ends the current turn. */
  #holding: Cancel | undefined = undefined

  constructor(port: TurnsPort) {
    this.#port = port
    this.#places = new SlotShares(port.waiting)
  }

  /** Turns begin: from now on only one client at a time has calls under way. */
  begin(upstreamCalls: Iterable<UpstreamCall>): void {
    if (this.#busy !== undefined) return
    this.#busy = new Map()
    // Calls already under way count, also those of several clients.
    for (const { owner } of upstreamCalls) this.#busy.set(owner, (this.#busy.get(owner) ?? 0) + 1)
  }

  /** Undefined: the call may start now. */
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

  /** A call has ended. After the client's last one, the next client gets its turn. */
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
    // Prefer another client than the last one, so that a client with many waiting calls does not get several turns in a row.
    const next = this.#waiting.find(({ sharer }) => sharer !== this.#last) ?? this.#waiting[0]
    if (next === undefined) return
    this.#last = next.sharer
    this.#holder = next.sharer
    // All waiting calls of the next client are let in together.
    const turn = this.#waiting.filter(waiter => waiter.owner === next.owner)
    for (const { go } of turn) {
      go()
      this.#take(busy, next.owner)
    }
    if (this.#waiting.length > 0) this.#hold()
  }

  /** Counts a call. Returns undefined so that `enter` can return it. */
  #take(busy: Map<object, number>, owner: object): undefined {
    busy.set(owner, (busy.get(owner) ?? 0) + 1)
  }

  /** Starts the timer of the current turn, because another client waits. */
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

  /** Records that the current client did not answer in time; its next turn is shorter. */
  #note(): void {
    if (this.#holder === undefined) return
    const at = this.#port.clock.now()
    for (const [sharer, known] of this.#gaveWay) if (known.at + rememberMs <= at) this.#gaveWay.delete(sharer)
    this.#gaveWay.set(this.#holder, { times: this.#times(this.#holder) + 1, at })
  }

  /** How often this client recently lost its turn. */
  #times(sharer: Sharer | undefined): number {
    const known = sharer === undefined ? undefined : this.#gaveWay.get(sharer)
    return known === undefined || known.at + rememberMs <= this.#port.clock.now() ? 0 : known.times
  }

  /** Queues a call, within the client's share of the queue. */
  #wait(owner: object, sharer: Sharer, signal: AbortSignal): Promise<void> {
    if (!this.#places.take(sharer)) return Promise.reject(this.#full(sharer))
    this.#hold()
    return waitIn(this.#waiting, { owner, sharer }, signal, {
      clock: this.#port.clock,
      ms: waitMs,
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
      `${held} of your calls wait for the server ${quoted(upstream)}, which is your share of the limit (shares.waiting: ${this.#places.most} for all clients)`,
      {
        retryAfter: 5_000,
        suggestion: 'Wait until some of them have ended, or ask the operator of the gateway to raise shares.waiting',
        details: { upstream, held, limit: this.#places.most },
      },
    )
  }

  /** The refusal of a call whose turn did not come in time. */
  #refusal(): Error {
    const { upstream } = this.#port
    return problem(
      'SERVER_UNAVAILABLE',
      `The server ${quoted(upstream)} is busy with the call of another client. Because it asks questions, it serves one client at a time`,
      {
        retryAfter: 5_000,
        suggestion: 'Retry in a few seconds. A server that is connected over HTTP can serve several clients at once',
        details: { upstream },
      },
    )
  }
}

// Slots for calls at one upstream. A short burst is normal: a call beyond its client's share waits a moment for a slot and is refused only
// when none becomes free.

/** How long a call waits for a slot. */
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

  /** Undefined: the call has a slot. Rejects where none becomes free. */
  enter(call: Pick<Exchange, 'caller' | 'signal'>): Promise<void> | undefined {
    const sharer = sharerOf(call.caller)
    if (this.#taken.take(sharer)) return undefined
    // `call.signal` creates its AbortSignal on first access; most calls never need it.
    if (!this.#queued.take(sharer)) return Promise.reject(this.#refusal(sharer))
    return waitIn(this.#waiting, { owner: call, sharer }, call.signal, {
      clock: this.#clock,
      ms: momentMs,
      left: () => this.#queued.leave(sharer),
      refusal: () => this.#refusal(sharer),
    })
  }

  /** Frees a slot and gives it to the first waiting call that may have it. */
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
      return problem('SERVER_UNAVAILABLE', `The limit of ${most} concurrent calls ${where} is reached (shares.calls)`, {
        retryAfter: 1_000,
        suggestion: 'Retry in a few seconds. The operator of the gateway can raise shares.calls',
        details,
      })
    const message = `You have ${held} open calls ${where}, which is your share of the limit (shares.calls: ${most} for all clients)`
    return problem('RATE_LIMIT_EXCEEDED', message, {
      retryAfter: 1_000,
      suggestion: 'Wait until some of them have ended, or ask the operator of the gateway to raise shares.calls',
      details,
    })
  }
}
