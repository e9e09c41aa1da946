/** For tests: a manifest that says everything that can be said in one, and one that says as little as possible. */
import type { WireManifest } from '../../src/features/reliability/manifest/messages.ts'

const input = { type: 'object', properties: { some_name: { type: 'string' } } }

export const everyField: WireManifest & { readonly x_more: unknown } = {
  manifest_version: '0.1.0',
  server: {
    name: 'every-field',
    version: '1.2.3-beta.1',
    mcp_spec_version: '2026-07-28',
    description: 'Says everything',
    homepage: 'https://example.com/every-field',
    mcp_spec_versions: ['2026-07-28', '2025-03-26'],
    supports_batch: true,
  },
  auth: {
    methods: ['oauth2_device', 'oauth2_code', 'api_key', 'bearer_token', 'none'],
    scopes: [
      { name: 'read:all', description: 'Reading', grants: ['look'] },
      { name: 'write:all', description: 'Writing' },
    ],
    session_ttl_seconds: 1800,
  },
  tools: [
    {
      name: 'look',
      description: 'Looks',
      input_schema: input,
      output_schema: { type: 'object', properties: { found: { $ref: '#/$defs/Found' } } },
      input_types: ['image/png', 'application/pdf'],
      output_types: ['application/json'],
      max_input_size_bytes: 1_000_000,
      cost: { category: 'metered', estimated_units: 0.5, unit_label: 'credits' },
      latency: 'seconds',
      idempotent: false,
      requires_confirmation: true,
      confirmation_message: 'Look at {some_name}?',
      risk_level: 'reversible',
      required_scopes: ['read:all', 'write:all'],
      supports_streaming: true,
      supports_pagination: false,
      compensation: { tool: 'look_away', description: 'Forgets it' },
      task_support: 'optional',
      rate_limits: { requests_per_minute: 6 },
    },
    { name: 'look_away', description: '', input_schema: {}, cost: {}, latency: 'instant', requires_confirmation: false },
    { name: 'Look.Twice', description: 'Named its own way', input_schema: input, nonconforming_name: true },
  ],
  supported_extensions: [
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
  ],
  rate_limits: { requests_per_minute: 60, requests_per_day: 1000, remaining: 7, resets_at: '2026-03-16T00:00:00Z' },
  recommendations: [
    {
      capability: 'design_mockup',
      server_name: 'com.example/design',
      registry_url: 'https://registry.example.com/v0.1/servers/com.example%2Fdesign',
      auth_flow: 'oauth2_code',
      match_confidence: 'high',
    },
    { capability: 'wiki', server_name: 'com.example/wiki' },
  ],
  events: [
    {
      name: 'seen',
      description: 'Something was seen',
      payload_schema: { type: 'object', properties: { some_name: { type: 'string' } } },
      filter_fields: ['some_name'],
      required_scopes: ['read:all'],
      delivery: ['push', 'poll'],
    },
    { name: 'Gone.away', description: '', delivery: ['poll'] },
  ],
  x_more: { kept: ['as', 'it', 'is'] },
}

export const fewestFields: WireManifest = {
  manifest_version: '0.1.0',
  server: { name: 'least', version: '1.0.0', mcp_spec_version: '2025-11-25' },
  tools: [],
}
