/** Asking the user: a small form, or a page to visit. */
import { notification, officialIds, request } from '../../../engine/method.ts'
import { isRecord } from '../../../jsonrpc/message.ts'
import { object, oneOf, optional, record, string } from '../../../jsonrpc/shape.ts'
import type { Peer, Wire } from '../../../revisions/index.ts'
import { without } from '../content/messages.ts'

export type ElicitValue = string | number | boolean | readonly string[]

export interface ElicitResult {
  readonly action: 'accept' | 'decline' | 'cancel'
  /** Only with an accepted form. */
  readonly content?: Readonly<Record<string, ElicitValue>>
}

export function isElicitResult(value: unknown): value is ElicitResult {
  return isRecord(value) && (value['action'] === 'accept' || value['action'] === 'decline' || value['action'] === 'cancel')
}

export const elicit = request<ElicitResult>()({
  name: 'elicitation/create',
  to: 'client',
  // Where it travels inside results it is no method of its own, but the shape and its steps are the same.
  in: officialIds.filter(id => id !== '2024-11-05' && id !== '2025-03-26'),
  params: object({
    mode: optional(oneOf('form', 'url')),
    message: string,
    requestedSchema: optional(record),
    url: optional(string),
    elicitationId: optional(string),
  }),
  paramsDown: {
    '2026-07-28': params => without(params, 'elicitationId'),
    '2025-06-18': params => oldForm(without(params, 'mode')),
  },
})

/** Whether a client takes such questions. Forms are what a bare `elicitation: {}` declares; pages must be named, and 2025-06-18 has none. */
export function takesElicitation({ capabilities, revision }: Peer, mode: 'form' | 'url'): boolean {
  const declared = capabilities['elicitation']
  if (!isRecord(declared) || !elicit.in.includes(revision.id)) return false
  if (mode === 'url') return isRecord(declared['url']) && revision.id !== '2025-06-18'
  return isRecord(declared['form']) || declared['url'] === undefined
}

/** The page of a URL elicitation has done its work. */
export const elicitationComplete = notification({
  name: 'notifications/elicitation/complete',
  to: 'client',
  in: ['2025-11-25', 'draft-2026-v1'],
  params: object({ elicitationId: string }),
})

/** A number of its own on the two wires that have pages to finish before a retry. */
export const elicitationErrors = {
  'url-elicitation-required': { default: -32603, '2025-11-25': -32042, 'draft-2026-v1': -32042 },
}

/** 2025-06-18 knows titled choices only as `enumNames`, and defaults only for booleans. */
function oldForm(params: Wire): Wire {
  const schema = params['requestedSchema']
  if (!isRecord(schema) || !isRecord(schema['properties'])) return params
  const properties = Object.fromEntries(
    Object.entries(schema['properties']).map(([name, field]) => [name, isRecord(field) ? oldField(field) : field]),
  )
  return { ...params, requestedSchema: { ...schema, properties } }
}

function oldField(field: Wire): Wire {
  const plain = field['type'] === 'boolean' ? field : without(field, 'default')
  const choices = plain['oneOf']
  if (!Array.isArray(choices)) return plain
  return {
    ...without(plain, 'oneOf'),
    enum: choices.map(choice => choice['const']),
    enumNames: choices.map(choice => String(choice['title'] ?? choice['const'])),
  }
}
