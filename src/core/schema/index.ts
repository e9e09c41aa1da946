/** Schemas that authors give: what they describe, and checking values against them. Those of peers are in `peer.ts`, which servers never load. */
export { type CompiledSchema, type CompileOptions, compileSchema } from './compile.ts'
export { preloadEngine } from './engine.ts'
export {
  type InferInput,
  type InferOutput,
  type Issue,
  issueText,
  type JsonSchema,
  jsonSchema,
  objectRoot,
  type Schema,
  SchemaError,
  type StandardSchema,
  UncheckedSchema,
  type Validation,
  withJsonSchema,
} from './schema.ts'
