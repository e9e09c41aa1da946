/** The shape of a manifest: one description, from which its type and its check come. Members beyond it pass. */
import { array, boolean, type Infer, integer, number, object, oneOf, optional, record, string } from '../../../jsonrpc/shape.ts'
import { eventTypeShape } from '../events/messages.ts'
import { recommendationShape } from '../recommendations/messages.ts'

/** The names that a service may give to the extensions it has. */
export const extensionTokens = [
  'streaming',
  'progress_notifications',
  'idempotency',
  'transactions',
  'session_state',
  'intent_hints',
  'provenance',
  'human_in_the_loop',
  'data_references',
  'subscribe_notify',
  'server_recommendations',
  'structured_errors',
  'multimodal_signatures',
  'conformance',
] as const
export type ExtensionToken = (typeof extensionTokens)[number]

/** What is said of a tool beside its name, its description and its schemas. */
export const toolFacts = {
  input_types: optional(array(string)),
  output_types: optional(array(string)),
  max_input_size_bytes: optional(integer),
  cost: optional(
    object({
      category: optional(oneOf('free', 'metered', 'requires_approval')),
      estimated_units: optional(number),
      unit_label: optional(string),
    }),
  ),
  latency: optional(oneOf('instant', 'seconds', 'minutes')),
  idempotent: optional(boolean),
  requires_confirmation: optional(boolean),
  confirmation_message: optional(string),
  risk_level: optional(oneOf('safe', 'reversible', 'destructive')),
  required_scopes: optional(array(string)),
  supports_streaming: optional(boolean),
  supports_pagination: optional(boolean),
  // Beyond the common form, which leaves room for more: how it is taken back, whether it may run in the background, its own limit.
  compensation: optional(object({ tool: string, description: optional(string) })),
  task_support: optional(oneOf('forbidden', 'optional', 'required')),
  rate_limits: optional(object({ requests_per_minute: optional(integer) })),
  /** The name is the true one, though the form allows only lower-case words joined by underscores. */
  nonconforming_name: optional(boolean),
}

const toolShape = object({
  name: string,
  description: string,
  input_schema: record,
  output_schema: optional(record),
  ...toolFacts,
})

const serverShape = object({
  name: string,
  version: string,
  mcp_spec_version: string,
  description: optional(string),
  homepage: optional(string),
  // Beyond the common form.
  mcp_spec_versions: optional(array(string)),
  supports_batch: optional(boolean),
})

const authShape = object({
  methods: optional(array(oneOf('oauth2_device', 'oauth2_code', 'api_key', 'bearer_token', 'none'))),
  scopes: optional(array(object({ name: string, description: string, grants: optional(array(string)) }))),
  session_ttl_seconds: optional(integer),
})

export const manifestShape = object({
  manifest_version: oneOf('0.1.0'),
  server: serverShape,
  auth: optional(authShape),
  tools: array(toolShape),
  supported_extensions: optional(array(oneOf(...extensionTokens))),
  rate_limits: optional(
    object({
      requests_per_minute: optional(integer),
      requests_per_day: optional(integer),
      remaining: optional(integer),
      resets_at: optional(string),
    }),
  ),
  recommendations: optional(array(recommendationShape)),
  // Beyond the common form.
  events: optional(array(eventTypeShape)),
})

export type WireManifest = Infer<typeof manifestShape>
export type WireManifestTool = Infer<typeof toolShape>
export type WireAuth = Infer<typeof authShape>
export type AuthMethod = NonNullable<WireAuth['methods']>[number]
export type WireRateLimits = NonNullable<WireManifest['rate_limits']>
