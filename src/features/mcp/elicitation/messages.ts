/** Asking the user: a small form, or a page to visit. */

import { type ExtensionPoint, extensionPoint } from '../../../engine/client-feature.ts'
import { notification, officialIds, request } from '../../../engine/method.ts'
import { McpError } from '../../../jsonrpc/error.ts'
import { isRecord, type Params } from '../../../jsonrpc/message.ts'
import { object, optional, record, string, tagged } from '../../../jsonrpc/shape.ts'
import type { Peer, Revision, Wire } from '../../../revisions/index.ts'
import { without } from '../content/messages.ts'

/** The value of one field of a form. */
export type ElicitValue = string | number | boolean | readonly string[]

/** The answer of the user to a question. */
export interface ElicitResult {
  /** `accept`: the user agreed or sent the form. `decline`: the user refused. `cancel`: the user closed the question. */
  readonly action: 'accept' | 'decline' | 'cancel'
  /** The fields of the form. Only with an accepted form. */
  readonly content?: Readonly<Record<string, ElicitValue>>
}

/** Whether a value is a result of `elicitation/create`. */
export function isElicitResult(value: unknown): value is ElicitResult {
  return isRecord(value) && (value['action'] === 'accept' || value['action'] === 'decline' || value['action'] === 'cancel')
}

/** A form to fill in, or a page to visit: never both, so that nobody shows the one and means the other. */
interface ElicitParams {
  readonly mode?: 'form' | 'url'
  readonly message: string
  readonly requestedSchema?: Readonly<Record<string, unknown>>
  readonly url?: string
  readonly elicitationId?: string
}

/** `elicitation/create`: asks the user by a form or on a web page. */
export const elicit = request<ElicitResult>()({
  name: 'elicitation/create',
  to: 'client',
  // Where it travels inside results it is no method of its own, but the shape and its steps are the same.
  in: officialIds.filter(id => id !== '2024-11-05' && id !== '2025-03-26'),
  params: tagged<ElicitParams>(
    'mode',
    {
      form: { message: string, requestedSchema: record },
      url: { message: string, url: string, elicitationId: optional(string) },
    },
    'form',
  ),
  paramsDown: {
    '2026-07-28': params => without(params, 'elicitationId'),
    '2025-06-18': params => oldForm(without(params, 'mode')),
  },
})

/**
 * The form that asks yes or no: one required box. A form without fields would do for people, but clients that accept every empty
 * form by themselves would say yes for them.
 */
export const yesNoForm = {
  type: 'object',
  properties: { confirm: { type: 'boolean', title: 'Proceed?' } },
  required: ['confirm'],
} as const

/** Whether an answer to it can be read: one that is accepted says true or false. */
export function isYesNo(value: unknown): value is ElicitResult {
  return isElicitResult(value) && (value.action !== 'accept' || typeof value.content?.['confirm'] === 'boolean')
}

/** 2025-06-18 has forms alone, whose fields hold no lists. */
export function hasElicitationModes({ id }: Revision): boolean {
  return id !== '2025-06-18'
}

/** Whether a form can be asked on a wire: not every one knows fields that hold lists. */
export function formFits(revision: Revision, schema: unknown): boolean {
  if (hasElicitationModes(revision)) return true
  const fields = isRecord(schema) ? schema['properties'] : undefined
  return !(isRecord(fields) && Object.values(fields).some(field => isRecord(field) && field['type'] === 'array'))
}

/** Whether a client takes such questions. Forms are what a bare `elicitation: {}` declares; pages must be named. */
export function takesElicitation({ capabilities, revision }: Peer, mode: 'form' | 'url'): boolean {
  const declared = capabilities['elicitation']
  if (!isRecord(declared) || !elicit.in.includes(revision.id)) return false
  if (mode === 'url') return isRecord(declared['url']) && hasElicitationModes(revision)
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

/** A question of a server to the user, as far as somebody may have answered it before. */
export interface AskedForm {
  readonly mode: string
  /** What the user is told. */
  readonly message: string
  readonly schema?: Readonly<Record<string, unknown>>
}

/** Where features of a client answer in the user's place what the user has answered before; undefined: it is another question. */
export const earlierAnswers: ExtensionPoint<(question: AskedForm) => ElicitResult | undefined> = extensionPoint('earlier-answers')

/** The error by which a call is refused until pages were visited (2025-11-25 client/elicitation). */
const pagesFirst = -32042
const mostPages = 16

/** The pages that a refusal names; undefined where it names none. */
export function pagesIn(error: unknown): readonly Params[] | undefined {
  if (!(error instanceof McpError) || error.code !== pagesFirst || !isRecord(error.data)) return undefined
  const { elicitations } = error.data
  if (!Array.isArray(elicitations) || elicitations.length === 0 || elicitations.length > mostPages) return undefined
  const pages = elicitations.filter(page => isRecord(page) && elicit.params.check({ ...page, mode: 'url' }) === undefined)
  return pages.length === elicitations.length ? pages : undefined
}
