/** What the caller itself wants a tool's structured content to be. */
import { type Compiled, compileSchema, type InferOutput, issueText, type Schema, withJsonSchema } from '../core/schema/index.ts'
import { McpError } from '../jsonrpc/error.ts'
import { clip } from '../jsonrpc/limits.ts'

const compiled = new WeakMap<object, Compiled>()

/** Checks the value and gives what the schema makes of it. */
export async function readOutput<S extends Schema>(schema: S, name: string, value: unknown): Promise<InferOutput<S>> {
  const checked = await validator(schema).validate(value)
  if (checked.ok) return checked.value as InferOutput<S>
  throw new McpError('invalid-result', `Tool ${clip(name)} gave something else than was asked for: ${issueText(checked.issues)}`)
}

function validator(schema: Schema): Compiled {
  let made = compiled.get(schema)
  if (made === undefined) {
    // Nobody is shown this schema, so it need not be able to say what it is.
    made = isStandard(schema) ? compileSchema(withJsonSchema(schema, {})) : compileSchema(schema, { where: 'output' })
    compiled.set(schema, made)
  }
  return made
}

function isStandard(schema: Schema): schema is Extract<Schema, { readonly '~standard': unknown }> {
  return '~standard' in schema
}
