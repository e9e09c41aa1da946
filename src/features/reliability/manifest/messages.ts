/** The manifest on the wire: all that a server offers and what is known of it, under a revision that is the digest of its contents. */
import type { RequestOptions } from '../../../engine/client-feature.ts'
import { NS, officialIds, request } from '../../../engine/method.ts'
import { type Port, port } from '../../../engine/ports.ts'
import { isRecord } from '../../../jsonrpc/message.ts'
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

/** The name of the extension. */
export const manifestExtension = `${NS}/manifest`
/** Of the document's form, not of what it says. */
export const manifestVersion = '0.1.0'
/** The same document as a resource. */
export const manifestUri = 'manifest:///service'

export interface WireManifestResult {
  readonly revision: string
  readonly manifest: WireManifest
  readonly ttlMs: number
  readonly cacheScope: 'public' | 'private'
}

/** To whoever has this revision already. */
interface WireNotModified {
  readonly not_modified: true
  readonly revision: string
  /** Counters are in no revision: where there are any, they come all the same. */
  readonly rate_limits?: WireRateLimits
  readonly ttlMs: number
  readonly cacheScope: 'public' | 'private'
}

/** Asks for the manifest, unless it is of a revision that the client has. */
export const getManifest = request<WireManifestResult | WireNotModified>()({
  name: 'manifest/get',
  to: 'server',
  in: officialIds,
  extension: manifestExtension,
  declares: { extensions: { [manifestExtension]: {} } },
  params: object({ if_revision: optional(string) }),
})

/** The manifest of a server, for other features of a client. */
export interface ClientManifest {
  manifest(options?: RequestOptions): Promise<{ readonly document: WireManifest }>
}

/** The client's copy of the manifest. */
export const manifestPort: Port<ClientManifest> = port('manifest')

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

/** A tool in a manifest. */
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
  // Beyond the common form.
  mcp_spec_versions: optional(array(string)),
  supports_batch: optional(boolean),
})

/** How callers sign in, in a manifest. */
export const authShape = object({
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

/** The manifest as it is sent. */
export type WireManifest = Infer<typeof manifestShape>
/** A tool in the manifest. */
export type WireManifestTool = Infer<typeof toolShape>
export type WireAuth = Infer<typeof authShape>
export type AuthMethod = NonNullable<WireAuth['methods']>[number]
/** The limits in the manifest. */
export type WireRateLimits = NonNullable<WireManifest['rate_limits']>

type Members = Readonly<Record<string, unknown>>

const prefix = `${NS}/`
const facts: ReadonlyMap<string, Shape<unknown>> = new Map(Object.entries(toolFacts))
/** What an entry says by itself, whatever stands in `_meta`. */
const own: ReadonlySet<string> = new Set(['name', 'description', 'input_schema', 'output_schema'])
const common = /^[a-z][a-z0-9_]*$/

/** `shown`: the same tool as a wire has it, whose schemas count. `more`: what is known of it elsewhere. */
export function entryOf(tool: Tool, shown: Tool = tool, more: Members = {}): WireManifestTool {
  const { name, description = '', annotations, execution } = tool
  const { inputSchema, outputSchema } = shown
  const said = saidOf(tool._meta)
  const risk = said['risk_level'] === undefined ? riskOf(annotations, said['compensation']) : undefined
  return {
    name,
    description,
    input_schema: inputSchema,
    ...(outputSchema === undefined ? {} : { output_schema: outputSchema }),
    ...(annotations?.idempotentHint === undefined ? {} : { idempotent: annotations.idempotentHint }),
    ...(risk === undefined ? {} : { risk_level: risk }),
    ...(execution === undefined ? {} : { task_support: execution.taskSupport }),
    ...more,
    ...said,
    ...(common.test(name) ? {} : { nonconforming_name: true }),
  }
}

/** The members of the manifest in all that extensions say of a tool. What is of another type than it must be is not said. */
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

function riskOf(annotations: ToolAnnotations | undefined, compensation: unknown): WireManifestTool['risk_level'] {
  if (compensation !== undefined) return 'reversible'
  if (annotations?.readOnlyHint === true) return 'safe'
  return annotations?.destructiveHint === true ? 'destructive' : undefined
}

/** By name: the extension that says it. What nobody owns stays with the manifest's own. */
const owners: ReadonlyMap<string, string> = new Map([
  ...['cost', 'latency'].map(name => [name, `${NS}/operational`] as const),
  ...['input_types', 'output_types', 'max_input_size_bytes'].map(name => [name, `${NS}/media`] as const),
  ...['requires_confirmation', 'confirmation_message', 'risk_level'].map(name => [name, `${NS}/confirmation`] as const),
  ['required_scopes', `${NS}/permissions`],
  ['supports_streaming', `${NS}/streaming`],
  ['compensation', `${NS}/transactions`],
])

/** The tool that an entry shows, as a list would have it. */
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
    ...(output_schema === undefined ? {} : { outputSchema: output_schema }),
    ...(idempotent === undefined ? {} : { annotations: { idempotentHint: idempotent } }),
    ...(task_support === undefined ? {} : { execution: { taskSupport: task_support } }),
    ...(Object.keys(meta).length === 0 ? {} : { _meta: meta }),
  }
}

/** In the `_meta` of a tool whose input and output know pages. */
export interface WirePaged {
  readonly supports_pagination: boolean
}
