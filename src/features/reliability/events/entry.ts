import { checkOptions, type KindsOf } from '../../../core/options.ts'
import { type Compiled, compileSchema, issueText, type Schema } from '../../../core/schema/index.ts'
import { checkSuggestion, type Suggestion } from '../../../core/suggestion.ts'
import { clip } from '../../../jsonrpc/limits.ts'
import { type Awaitable, isRecord, isThenable, type Params } from '../../../jsonrpc/message.ts'

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
