/** What is said of events to whoever has not subscribed yet. Loaded with whatever says it. */
import type { EventEntry } from './entry.ts'
import { fieldsOf } from './filter.ts'
import type { WireDelivery, WireEventType } from './messages.ts'

/** `delivery`: the ways that there are to hear of them. */
export function describeEvents(entries: readonly EventEntry[], delivery: readonly WireDelivery[]): readonly WireEventType[] {
  return entries.map(({ name, facts, payload }) => {
    const fields = payload === undefined ? undefined : fieldsOf(payload.json)
    return {
      name,
      description: facts.description ?? '',
      ...(payload === undefined ? {} : { payload_schema: payload.json }),
      ...(fields === undefined ? {} : { filter_fields: fields }),
      ...(facts.scopes === undefined ? {} : { required_scopes: facts.scopes }),
      delivery,
    }
  })
}
