/** Reads a subscription request: which events its caller may receive, for how long, and the answer. */
import { endOfLife, lifetimeOfSeconds } from '../../../core/clock.ts'
import type { Asker } from '../../../engine/exchange.ts'
import { accountOf, isNobody, ownerOf } from '../../../engine/owner.ts'
import { clip } from '../../../jsonrpc/limits.ts'
import type { Awaitable } from '../../../jsonrpc/message.ts'
import { permits } from '../../mcp/authorization/messages.ts'
import { type EventVisibility, permissionsPort } from '../permissions/messages.ts'
import type { EventEntry } from './entry.ts'
import { filterFault } from './filter.ts'
import type { WireSubscribed, WireSubscription } from './messages.ts'
import type { EventsParts } from './server.ts'
import type { SubscriptionCriteria } from './subscription.ts'

/** A granted subscription. */
export interface GrantedSubscription {
  readonly wish: SubscriptionCriteria
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
  parts: EventsParts,
  asker: Asker,
  owner: string,
  wire: WireSubscription,
): Promise<GrantedSubscription | { readonly denied: WireSubscribed }> {
  const id = wire.subscription_id ?? crypto.randomUUID()
  const tells = tellsTo(parts, asker)
  const supported = parts.events.snapshot.entries.map(({ name }) => name).filter(name => tells(name))
  const deny = (reason: string): { readonly denied: WireSubscribed } => ({ denied: denial(id, supported, reason) })
  if (id.length === 0 || id.length > idLength) return deny(`subscription_id must have 1 to ${idLength} characters`)
  if (wire.events.length > mostEvents) return deny(`events has ${wire.events.length} names. The limit is ${mostEvents}`)
  const { heard, refused, reasons, recheck, guarded } = await receivableEvents(parts, asker, wire.events)
  if (heard.length === 0) return deny(reasons.join('; ') || 'events must name at least one event')
  const schemas = heard.map(({ payload }) => payload?.json)
  const fault = filterFault(wire.filter, schemas)
  if (fault !== undefined) return deny(fault)
  const { ttl_seconds: ttl } = wire
  if (ttl !== undefined && ttl <= 0) return deny('ttl_seconds must be a number above 0')
  const { clock, settings } = parts
  // The server's maximum, or less if the client asked for less or its token expires earlier.
  const lifetime = lifetimeOfSeconds(ttl, { mostMs: settings.ttlMs })
  const expires = endOfLife(clock.now(), lifetime, asker.caller.principal?.expiresAt)
  return {
    wish: {
      id,
      owner,
      account: await accountOf(asker),
      events: new Set(heard.map(({ name }) => name)),
      filter: wire.filter,
      tells,
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

/** Whether an event type is visible to the caller; with a payload: whether this event is. Rules may change, so it is asked each time. */
export function tellsTo({ engine }: EventsParts, { caller }: Asker): SubscriptionCriteria['tells'] {
  return (name, payload) => engine().shows?.(caller, 'event', name, payload) !== false
}

const free: EventVisibility = { refusal: undefined, guarded: false }

/** Whether a caller may receive an event; `guarded`: the right may end before the caller disconnects. */
function visibility({ port }: EventsParts, asker: Asker, { name, facts: { scopes } }: EventEntry): Awaitable<EventVisibility> {
  if (scopes === undefined || scopes.length === 0) return free
  const judged = port(permissionsPort).judgeEvent(asker, name, scopes)
  if (judged !== undefined) return judged
  if (permits(asker.caller, scopes)) return free
  return { refusal: `The event "${name}" requires the scopes ${scopes.join(' ')}`, guarded: false }
}

/** The answer that denies a subscription. */
export function denial(id: string, supported: readonly string[], reason: string): WireSubscribed {
  return { subscription_id: id.slice(0, idLength), status: 'denied', supported_events: supported, reason }
}

/** The requested events that exist and are allowed, and the reasons for the others. */
export async function receivableEvents(parts: EventsParts, asker: Asker, names: readonly string[]) {
  const heard: EventEntry[] = []
  const refused: string[] = []
  const reasons: string[] = []
  let guarded = false
  const tells = tellsTo(parts, asker)
  for (const name of new Set(names)) {
    const entry = tells(name) ? parts.events.get(name) : undefined
    const hearing = entry === undefined ? undefined : await visibility(parts, asker, entry)
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
      if (entry !== undefined && (await visibility(parts, asker, entry)).refusal !== undefined) return false
    }
    return true
  }
  return { heard, refused, reasons, recheck, guarded }
}
