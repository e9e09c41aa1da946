/**
 * The schemas leave objects open, so that a later wire's word passes an earlier wire's check. Here they are closed: what a
 * definition does not name is not of that wire. Open stays what is open by its meaning: `_meta`, schemas, data of errors.
 */
import { type Definitions, definitionsOf, type Judged, type SchemaFile, type SchemaNode } from './schemas.ts'

const openMembers = new Set(['_meta', 'inputSchema', 'outputSchema', 'data', 'experimental', 'extensions', 'metadata'])
const openDefinitions = /^(JSONRPC.*|.*Error|.*MetaObject|Result|EmptyResult|Request|Notification|GetTaskPayloadResult)$/

/** What MCP Live adds to calls of tools and to their results. */
const carried = ['state', 'checkpoint', 'scope']
const live = { CallToolResult: ['state'], CallToolRequestParams: carried }
/** Where params have no definition of their own. */
const liveWithin = { CallToolResult: ['state'], 'CallToolRequest/params': carried }
/** Where tools have no `_meta`, MCP Live names the set of a tool beside its name. */
const liveBeside = { ...liveWithin, Tool: ['featureSet'] }

/** Words that are no part of a wire's schema, but belong on it all the same. */
const extras: Partial<Record<Judged, Readonly<Record<string, readonly string[]>>>> = {
  '2024-11-05': liveBeside,
  '2025-03-26': liveBeside,
  '2025-06-18': liveWithin,
  // Extensions were agreed on while this wire was the newest, and are declared on it beside its own capabilities.
  '2025-11-25': { ServerCapabilities: ['extensions'], ClientCapabilities: ['extensions'], ...live },
  // The tasks extension adds to what may be listened to.
  '2026-07-28': { SubscriptionFilter: ['taskIds', 'dev.vivarium/events'], ...live },
}

export function closeSchema(schema: SchemaFile, revision: Judged): SchemaFile {
  const closed: Record<string, SchemaNode> = {}
  const all = definitionsOf(schema)
  for (const [name, given] of Object.entries(all)) {
    const node = merged(given, all)
    const words = extras[revision] ?? {}
    const wider = widened(widenedWithin(node, words[`${name}/params`]), words[name])
    closed[name] = openDefinitions.test(name) ? node : close(wider, name.endsWith('Result'))
  }
  return schema.$defs === undefined
    ? { $schema: schema.$schema, definitions: closed }
    : { $schema: schema.$schema, $defs: closed }
}

function widened(node: SchemaNode, words: readonly string[] = []): SchemaNode {
  if (words.length === 0) return node
  const properties = { ...Object.fromEntries(words.map(key => [key, {}])), ...(node['properties'] as object | undefined) }
  return { ...node, properties }
}

function widenedWithin(node: SchemaNode, words: readonly string[] | undefined): SchemaNode {
  const properties = node['properties'] as Record<string, SchemaNode> | undefined
  const params = properties?.['params']
  return params === undefined ? node : { ...node, properties: { ...properties, params: widened(params, words) } }
}

/** A definition that is several others at once can only be closed as one. */
function merged(node: SchemaNode, all: Definitions): SchemaNode {
  const parts = node['allOf']
  if (!Array.isArray(parts)) return node
  const nodes = parts.map((part: SchemaNode) => merged(all[String(part['$ref']).split('/').at(-1) ?? ''] ?? part, all))
  return {
    type: 'object',
    properties: Object.assign({}, ...nodes.map(({ properties }) => properties)),
    required: nodes.flatMap(({ required }) => required ?? []),
  }
}

/** Results say of themselves that anything may be added; that is meant for later wires, not for this one. */
function close(node: SchemaNode, result = false): SchemaNode {
  const copy: Record<string, unknown> = {}
  for (const [key, value] of Object.entries(node)) {
    if (key === 'properties') copy[key] = closeEach(value as Record<string, SchemaNode>)
    else if (Array.isArray(value)) copy[key] = value.map(item => (isNode(item) ? close(item) : item))
    else copy[key] = isNode(value) ? close(value) : value
  }
  const properties = copy['properties']
  const named = isNode(properties) && Object.keys(properties).length > 0
  if (named && (result || copy['additionalProperties'] === undefined)) copy['additionalProperties'] = false
  return copy
}

function closeEach(properties: Record<string, SchemaNode>): Record<string, SchemaNode> {
  return Object.fromEntries(
    Object.entries(properties).map(([name, node]) => [
      name,
      openMembers.has(name) ? node : close(name === 'params' ? withMeta(node) : node),
    ]),
  )
}

/** The early schemas name what all parameters may have only where they describe requests in general. */
function withMeta(node: SchemaNode): SchemaNode {
  return isNode(node['properties']) ? { ...node, properties: { _meta: {}, ...node['properties'] } } : node
}

function isNode(value: unknown): value is SchemaNode {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
