/**
 * The manifest on the wire: everything that a server offers, with a revision that is the digest of the document; and the conversion
 * between tools and manifest entries.
 */
import type { RequestOptions } from '../../../engine/client-feature.ts'
import { NS, officialIds, request } from '../../../engine/method.ts'
import { port } from '../../../engine/ports.ts'
import { given, isRecord } from '../../../jsonrpc/message.ts'
import {
  array,
  boolean,
  type Infer,
  integer,
  number,
  object,
  oneOf,
  optional,
  record,
  type Shape,
  string,
} from '../../../jsonrpc/shape.ts'
import type { Tool, ToolAnnotations } from '../../mcp/tools/messages.ts'
import { eventTypeShape } from '../events/messages.ts'
import { recommendationShape } from '../recommendations/messages.ts'

/** The extension name. */
export const manifestExtension = `${NS}/manifest`
/** The version of the document format. */
export const manifestVersion = '0.1.0'
/** The URI of the manifest as a resource. */
export const manifestUri = 'manifest:///service'

/** The answer to `manifest/get`. */
export interface WireManifestResult {
  readonly revision: string
  readonly manifest: WireManifest
  readonly ttlMs: number
  readonly cacheScope: 'public' | 'private'
}

/** The answer if the client already has this revision. */
interface WireNotModified {
  readonly not_modified: true
  readonly revision: string
  /** Counters are not part of the revision, so they are sent anyway. */
  readonly rate_limits?: WireRateLimits
  readonly ttlMs: number
  readonly cacheScope: 'public' | 'private'
}

/** Requests the manifest, unless the client already has this revision. */
export const getManifest = request<WireManifestResult | WireNotModified>()({
  name: 'manifest/get',
  to: 'server',
  in: officialIds,
  extension: manifestExtension,
  declares: { extensions: { [manifestExtension]: {} } },
  params: object({ if_revision: optional(string) }),
})

/** The manifest, for other client features. */
export interface ClientManifest {
  manifest(options?: RequestOptions): Promise<{ readonly document: WireManifest }>
}

/** The port of this feature. */
export const manifestPort = port<ClientManifest>('manifest')

/** Names for extensions in the common manifest format. */
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

/** What a manifest says about a tool beside name, description and schemas. */
const toolFacts = {
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
  // Members beyond the common format: compensation, task support, and the tool's rate limit.
  compensation: optional(object({ tool: string, description: optional(string) })),
  task_support: optional(oneOf('forbidden', 'optional', 'required')),
  rate_limits: optional(object({ requests_per_minute: optional(integer) })),
  /** The name is correct, although the common format allows only snake_case. */
  nonconforming_name: optional(boolean),
}

/** The shape of a tool. */
export const toolShape = object({
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
  // Beyond the common format.
  mcp_spec_versions: optional(array(string)),
  supports_batch: optional(boolean),
})

/** The shape of the authentication section. */
export const authShape = object({
  methods: optional(array(oneOf('oauth2_device', 'oauth2_code', 'api_key', 'bearer_token', 'none'))),
  scopes: optional(array(object({ name: string, description: string, grants: optional(array(string)) }))),
  session_ttl_seconds: optional(integer),
})

/** The shape of a manifest. */
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
  // Beyond the common format.
  events: optional(array(eventTypeShape)),
})

/** A manifest on the wire. */
export type WireManifest = Infer<typeof manifestShape>
/** A tool on the wire. */
export type WireManifestTool = Infer<typeof toolShape>
/** The authentication section on the wire. */
type WireAuth = Infer<typeof authShape>
/** A way to authenticate. */
export type AuthMethod = NonNullable<WireAuth['methods']>[number]
/** The rate limits on the wire. */
type WireRateLimits = NonNullable<WireManifest['rate_limits']>

type Members = Readonly<Record<string, unknown>>

const prefix = `${NS}/`
const facts: ReadonlyMap<string, Shape<unknown>> = new Map(Object.entries(toolFacts))
/** Members that always come from the tool itself, not from `_meta`. */
const own: ReadonlySet<string> = new Set(['name', 'description', 'input_schema', 'output_schema'])
// The common format's syntax of tool names.
const common = /^[a-z][a-z0-9_]*$/

/** Writes a tool. `shown`: the tool as the wire lists it, whose schemas are used. `more`: further members. */
export function entryOf(tool: Tool, shown: Tool = tool, more: Members = {}): WireManifestTool {
  const { name, description = '', annotations, execution } = tool
  const { inputSchema, outputSchema } = shown
  const said = saidOf(tool._meta)
  const risk = said['risk_level'] === undefined ? riskOf(annotations, said['compensation']) : undefined
  return {
    name,
    description,
    input_schema: inputSchema,
    ...given({
      output_schema: outputSchema,
      idempotent: annotations?.idempotentHint,
      risk_level: risk,
      task_support: execution?.taskSupport,
    }),
    ...more,
    ...said,
    ...(common.test(name) ? {} : { nonconforming_name: true }),
  }
}

/** Collects manifest members from the `_meta` of all extensions; values of the wrong type are ignored. */
function saidOf(meta: Members | undefined): Members {
  const said: Record<string, unknown> = {}
  for (const [extension, members] of Object.entries(meta ?? {})) {
    if (!extension.startsWith(prefix) || !isRecord(members)) continue
    for (const [name, value] of Object.entries(members)) {
      const shape = facts.get(name)
      if (shape === undefined ? extension === manifestExtension && !own.has(name) : shape.check(value) === undefined)
        said[name] = value
    }
  }
  return said
}

// Derives the risk from annotations, if no extension states it.
function riskOf(annotations: ToolAnnotations | undefined, compensation: unknown): WireManifestTool['risk_level'] {
  if (compensation !== undefined) return 'reversible'
  if (annotations?.readOnlyHint === true) return 'safe'
  return annotations?.destructiveHint === true ? 'destructive' : undefined
}

/** Which extension each member belongs to; others belong to the manifest extension. */
const owners: ReadonlyMap<string, string> = new Map([
  ...['cost', 'latency'].map(name => [name, `${NS}/operational`] as const),
  ...['input_types', 'output_types', 'max_input_size_bytes'].map(name => [name, `${NS}/media`] as const),
  ...['requires_confirmation', 'confirmation_message', 'risk_level'].map(name => [name, `${NS}/confirmation`] as const),
  ['required_scopes', `${NS}/permissions`],
  ['supports_streaming', `${NS}/streaming`],
  ['compensation', `${NS}/transactions`],
])

/** Converts a manifest entry to a tool. */
export function toolOf(entry: WireManifestTool): Tool {
  const { name, description, input_schema, output_schema, idempotent, task_support, nonconforming_name, ...rest } = entry
  const meta: Record<string, Record<string, unknown>> = {}
  for (const [member, value] of Object.entries(rest)) {
    const owner = owners.get(member) ?? manifestExtension
    meta[owner] = { ...meta[owner], [member]: value }
  }
  return {
    name,
    description,
    inputSchema: input_schema,
    ...given({ outputSchema: output_schema }),
    ...(idempotent === undefined ? {} : { annotations: { idempotentHint: idempotent } }),
    ...(task_support === undefined ? {} : { execution: { taskSupport: task_support } }),
    ...(Object.keys(meta).length === 0 ? {} : { _meta: meta }),
  }
}

/** What a paginated tool has in its `_meta`. */
export interface WirePaged {
  readonly supports_pagination: boolean
}
