/** Whether an answer fits the form of a server: told while the person can still correct it, and not by a failure of the server. */
import { compilePeerSchema, type PeerSchema } from '../core/schema/peer.ts'
import { SchemaError } from '../core/schema/schema.ts'
import { clip } from '../jsonrpc/limits.ts'
import { isRecord } from '../jsonrpc/message.ts'

/** What is wrong with the content of a form, in a sentence; undefined where it fits. `payload`: that of the approval. */
export function formFault(payload: unknown, content: Readonly<Record<string, unknown>> | undefined): string | undefined {
  if (content === undefined) return 'The form is not filled.'
  const schema = isRecord(payload) && isRecord(payload['schema']) ? payload['schema'] : {}
  const checked = peerSchemaOf(schema)?.validate({ ...defaultsIn(schema), ...content })
  if (checked === undefined || checked.ok) return undefined
  const [issue] = checked.issues
  return `The form does not fit: ${clip(`${issue?.path ?? ''} ${issue?.message ?? ''}`.trim(), 300)}.`
}

/** Undefined where the schema itself cannot be used: then its server judges the answer. */
function peerSchemaOf(schema: Readonly<Record<string, unknown>>): PeerSchema | undefined {
  try {
    return compilePeerSchema(schema)
  } catch (error) {
    if (error instanceof SchemaError) return undefined
    throw error
  }
}

/** Members that are filled in where the answer leaves them out. */
function defaultsIn({ properties }: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  const fields = Object.entries(isRecord(properties) ? properties : {})
  return Object.fromEntries(
    fields.flatMap(([name, field]) => (isRecord(field) && field['default'] !== undefined ? [[name, field['default']]] : [])),
  )
}
