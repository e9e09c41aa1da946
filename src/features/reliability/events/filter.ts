/**
 * Filters of events: an object that the payload must match. Values must be equal, lists mean "one of", objects are matched recursively;
 * if the payload holds a list, one matching entry suffices. Also describes event types for listings.
 */
import type { JsonSchema } from '../../../core/schema/index.ts'
import { clip } from '../../../jsonrpc/limits.ts'
import { given, isRecord, type Params } from '../../../jsonrpc/message.ts'
import type { EventEntry } from './entry.ts'
import type { WireDelivery, WireEventType } from './messages.ts'

const depth = 5
const conditions = 64
const alternatives = 100
/** Limit in characters of JSON, because it is kept as long as the subscription. */
const longest = 16 * 1024

/** Why a filter is invalid; undefined if it is valid, or there is none. `schemas`: the payload schemas of the events. */
export function filterFault(filter: Params | undefined, schemas: readonly (JsonSchema | undefined)[]): string | undefined {
  if (filter === undefined) return undefined
  const count = { left: conditions }
  const fault = faultIn(filter, depth, count)
  if (fault !== undefined) return fault
  const { length } = JSON.stringify(filter)
  if (length > longest) return `filter: it has ${length} characters. The limit is ${longest}`
  for (const field of Object.keys(filter)) {
    const known = schemas.map(fieldsOf)
    if (known.some(fields => fields === undefined || fields.includes(field))) continue
    const all = [...new Set(known.flatMap(fields => fields ?? []))].map(name => clip(name))
    return `filter: no payload of these events has a field "${clip(field)}". The fields are: ${all.join(', ') || 'none'}`
  }
  return undefined
}

/** Whether a payload matches. */
export function matchesFilter(filter: Params, payload: unknown): boolean {
  if (Array.isArray(payload)) return payload.some(entry => matchesFilter(filter, entry))
  if (!isRecord(payload)) return false
  for (const field in filter) {
    if (!Object.hasOwn(filter, field)) continue
    const found = Object.hasOwn(payload, field) ? payload[field] : undefined
    if (!fits(filter[field], found)) return false
  }
  return true
}

function fits(wanted: unknown, found: unknown): boolean {
  if (Array.isArray(wanted)) return wanted.some(one => fits(one, found))
  if (isRecord(wanted)) return matchesFilter(wanted, found)
  if (Array.isArray(found)) return found.some(entry => fits(wanted, entry))
  // A missing member equals null.
  return wanted === (found ?? null)
}

function faultIn(filter: Params, left: number, count: { left: number }): string | undefined {
  if (left === 0) return `filter: it is nested deeper than ${depth} levels (the limit)`
  for (const value of Object.values(filter)) {
    if (--count.left < 0) return `filter: it has more than ${conditions} conditions (the limit)`
    const all = Array.isArray(value) ? value : [value]
    if (all.length > alternatives) return `filter: a list in it has more than ${alternatives} entries (the limit)`
    for (const one of all) {
      if (Array.isArray(one)) return 'filter: a list inside a list is not allowed'
      const fault = isRecord(one) ? faultIn(one, left - 1, count) : undefined
      if (fault !== undefined) return fault
    }
  }
  return undefined
}

/** The fields that a filter may use; undefined if the schema allows any. */
function fieldsOf(schema: JsonSchema | undefined): readonly string[] | undefined {
  const properties = schema?.['properties']
  if (!isRecord(properties)) return undefined
  const more = schema?.['additionalProperties']
  return more === undefined || more === false ? Object.keys(properties) : undefined
}

/** Describes event types for `event/list`; `delivery`: the supported ways of delivery. */
export function describeEvents(entries: readonly EventEntry[], delivery: readonly WireDelivery[]): readonly WireEventType[] {
  return entries.map(({ name, facts, payload }) => {
    const schema = payload?.json
    const optional = given({ payload_schema: schema, filter_fields: fieldsOf(schema), required_scopes: facts.scopes })
    return { name, description: facts.description ?? '', ...optional, delivery }
  })
}
