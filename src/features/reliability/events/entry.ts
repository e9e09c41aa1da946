/**
 * An event as its author declares and emits it: facts, checks, the entry that the server keeps, and the order of publishing. Separate
 * from the runtime, because events are declared before it is loaded.
 */

import { ownerKey } from '../../../core/accounts.ts'
import type { Trace } from '../../../core/log.ts'
import { checkOptions, type KindsOf } from '../../../core/options.ts'
import { type CompiledSchema, compileSchema, issueText, type Schema } from '../../../core/schema/index.ts'
import { checkSuggestion, type Suggestion } from '../../../core/suggestion.ts'
import type { Next } from '../../../engine/stages.ts'
import { clip } from '../../../jsonrpc/limits.ts'
import { type Awaitable, given, isRecord, isThenable, type Params } from '../../../jsonrpc/message.ts'
import type { UnitStep } from '../transactions/messages.ts'
import type { EventsRuntime } from './runtime.ts'
import type { EventsParts } from './server.ts'

/** What an author declares about an event. */
export interface EventFacts<P = Params> {
  /** What happened, and what a client can do about it. Default: none. */
  readonly description?: string
  /** The schema of the payload, an object. Emitted payloads are checked against it, and filters may use its fields. */
  readonly payload?: Schema
  /** The scopes that a subscriber needs. Default: none. */
  readonly scopes?: readonly string[]
  /**
   * The resource that changes with this event, as a URI template over the payload (RFC 6570) or a function. Its subscribers are
   * notified. Default: none.
   */
  readonly resource?: string | ((payload: P) => string | readonly string[] | undefined)
}

/** Options of `emit`. */
export interface EmitOptions {
  /** Emitting again with the same id has no effect while events are kept. Default: a new id. */
  readonly id?: string
  /** The only principal that gets it. Default: all that may. */
  readonly to?: string
  /** What a client may want to do about it. It is never executed automatically. Default: none. */
  readonly hint?: Suggestion
}

/** An event type in the catalog. */
export interface EventEntry {
  readonly name: string
  readonly facts: EventFacts<never>
  readonly payload: CompiledSchema | undefined
  /** The URIs of resources that change with it. */
  readonly touches: ((payload: Params) => readonly string[]) | undefined
}

/** The data of an event in the feed. */
export interface EventData {
  readonly payload: Params
  readonly hint?: Suggestion
  /** The key of the only owner that gets it. */
  readonly owner?: string
  readonly touches?: readonly string[]
  /** The id of the event that this one compensates. */
  readonly undoes?: string
}

const kinds: KindsOf<EventFacts> = { description: 'string', payload: 'any', scopes: 'list', resource: 'any' }
const emitKinds: KindsOf<EmitOptions> = { id: 'string', to: 'string', hint: 'object' }
// Limit of resources per event.
const mostTouched = 100

/** Expands a URI template; throws if it is invalid. */
type Expand = (template: string, payload: Params) => string

/** Checks a declaration, and compiles it to an entry. */
export function compileEvent(name: string, facts: EventFacts<never>, expand: Expand): EventEntry {
  if (!/^[A-Za-z0-9_.\-/]{1,128}$/.test(name))
    throw new TypeError(`"${clip(name)}" is not a valid event name. Use 1 to 128 characters of A-Z a-z 0-9 _ . - /`)
  checkOptions(`Event "${name}"`, facts, kinds)
  const payload =
    facts.payload === undefined
      ? undefined
      : compileSchema(facts.payload, { side: 'output', where: `payload of event "${name}"` })
  if (payload !== undefined && payload.json['type'] !== 'object')
    throw new TypeError(`The payload of event "${name}" must be an object schema, such as z.object({ … })`)
  return { name, facts, payload, touches: touching(name, facts.resource, expand) }
}

/** Checks a payload. Throws a TypeError, because the mistake is the author's. */
function checkedPayload({ name, payload: schema }: EventEntry, payload: unknown): Awaitable<Params> {
  const found = schema === undefined ? ({ ok: true, value: payload } as const) : schema.validate(payload)
  const accept = (validation: Awaited<typeof found>): Params => {
    if (!validation.ok)
      throw new TypeError(`The payload of event "${name}" does not match its schema: ${issueText(validation.issues)}`)
    if (!isRecord(validation.value)) throw new TypeError(`The payload of event "${name}" must be an object`)
    return validation.value
  }
  return isThenable(found) ? found.then(accept) : accept(found)
}

/** Throws if the options of `emit` are invalid. */
function checkEmit(name: string, options: EmitOptions): void {
  checkOptions(`Event "${name}": emit`, options, emitKinds)
  const { id, hint } = options
  if (id !== undefined && (id.length === 0 || id.length > 200))
    throw new TypeError(`Event "${name}": an id must have 1 to 200 characters, not ${id.length}`)
  if (hint !== undefined) checkSuggestion(hint, `Event "${name}": a hint`)
}

// Compiles `resource` to a function from payload to URIs.
function touching(name: string, resource: EventFacts<never>['resource'], expand: Expand): EventEntry['touches'] {
  if (resource === undefined) return undefined
  if (typeof resource === 'string') {
    expand(resource, {})
    return payload => [expand(resource, payload)]
  }
  if (typeof resource !== 'function')
    throw new TypeError(`Event "${name}": resource must be a URI template or a function that returns URIs`)
  const of = resource as (payload: Params) => string | readonly string[] | undefined
  return payload => {
    const found = of(payload)
    const all = found === undefined ? [] : typeof found === 'string' ? [found] : found
    if (all.length > mostTouched)
      throw new TypeError(`Event "${name}" touches ${all.length} resources. The limit is ${mostTouched}`)
    return all
  }
}

/** The runtime; `loaded`: undefined until it is used first. */
interface LazyRuntime {
  readonly loaded: EventsRuntime | undefined
  load(): Promise<EventsRuntime>
}

/** Emits events, and runs the steps of transactions that may emit them. */
export function emitter({ events, trace }: EventsParts, lazy: LazyRuntime) {
  const { place: placeNow, within } = currentStep(trace)
  let before: Promise<unknown> | undefined
  const publish = (
    runtime: EventsRuntime,
    entry: EventEntry,
    payload: Params,
    owner: string | undefined,
    { id, hint }: EmitOptions,
    place: string | undefined,
  ) => {
    const touched = entry.touches?.(payload)
    const touches = touched?.length === 0 ? undefined : touched
    return runtime.publish(entry.name, id, { payload, ...given({ hint, owner, touches }) }, place)
  }
  const inTurn = async (entry: EventEntry, payload: Awaitable<Params>, options: EmitOptions) => {
    const { to } = options
    const turn = before
    const place = placeNow()
    const owning = to === undefined ? undefined : ownerKey({ carrier: 'http', principal: { id: to } })
    const ready = Promise.all([payload, owning, lazy.load()])
    const mine = Promise.allSettled([turn, ready])
    before = mine
    const [[checked, owner, runtime]] = await Promise.all([ready, mine])
    if (before === mine) before = undefined
    return publish(runtime, entry, checked, owner, options, place)
  }
  const emit = (name: string, unchecked: unknown, options: EmitOptions = {}): Promise<string> => {
    let emitted: Promise<string>
    try {
      const entry = events.get(name)
      if (entry === undefined) throw new TypeError(`The event "${name}" was removed and can no longer be emitted`)
      checkEmit(name, options)
      const payload = checkedPayload(entry, unchecked)
      const runtime = lazy.loaded
      emitted =
        runtime === undefined || isThenable(payload) || before !== undefined || options.to !== undefined
          ? // Copied, because the author may change the object before it is published.
            inTurn(entry, isThenable(payload) ? payload : (JSON.parse(JSON.stringify(payload)) as Params), options)
          : publish(runtime, entry, payload, undefined, options, placeNow())
    } catch (error) {
      emitted = Promise.reject(error)
    }
    // A rejection that nobody awaits must not end the process; it is traced.
    emitted.catch(error => trace('event-not-emitted', { event: name, error }))
    return emitted
  }
  return {
    /** Runs code as part of a step. */
    within,
    /** Publishes an event in the order of the calls, whatever each has to wait for; returns its id. */
    emit,
  }
}

/** The used part of AsyncLocalStorage, whose type exists only in Node's typings. */
interface StepStorage {
  run<T>(step: UnitStep | undefined, work: () => T): T
  getStore(): UnitStep | undefined
}

/** Tracks in which step of a transaction a handler runs, so that `emit` knows without being told. Loaded with the first step. */
function currentStep(trace: Trace) {
  let storage: StepStorage | undefined
  let loaded = false
  const load = (): void => {
    loaded = true
    const hooks = globalThis.process?.getBuiltinModule?.('node:async_hooks')
    if (hooks !== undefined) storage = new hooks.AsyncLocalStorage()
    // Some runtimes have no AsyncLocalStorage; events are then not compensated.
    else trace('steps-untold', { hint: 'This runtime has no AsyncLocalStorage, so a rollback sends no compensating events' })
  }
  return {
    place: (): string | undefined => storage?.getStore()?.place,
    within: async (step: UnitStep | undefined, work: Next): Promise<unknown> => {
      if (!loaded) load()
      return storage === undefined ? work() : storage.run(step, work)
    },
  }
}
