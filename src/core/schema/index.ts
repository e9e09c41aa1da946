/** Schemas that authors and peers give: what they describe, and checking values against them. */
export { type Compiled, type CompileOptions, compileSchema } from './compile.ts'
export { preloadEngine } from './engine.ts'
export { type Issue, issueText, type Validation } from './issue.ts'
export { compilePeerSchema, type PeerSchema, type PeerSchemaLimits, peerSchemaLimits } from './peer.ts'
export {
  type InferInput,
  type InferOutput,
  type JsonSchema,
  jsonSchema,
  objectRoot,
  type Schema,
  SchemaError,
  type StandardSchema,
  withJsonSchema,
} from './schema.ts'
