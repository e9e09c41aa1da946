/** An event that a server offers: what its author says of it, and how one that happens is written into the feed. */
import type { Catalog } from '../../../core/catalog.ts'
import { endOfLife, lifetimeOfSeconds } from '../../../core/clock.ts'
import { checkOptions, type KindsOf } from '../../../core/options.ts'
import { type Compiled, compileSchema, issueText, type Schema } from '../../../core/schema/index.ts'
import { checkSuggestion, type Suggestion } from '../../../core/suggestion.ts'
import type { Asker } from '../../../engine/exchange.ts'
import { accountOf, isNobody, ownerOf } from '../../../engine/owner.ts'
import { clip } from '../../../jsonrpc/limits.ts'
import { type Awaitable, isRecord, isThenable, type Params } from '../../../jsonrpc/message.ts'
import { filterFault } from './filter.ts'
import type { WireSubscribed, WireSubscription } from './messages.ts'
import type { Wish } from './subscription.ts'

/** What an author says of an event. */
export interface EventFacts<P = Params> {
  /** What happens, and what one may do about it. */
  readonly description?: string
  /** What is told of it: an object schema. What is emitted is checked against it, and filters may name its fields. */
  readonly payload?: Schema
  /** Who may hear of it. */
  readonly scopes?: readonly string[]
  /**
   * The resource that is another one when this happens, as a URI template over the payload (RFC 6570) or a function: those who
   * watch it are told so.
   */
  readonly resource?: string | ((payload: P) => string | readonly string[] | undefined)
}

/** What an author says of one occurrence. */
export interface EmitOptions {
  /** Emitting again under the same id within the time that events are kept does nothing. Default: a new one. */
  readonly id?: string
  /** The id of the only principal that shall hear of it. Default: all who may. */
  readonly to?: string
  /** What a client may want to do about it. Never done by itself. */
  readonly hint?: Suggestion
}

/** An event that a server offers. */
export interface EventEntry {
  readonly name: string
  readonly facts: EventFacts<never>
  readonly payload: Compiled | undefined
  /** URIs of the resources that it touches. */
  readonly touches: ((payload: Params) => readonly string[]) | undefined
}

/** As it lies in the feed. */
export interface EventData {
  readonly payload: Params
  readonly hint?: Suggestion
  /** The key of the one owner that hears of it. */
  readonly owner?: string
  readonly touches?: readonly string[]
  /** The id of the event that this one takes back. */
  readonly undoes?: string
}

const kinds: KindsOf<EventFacts> = { description: 'string', payload: 'any', scopes: 'list', resource: 'any' }
const emitKinds: KindsOf<EmitOptions> = { id: 'string', to: 'string', hint: 'object' }
const mostTouched = 100

/** `expand` makes a URI of a template. Throws where it is none. */
export type Expand = (template: string, payload: Params) => string

/** Checks what an author says of an event, and makes an entry of it. */
export function compileEvent(name: string, facts: EventFacts<never>, expand: Expand): EventEntry {
  if (!/^[A-Za-z0-9_.\-/]{1,128}$/.test(name))
    throw new TypeError(`"${clip(name)}" is no name of an event: use 1 to 128 of A-Z a-z 0-9 _ . - /`)
  checkOptions(`Event "${name}"`, facts, kinds)
  const payload =
    facts.payload === undefined
      ? undefined
      : compileSchema(facts.payload, { side: 'output', where: `payload of event "${name}"` })
  if (payload !== undefined && payload.json['type'] !== 'object')
    throw new TypeError(`The payload of event "${name}" must be an object schema, such as z.object({ … })`)
  return { name, facts, payload, touches: touching(name, facts.resource, expand) }
}

/** What was emitted, checked. Throws a TypeError that says what is wrong: it is the author's own. */
export function checkedPayload({ name, payload: schema }: EventEntry, payload: unknown): Awaitable<Params> {
  const found = schema === undefined ? ({ ok: true, value: payload } as const) : schema.validate(payload)
  const accept = (validation: Awaited<typeof found>): Params => {
    if (!validation.ok)
      throw new TypeError(`The payload of event "${name}" does not fit its schema: ${issueText(validation.issues)}`)
    if (!isRecord(validation.value)) throw new TypeError(`The payload of event "${name}" must be an object`)
    return validation.value
  }
  return isThenable(found) ? found.then(accept) : accept(found)
}

/** Throws where the options of an event make no sense. */
export function checkEmit(name: string, options: EmitOptions): void {
  checkOptions(`Event "${name}": emit`, options, emitKinds)
  const { id, hint } = options
  if (id !== undefined && (id.length === 0 || id.length > 200))
    throw new TypeError(`Event "${name}": an id has 1 to 200 characters, not ${id.length}`)
  if (hint !== undefined) checkSuggestion(hint, `Event "${name}": a hint`)
}

function touching(name: string, resource: EventFacts<never>['resource'], expand: Expand): EventEntry['touches'] {
  if (resource === undefined) return undefined
  if (typeof resource === 'string') {
    expand(resource, {})
    return payload => [expand(resource, payload)]
  }
  if (typeof resource !== 'function')
    throw new TypeError(`Event "${name}": resource is a URI template or a function that gives URIs`)
  const of = resource as (payload: Params) => string | readonly string[] | undefined
  return payload => {
    const found = of(payload)
    const all = found === undefined ? [] : typeof found === 'string' ? [found] : found
    if (all.length > mostTouched)
      throw new TypeError(`Event "${name}" touches ${all.length} resources; the most is ${mostTouched}`)
    return all
  }
}

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
