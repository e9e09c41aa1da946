/**
 * One subscription: where in the feed it stands, and what of it goes to its reader. While it keeps up it is handed what comes;
 * where its reader takes no more it stays behind and reads on later, so that nothing piles up for it but the feed itself.
 */
import { cursorText, type Feed, type Occurrence } from '../../../core/feed/feed.ts'
import type { Tail } from '../../../core/feed/tail.ts'
import type { Params } from '../../../jsonrpc/message.ts'
import type { LogPosition } from '../../../stores/store.ts'
import type { EventData } from './entry.ts'
import { agrees } from './filter.ts'
import { type EndReason, eventBookmark, eventHappened, eventsTerminated, type WireEvent, wireSuggestion } from './messages.ts'
import type { EventOutlet } from './table.ts'

export interface Wish {
  readonly id: string
  /** The key of whoever it belongs to. */
  readonly owner: string
  /** Whose share of the table it takes. */
  readonly account: string
  readonly events: ReadonlySet<string>
  readonly filter: Params | undefined
  /** Whether one event is told to whoever it belongs to. */
  readonly tells: (name: string, payload: Params) => boolean
}

interface SubscriptionParts {
  readonly feed: Feed
  readonly tail: Tail
  readonly era: string
  readonly outlet: EventOutlet
  /** Whether its owner may still hear of it. */
  readonly recheck: () => Promise<boolean>
  /** That can end before the subscription does: then it is asked before each event. */
  readonly guarded: boolean
  readonly failed: (error: unknown) => void
  /** It has ended of itself. */
  readonly ended: (subscription: Subscription) => void
}

const pageSize = 100
/** How often in a row a reader may find that something is missing, before it is let go. */
const mostLosses = 8

/** One subscription and its way to its subscriber. */
export class Subscription {
  readonly wish: Wish
  readonly #parts: SubscriptionParts
  /** What lies up to here was looked at. */
  #position: LogPosition
  /** The cursor that its reader knows. */
  #told: LogPosition
  /** Something behind that cursor is missing, and its reader does not know it. */
  #lost: boolean
  #losses = 0
  /** It has seen all that the tail has told. */
  #live = false
  #pumping = false
  #guarded: boolean
  #over = false
  #onEnd: (() => void) | undefined = undefined

  /** `lost`: begins with something missing. */
  constructor(wish: Wish, parts: SubscriptionParts, from: LogPosition, lost: boolean) {
    this.wish = wish
    this.#parts = parts
    this.#position = from
    this.#told = from
    this.#lost = lost
    this.#guarded = parts.guarded
  }

  /** Where its reader would go on. */
  get cursor(): string {
    return cursorText(this.#parts.era, this.#told)
  }

  get outlet(): EventOutlet {
    return this.#parts.outlet
  }

  /** Something has come that it may want. */
  offer(occurrence: Occurrence): void {
    if (!this.#live || this.#over || occurrence.cursor <= this.#position) return
    if (!this.#guarded && this.#parts.outlet.ready) return this.#pass(occurrence)
    this.#live = false
    this.#position = occurrence.cursor - 1
    this.pump()
  }

  /** Something that it may have wanted was gone before anybody here could read it. */
  miss(): void {
    if (this.#live) this.#lost = true
  }

  /** Tells a reader that has heard nothing for long how far nothing was. */
  remind(end: LogPosition, distance: number): void {
    if (!this.#live || this.#over || end - this.#told < distance || !this.#parts.outlet.ready) return
    this.#position = end
    this.#bookmark()
  }

  /** Reads on as long as its reader takes it. */
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
        // It became free while this was ending.
        if (!this.#live && !this.#over && this.#parts.outlet.ready) this.pump()
      })
  }

  /** Where its owner has lost the right to it, it ends. */
  async verify(): Promise<void> {
    if (this.#guarded && !(await this.#parts.recheck())) this.terminate('revoked')
  }

  /** What it waits for asks for more than it did: from here on its right is looked at. */
  doubt(): void {
    this.#guarded = true
  }

  /** One notice, then silence. */
  terminate(reason: EndReason): void {
    if (this.#over) return
    const { outlet } = this.#parts
    outlet.send(eventsTerminated, {
      type: 'subscription_terminated',
      subscription_id: this.wish.id,
      reason,
      cursor: this.cursor,
    })
    this.close()
  }

  /** Silence at once. */
  close(): void {
    if (this.#over) return
    this.#over = true
    this.#parts.outlet.close()
    this.#parts.ended(this)
    this.#onEnd?.()
  }

  /** Calls back when it ends, at once if it has. */
  onEnd(fn: () => void): void {
    if (this.#over) fn()
    else this.#onEnd = fn
  }

  async #catchUp(): Promise<void> {
    const { outlet, tail, recheck } = this.#parts
    while (!this.#over) {
      if (!outlet.ready) return outlet.whenReady(() => this.pump())
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

  /** False: its reader takes no more for now. */
  #passAll(occurrences: readonly Occurrence[]): boolean {
    for (const occurrence of occurrences) {
      if (this.#over || !this.#parts.outlet.ready) return false
      this.#pass(occurrence)
    }
    return true
  }

  #pass(occurrence: Occurrence): void {
    this.#position = occurrence.cursor
    if (!wants(this.wish, occurrence)) return
    const { outlet, era } = this.#parts
    outlet.send(eventHappened, wireEvent(occurrence, this.wish.id, era, this.#told, this.#lost))
    this.#told = occurrence.cursor
    this.#lost = false
  }

  #bookmark(): void {
    const { outlet, era } = this.#parts
    outlet.send(eventBookmark, {
      subscription_id: this.wish.id,
      cursor: cursorText(era, this.#position),
      previous_cursor: cursorText(era, this.#told),
      ...(this.#lost ? { truncated: true } : {}),
    })
    this.#told = this.#position
    this.#lost = false
  }
}

/** Whether an occurrence is for a subscription, or a poll. */
export function wants({ events, filter, owner, tells }: Omit<Wish, 'id' | 'account'>, { name, data }: Occurrence): boolean {
  if (!events.has(name)) return false
  const { owner: only, payload } = data as EventData
  if (only !== undefined && only !== owner) return false
  return (filter === undefined || agrees(filter, payload)) && tells(name, payload)
}

type Common = Omit<WireEvent, 'type' | 'subscription_id' | 'previous_cursor'>

/** What all subscribers are told alike, made once. */
const common = new WeakMap<Occurrence, Common>()

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
