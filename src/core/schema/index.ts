/** Schemas that authors give: what they describe, and checking values against them. Those of peers are in `peer.ts`, which servers never load. */
export { type Compiled, type CompileOptions, compileSchema } from './compile.ts'
export { preloadEngine } from './engine.ts'
export { type Issue, issueText, type Validation } from './issue.ts'
export {
  type InferInput,
  type InferOutput,
  type JsonSchema,
  jsonSchema,
  objectRoot,
  type Schema,
  SchemaError,
  type StandardSchema,
  Unchecked,
  withJsonSchema,
} from './schema.ts'
