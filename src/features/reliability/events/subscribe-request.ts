/** Reads a subscription request: which events its caller may receive, for how long, and the answer. */
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

/** Whether a caller may receive an event. */
export interface Hearing {
  /** Why not; undefined if it may. */
  readonly refusal: string | undefined
  /** Whether the right may end before the caller disconnects. */
  readonly guarded: boolean
}

/** What reading a request needs. */
export interface SubscribeRequestParts {
  readonly events: Catalog<EventEntry>
  readonly may: (asker: Asker, entry: EventEntry) => Awaitable<Hearing>
  /** Whether the event is visible to the caller. */
  readonly shows: (asker: Asker, name: string, payload?: Params) => boolean
  readonly settings: { readonly ttlMs: number }
  readonly now: () => number
}

/** A granted subscription. */
export interface GrantedSubscription {
  readonly wish: Wish
  /** Milliseconds since the epoch. */
  readonly expires: number
  /** Checks again whether all of it is still allowed. */
  readonly recheck: () => Promise<boolean>
  /** Whether that may change during the subscription. */
  readonly guarded: boolean
  readonly response: WireSubscribed
}

const nobody = '~nobody-'

/** The owner key of a caller; each anonymous caller gets a unique one. */
export async function ownerIn(asker: Asker): Promise<string> {
  const owner = await ownerOf(asker)
  return isNobody(owner) ? `${nobody}${crypto.randomUUID()}` : owner
}

/** Whether the owner can be recognised again. */
export function isSomebody(owner: string): boolean {
  return !owner.startsWith(nobody)
}

const idLength = 200
const mostEvents = 100

/** Checks a request; returns the granted subscription or the denial. */
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

/** Evaluated for each event, because rules may change and depend on the payload. */
export function tellsTo({ shows }: Pick<SubscribeRequestParts, 'shows'>, asker: Asker): Wish['tells'] {
  return (name, payload) => shows(asker, name, payload)
}

/** The answer that denies a subscription. */
export function denial(id: string, supported: readonly string[], reason: string): WireSubscribed {
  return { subscription_id: id.slice(0, idLength), status: 'denied', supported_events: supported, reason }
}

/** The requested events that exist and are allowed, and the reasons for the others. */
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
      // Uses the current entry, because scopes may have changed.
      const entry = parts.events.get(name)
      if (entry !== undefined && (await parts.may(asker, entry)).refusal !== undefined) return false
    }
    return true
  }
  return { heard, refused, reasons, recheck, guarded }
}

/** The server's maximum, or less if the client asked for less or its token expires earlier. */
function expiryOf({ settings, now }: SubscribeRequestParts, { caller }: Asker, ttlSeconds: number | undefined): number {
  return endOfLife(now(), lifetimeOfSeconds(ttlSeconds, { mostMs: settings.ttlMs }), caller.principal?.expiresAt)
}
