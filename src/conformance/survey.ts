/** Reads a server's own advertisement: who it is, what it declares, and all that it lists. The plan is made of this. */
import { isRecord } from '../jsonrpc/message.ts'
import { type Advertised, type Carrier, Failed, type Json, type RevisionId } from './scenario.ts'
import { isStateless, keys } from './wire/envelope.ts'
import type { RawPeer } from './wire/raw-peer.ts'

/** A server that pages for ever is not followed for ever. */
const mostPages = 100

/** Asks with the handshake already made. A list that does not come is for scenarios to find. */
export async function surveyServer(peer: RawPeer, signal: AbortSignal): Promise<Advertised> {
  const hello = peer.hello ?? {}
  const capabilities = capabilitiesIn(hello, peer.revision)
  const list = async (capability: string, method: string, member: string): Promise<readonly Json[]> =>
    isRecord(capabilities[capability]) ? listed(peer, method, member, signal) : []
  const lists = {
    tools: await list('tools', 'tools/list', 'tools'),
    resources: await list('resources', 'resources/list', 'resources'),
    templates: await list('resources', 'resources/templates/list', 'resourceTemplates'),
    prompts: await list('prompts', 'prompts/list', 'prompts'),
  }
  return advertisedBy(peer.revision, peer.carrier, { hello, capabilities, ...lists })
}

/** What was asked of a server, as it came. */
type SurveyAnswers = Pick<Advertised, 'hello' | 'capabilities' | 'tools' | 'resources' | 'templates' | 'prompts'>

/** Makes what the server said ready for questions. */
export function advertisedBy(revision: RevisionId, carrier: Carrier, surveyed: SurveyAnswers): Advertised {
  const info = infoIn(surveyed.hello, revision)
  const tool = (name: string): Json | undefined => surveyed.tools.find(one => one['name'] === name)
  return {
    role: 'server',
    revision,
    carrier,
    name: typeof info['name'] === 'string' ? info['name'] : 'unknown',
    version: typeof info['version'] === 'string' ? info['version'] : 'unknown',
    ...surveyed,
    has: path => hasPath(surveyed.capabilities, path.split('.')),
    extension: id => extensionIn(surveyed.capabilities, id),
    tool,
    prompt: name => surveyed.prompts.find(one => one['name'] === name),
    mayCall: name => {
      const annotations = tool(name)?.['annotations']
      return (isRecord(annotations) && annotations['readOnlyHint'] === true) || isFixture(name, surveyed.tools)
    },
  }
}

function capabilitiesIn(hello: Json, revision: RevisionId): Json {
  if (revision !== 's3') return isRecord(hello['capabilities']) ? hello['capabilities'] : {}
  const said = isRecord(hello['serverCapabilities']) ? hello['serverCapabilities'] : {}
  return {
    ...(said['supportsToolDiscovery'] === true ? { tools: {} } : {}),
    ...(said['supportsResourceDiscovery'] === true ? { resources: {} } : {}),
    ...said,
  }
}

function infoIn(hello: Json, revision: RevisionId): Json {
  const meta = isRecord(hello['_meta']) ? hello['_meta'][keys.serverInfo] : undefined
  const info = revision === 's3' ? hello['server'] : isStateless(revision) ? (meta ?? hello['serverInfo']) : hello['serverInfo']
  return isRecord(info) ? info : {}
}

function hasPath(value: unknown, [member, ...rest]: readonly string[]): boolean {
  if (member === undefined) return value !== undefined && value !== false && value !== null
  return isRecord(value) && hasPath(value[member], rest)
}

function extensionIn(capabilities: Json, id: string): Json | undefined {
  for (const place of [capabilities['extensions'], capabilities['experimental']]) {
    const settings = isRecord(place) ? place[id] : undefined
    if (isRecord(settings)) return settings
  }
  return undefined
}

/** All pages. What is wrong with a list is for scenarios to find. */
async function listed(peer: RawPeer, method: string, member: string, signal: AbortSignal): Promise<readonly Json[]> {
  if (peer.revision === 's3' && method !== 'tools/list' && method !== 'resources/list') return []
  const items: Json[] = []
  let cursor: unknown
  for (let page = 0; page < mostPages && !signal.aborted; page++) {
    const result = await pageOf(peer, method, cursor)
    const list = Array.isArray(result) ? result : isRecord(result) ? result[member] : undefined
    if (!Array.isArray(list)) break
    items.push(...list.filter(isRecord))
    cursor = isRecord(result) ? result['nextCursor'] : undefined
    if (typeof cursor !== 'string') break
  }
  return items
}

async function pageOf(peer: RawPeer, method: string, cursor: unknown): Promise<unknown> {
  try {
    return (await peer.request(method, cursor === undefined ? {} : { cursor })).result
  } catch (error) {
    if (error instanceof Failed) return undefined
    throw error
  }
}

// ── Tools that exist to be called by conformance suites: they have no effects that matter to anybody.

/** Fixtures whose names could belong to a real tool: they count only beside those that could not. */
const ordinary = new Set([
  'greet',
  'slow_compute',
  'failing_job',
  'protocol_error_job',
  'confirm_delete',
  'multi_input',
  'json_schema_2020_12_tool',
])

const marks = ['test_simple_text', 'test_tool_with_task', 'test_error_handling']

/** Whether a tool of this name is a fixture of conformance suites. */
function isFixture(name: string, tools: readonly Json[]): boolean {
  if (name.startsWith('test_')) return true
  return ordinary.has(name) && tools.some(tool => marks.includes(String(tool['name'])))
}
