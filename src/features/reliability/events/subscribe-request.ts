/** A request to subscribe to events: what its caller may hear of it, for how long, and what it is answered. */
import type { Catalog } from '../../../core/catalog.ts'
import { endOfLife, lifetimeOfSeconds } from '../../../core/clock.ts'
import type { Asker } from '../../../engine/exchange.ts'
import { accountOf, isNobody, ownerOf } from '../../../engine/owner.ts'
import { clip } from '../../../jsonrpc/limits.ts'
import type { Awaitable, Params } from '../../../jsonrpc/message.ts'
import type { EventEntry } from './entry.ts'
import { filterFault } from './filter.ts'
import type { WireSubscribed, WireSubscription } from './messages.ts'
import type { Wish } from './subscription.ts'

/** Whether a caller may hear of an event. */
export interface Hearing {
  /** Why not; undefined where it may. */
  readonly refusal: string | undefined
  /** The right may end before the caller leaves. */
  readonly guarded: boolean
}

export interface SubscribeRequestParts {
  readonly events: Catalog<EventEntry>
  readonly may: (asker: Asker, entry: EventEntry) => Awaitable<Hearing>
  /** To whom it is not shown, for him it is not there. */
  readonly shows: (asker: Asker, name: string, payload?: Params) => boolean
  readonly settings: { readonly ttlMs: number }
  readonly now: () => number
}

export interface GrantedSubscription {
  readonly wish: Wish
  /** Milliseconds since the epoch. */
  readonly expires: number
  /** Whether all of it may still be heard. */
  readonly recheck: () => Promise<boolean>
  /** That can change before its owner leaves. */
  readonly guarded: boolean
  readonly response: WireSubscribed
}

const nobody = '~nobody-'

/** The key of a caller; whoever is not known is like nobody else. */
export async function ownerIn(asker: Asker): Promise<string> {
  const owner = await ownerOf(asker)
  return isNobody(owner) ? `${nobody}${crypto.randomUUID()}` : owner
}

/** Whether a key is of somebody who will be known again. */
export function isSomebody(owner: string): boolean {
  return !owner.startsWith(nobody)
}

const idLength = 200
const mostEvents = 100

export async function readSubscribeRequest(
  parts: SubscribeRequestParts,
  asker: Asker,
  owner: string,
  wire: WireSubscription,
): Promise<GrantedSubscription | { readonly denied: WireSubscribed }> {
  const id = wire.subscription_id ?? crypto.randomUUID()
  const supported = parts.events.snapshot.entries.map(({ name }) => name).filter(name => parts.shows(asker, name))
  const deny = (reason: string): { readonly denied: WireSubscribed } => ({ denied: denial(id, supported, reason) })
  if (id.length === 0 || id.length > idLength) return deny(`subscription_id: give 1 to ${idLength} characters`)
  if (wire.events.length > mostEvents) return deny(`events: ${wire.events.length} are named; the limit is ${mostEvents}`)
  const { heard, refused, reasons, recheck, guarded } = await hearable(parts, asker, wire.events)
  if (heard.length === 0) return deny(reasons.join('; ') || 'events: name at least one')
  const fault =
    wire.filter === undefined
      ? undefined
      : filterFault(
          wire.filter,
          heard.map(({ payload }) => payload?.json),
        )
  if (fault !== undefined) return deny(fault)
  const { ttl_seconds: ttl } = wire
  if (ttl !== undefined && ttl <= 0) return deny('ttl_seconds: give a number above 0')
  const expires = expiryOf(parts, asker, ttl)
  return {
    wish: {
      id,
      owner,
      account: await accountOf(asker),
      events: new Set(heard.map(({ name }) => name)),
      filter: wire.filter,
      tells: tellsTo(parts, asker),
    },
    recheck,
    guarded,
    expires,
    response: {
      subscription_id: id,
      status: 'active',
      expires_at: new Date(expires).toISOString(),
      supported_events: supported,
      ...(refused.length === 0 ? {} : { unsupported_events: refused, reason: reasons.join('; ') }),
    },
  }
}

/** Looked at for each event, not once: rules may be others by then, and one event may be told where another is not. */
export function tellsTo({ shows }: Pick<SubscribeRequestParts, 'shows'>, asker: Asker): Wish['tells'] {
  return (name, payload) => shows(asker, name, payload)
}

export function denial(id: string, supported: readonly string[], reason: string): WireSubscribed {
  return { subscription_id: id.slice(0, idLength), status: 'denied', supported_events: supported, reason }
}

/** Which of the events there are and may be heard, and why the others are not. */
export async function hearable(parts: SubscribeRequestParts, asker: Asker, names: readonly string[]) {
  const heard: EventEntry[] = []
  const refused: string[] = []
  const reasons: string[] = []
  let guarded = false
  for (const name of new Set(names)) {
    const entry = parts.shows(asker, name) ? parts.events.get(name) : undefined
    const hearing = entry === undefined ? undefined : await parts.may(asker, entry)
    if (entry !== undefined && hearing?.refusal === undefined) {
      heard.push(entry)
      guarded ||= hearing?.guarded === true
      continue
    }
    refused.push(clip(name))
    reasons.push(hearing?.refusal ?? `There is no event "${clip(name)}"`)
  }
  const recheck = async (): Promise<boolean> => {
    for (const { name } of heard) {
      // As it is now: its scopes may be others than they were. One that is gone tells nobody anything.
      const entry = parts.events.get(name)
      if (entry !== undefined && (await parts.may(asker, entry)).refusal !== undefined) return false
    }
    return true
  }
  return { heard, refused, reasons, recheck, guarded }
}

/** The server's longest, or less where less was asked for or the caller's proof of identity ends before. */
function expiryOf({ settings, now }: SubscribeRequestParts, { caller }: Asker, ttlSeconds: number | undefined): number {
  return endOfLife(now(), lifetimeOfSeconds(ttlSeconds, { mostMs: settings.ttlMs }), caller.principal?.expiresAt)
}
