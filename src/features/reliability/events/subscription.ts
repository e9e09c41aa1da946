/**
 * One subscription: its position in the feed, and what is sent to its reader. A reader that keeps up gets events as they are published;
 * a slow one falls behind and reads from the feed later, so nothing is queued per subscription.
 */
import { cursorText, type Feed, type Occurrence } from '../../../core/feed/feed.ts'
import type { Tail } from '../../../core/feed/tail.ts'
import type { Params } from '../../../jsonrpc/message.ts'
import type { LogPosition } from '../../../stores/store.ts'
import { wireSuggestion } from '../intent/messages.ts'
import type { EventData } from './entry.ts'
import { matchesFilter } from './filter.ts'
import { eventBookmark, eventHappened, eventsTerminated, type WireEvent, type WireTerminated } from './messages.ts'
import type { EventReceiver } from './open-subscriptions.ts'

/** What a subscriber wants to receive. */
export interface SubscriptionCriteria {
  readonly id: string
  /** The owner key. */
  readonly owner: string
  /** The account whose share of the limit it uses. */
  readonly account: string
  readonly events: ReadonlySet<string>
  readonly filter: Params | undefined
  /** Whether an event type is visible to the owner; with a payload: whether this event is. */
  readonly tells: (name: string, payload?: Params) => boolean
}

interface SubscriptionParts {
  readonly feed: Feed
  readonly tail: Tail
  /** Identifies the feed; part of cursors. */
  readonly era: string
  readonly receiver: EventReceiver
  /** Whether the owner may still receive it. */
  readonly recheck: () => Promise<boolean>
  /** That may change during the subscription, so it is checked before each event. */
  readonly guarded: boolean
  readonly failed: (error: unknown) => void
  /** Called when the subscription ends by itself. */
  readonly ended: (subscription: Subscription) => void
}

const pageSize = 100
/** How often in a row events may be lost before a slow reader is disconnected. */
const mostLosses = 8

/** One subscription and its reader. */
export class Subscription {
  readonly wish: SubscriptionCriteria
  readonly #parts: SubscriptionParts
  /** Everything up to here was examined. */
  #position: LogPosition
  /** The cursor that the reader knows. */
  #told: LogPosition
  /** Events after that cursor are lost, and the reader does not know yet. */
  #lost: boolean
  #losses = 0
  /** It has caught up with the tail. */
  #live = false
  #pumping = false
  #guarded: boolean
  #over = false
  #onEnd: (() => void) | undefined = undefined

  /** `lost`: starts with missing events. */
  constructor(wish: SubscriptionCriteria, parts: SubscriptionParts, from: LogPosition, lost: boolean) {
    this.wish = wish
    this.#parts = parts
    this.#position = from
    this.#told = from
    this.#lost = lost
    this.#guarded = parts.guarded
  }

  /** Where the reader would resume. */
  get cursor(): string {
    return cursorText(this.#parts.era, this.#told)
  }

  get receiver(): EventReceiver {
    return this.#parts.receiver
  }

  /** Offers a new event. A reader that is busy or must be rechecked falls back to catching up. */
  offer(occurrence: Occurrence): void {
    if (!this.#live || this.#over || occurrence.cursor <= this.#position) return
    if (!this.#guarded && this.#parts.receiver.ready) return this.#pass(occurrence)
    this.#live = false
    this.#position = occurrence.cursor - 1
    this.pump()
  }

  /** Events were lost before this process could read them. */
  miss(): void {
    if (this.#live) this.#lost = true
  }

  /** Sends a bookmark if the reader has received nothing for long. */
  remind(end: LogPosition, distance: number): void {
    if (!this.#live || this.#over || end - this.#told < distance || !this.#parts.receiver.ready) return
    this.#position = end
    this.#bookmark()
  }

  /** Catches up with the feed while the reader is ready. */
  pump(): void {
    if (this.#pumping || this.#over || this.#live) return
    this.#pumping = true
    this.#catchUp()
      .catch(error => {
        this.#parts.failed(error)
        this.terminate('overload')
      })
      .finally(() => {
        this.#pumping = false
        // The reader became ready in the meantime.
        if (!this.#live && !this.#over && this.#parts.receiver.ready) this.pump()
      })
  }

  /** Ends the subscription if the right is gone. */
  async verify(): Promise<void> {
    if (this.#guarded && !(await this.#parts.recheck())) this.terminate('revoked')
  }

  /** The event now needs other scopes; recheck from now on. */
  doubt(): void {
    this.#guarded = true
  }

  /** Sends a final notification, then ends. */
  terminate(reason: WireTerminated['reason']): void {
    if (this.#over) return
    const { receiver } = this.#parts
    receiver.send(eventsTerminated, {
      type: 'subscription_terminated',
      subscription_id: this.wish.id,
      reason,
      cursor: this.cursor,
    })
    this.close()
  }

  /** Ends without a notification. */
  close(): void {
    if (this.#over) return
    this.#over = true
    this.#parts.receiver.close()
    this.#parts.ended(this)
    this.#onEnd?.()
  }

  /** Calls back when it ends, or at once if it has. */
  onEnd(fn: () => void): void {
    if (this.#over) fn()
    else this.#onEnd = fn
  }

  // Reads from the tail's buffer if possible, else from the store.
  async #catchUp(): Promise<void> {
    const { receiver, tail, recheck } = this.#parts
    while (!this.#over) {
      if (!receiver.ready) return receiver.whenReady(() => this.pump())
      if (this.#guarded && !(await recheck())) return this.terminate('revoked')
      const held = tail.after(this.#position, pageSize)
      if (held === undefined) await this.#readPage()
      else if (!this.#passAll(held)) continue
      else if (held.length < pageSize) this.#position = Math.max(this.#position, tail.end)
      if (this.#position < tail.end || this.#over) continue
      this.#live = true
      this.#losses = 0
      if (this.#lost) this.#bookmark()
      return
    }
  }

  async #readPage(): Promise<void> {
    const page = await this.#parts.feed.read(this.#position, { limit: pageSize })
    if (this.#over) return
    if (page.truncated) {
      this.#lost = true
      if (++this.#losses > mostLosses) return this.terminate('overload')
    }
    if (this.#passAll(page.occurrences)) this.#position = Math.max(this.#position, page.cursor)
  }

  /** False if the reader is not ready for more. */
  #passAll(occurrences: readonly Occurrence[]): boolean {
    for (const occurrence of occurrences) {
      if (this.#over || !this.#parts.receiver.ready) return false
      this.#pass(occurrence)
    }
    return true
  }

  #pass(occurrence: Occurrence): void {
    this.#position = occurrence.cursor
    if (!wants(this.wish, occurrence)) return
    const { receiver, era } = this.#parts
    receiver.send(eventHappened, wireEvent(occurrence, this.wish.id, era, this.#told, this.#lost))
    this.#told = occurrence.cursor
    this.#lost = false
  }

  #bookmark(): void {
    const { receiver, era } = this.#parts
    receiver.send(eventBookmark, {
      subscription_id: this.wish.id,
      cursor: cursorText(era, this.#position),
      previous_cursor: cursorText(era, this.#told),
      ...(this.#lost ? { truncated: true } : {}),
    })
    this.#told = this.#position
    this.#lost = false
  }
}

/** Whether an event matches a subscription or poll. */
export function wants(
  { events, filter, owner, tells }: Omit<SubscriptionCriteria, 'id' | 'account'>,
  { name, data }: Occurrence,
): boolean {
  if (!events.has(name)) return false
  const { owner: only, payload } = data as EventData
  if (only !== undefined && only !== owner) return false
  return (filter === undefined || matchesFilter(filter, payload)) && tells(name, payload)
}

type Common = Omit<WireEvent, 'type' | 'subscription_id' | 'previous_cursor'>

/** Cache of the members that are equal for all subscribers. */
const common = new WeakMap<Occurrence, Common>()

/** Writes an event for one subscription. */
export function wireEvent(occurrence: Occurrence, id: string, era: string, after: LogPosition, truncated: boolean): WireEvent {
  let shared = common.get(occurrence)
  if (shared === undefined) {
    shared = commonOf(occurrence, era)
    common.set(occurrence, shared)
  }
  const place = { type: 'event', subscription_id: id, ...shared, previous_cursor: cursorText(era, after) } as const
  return truncated ? { ...place, truncated } : place
}

function commonOf({ id, name, at, data, cursor }: Occurrence, era: string): Common {
  const { payload, hint, undoes } = data as EventData
  return {
    event: name,
    timestamp: new Date(at).toISOString(),
    payload,
    ...(hint === undefined ? {} : { action_hint: wireSuggestion(hint) }),
    ...(undoes === undefined ? {} : { compensates: undoes }),
    event_id: id,
    cursor: cursorText(era, cursor),
  }
}
