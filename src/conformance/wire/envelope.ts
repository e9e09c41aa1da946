/** What a right message of a revision carries beside its method: `_meta`, headers, the handshake's words. Written out by hand. */

import { clip, echo } from '../../jsonrpc/limits.ts'
import { isRecord } from '../../jsonrpc/message.ts'
import { objectIn } from '../expectations.ts'
import type { Carrier, Json, OpenOptions, RevisionId } from '../scenario.ts'
import type { Answer, RawPeer } from './raw-peer.ts'

/** Revisions in which every request stands alone. */
export function isStateless(revision: RevisionId): boolean {
  return revision === '2026-07-28' || revision === 'draft-2026-v1'
}

/** What the revision calls itself. */
export function wireVersion(revision: RevisionId): string {
  if (revision === 'draft-2026-v1') return 'DRAFT-2026-v1'
  return revision === 's3' ? '2025-06-18' : revision
}

/** Whether the revision can be spoken on this carrier. */
export function carries(revision: RevisionId, carrier: Carrier): boolean {
  if (carrier === 'sse') return !isStateless(revision)
  if (carrier === 'http') return revision !== '2024-11-05'
  return true
}

/** What the kit calls itself. */
export const kitInfo = { name: 'vivarium-conformance', version: '1.0.0' }

/** Names in `_meta` and in capabilities that the protocol itself has. */
export const keys = {
  version: 'io.modelcontextprotocol/protocolVersion',
  capabilities: 'io.modelcontextprotocol/clientCapabilities',
  info: 'io.modelcontextprotocol/clientInfo',
  logLevel: 'io.modelcontextprotocol/logLevel',
  serverInfo: 'io.modelcontextprotocol/serverInfo',
  subscription: 'io.modelcontextprotocol/subscriptionId',
  relatedTask: 'io.modelcontextprotocol/related-task',
  tasks: 'io.modelcontextprotocol/tasks',
} as const

/** The extension under which stateless wires declare MCP Live. */
const liveExtension = 'dev.vivarium/live'

/** What the kit declares, in the places that the revision has for it. */
export function capabilitiesOf(revision: RevisionId, { capabilities = {}, extensions, live }: OpenOptions): Json {
  const [member, liveId] = isStateless(revision) ? ['extensions', liveExtension] : ['experimental', 'mcpl']
  const named = { ...extensions, ...(live === undefined ? {} : { [liveId]: live }) }
  if (Object.keys(named).length === 0) return capabilities
  return { ...capabilities, [member]: { ...objectIn(capabilities, member), ...named } }
}

/** `_meta` of a request: what the revision demands, then what was asked for. */
export function requestMeta(revision: RevisionId, options: OpenOptions, more: Json | undefined): Json | undefined {
  const own = { ...options.meta, ...more }
  if (!isStateless(revision)) return Object.keys(own).length === 0 ? undefined : own
  return {
    [keys.version]: wireVersion(revision),
    [keys.info]: kitInfo,
    [keys.capabilities]: capabilitiesOf(revision, options),
    ...own,
  }
}

/** The parameter that `Mcp-Name` repeats, by method. */
const named = new Map([
  ['tools/call', 'name'],
  ['prompts/get', 'name'],
  ['resources/read', 'uri'],
  ['tasks/get', 'taskId'],
  ['tasks/update', 'taskId'],
  ['tasks/cancel', 'taskId'],
])

/** Headers of a POST with this message. */
export function messageHeaders(
  revision: RevisionId,
  message: Json | undefined,
  session: string | undefined,
  negotiated: string | undefined,
): Record<string, string> {
  const headers: Record<string, string> = {
    'content-type': 'application/json',
    accept: 'application/json, text/event-stream',
  }
  const method = message?.['method']
  if (isStateless(revision)) {
    headers['mcp-protocol-version'] = wireVersion(revision)
    if (typeof method === 'string') headers['mcp-method'] = method
    const name = nameIn(message)
    if (name !== undefined) headers['mcp-name'] = headerValue(name)
    return headers
  }
  if (session !== undefined && method !== 'initialize') headers['mcp-session-id'] = session
  const says = revision === '2025-06-18' || revision === '2025-11-25'
  if (says && negotiated !== undefined && method !== 'initialize') headers['mcp-protocol-version'] = negotiated
  return headers
}

function nameIn(message: Json | undefined): string | undefined {
  const value = objectIn(message, 'params')[named.get(String(message?.['method'])) ?? '']
  return typeof value === 'string' ? value : undefined
}

/** Text as a header carries it: as it is, or as base64 between marks. */
export function headerValue(text: string): string {
  const plain = /^[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?$/.test(text) && !/^=\?base64\?.*\?=$/.test(text)
  return plain ? text : `=?base64?${Buffer.from(text, 'utf8').toString('base64')}?=`
}

/** A request that every server of a revision answers and that changes nothing. */
export function harmlessMethod(revision: RevisionId): string {
  if (isStateless(revision)) return 'server/discover'
  return revision === 's3' ? 'tools/list' : 'ping'
}

/** The same as a whole message, to be sent as text. */
export function harmless(revision: RevisionId, id: unknown, more: Json = {}): Json {
  const meta = requestMeta(revision, {}, undefined)
  const params = meta === undefined ? {} : { _meta: meta }
  return { jsonrpc: '2.0', id, method: harmlessMethod(revision), params, ...more }
}

// ── The opening of a connection as each revision has it, and whether the peer speaks that revision at all.

/** The peer does not speak this revision here, and says so in its own way. */
export class NotSpoken extends Error {
  override readonly name = 'NotSpoken'
}

/** The server lets in only who brings credentials. */
export class Guarded extends Error {
  override readonly name = 'Guarded'
}

/** Opening takes longer than other answers: a process may have to start first. */
const helloMs = 20_000

/** Gives the result of the handshake. Throws NotSpoken. */
export async function sayHello(peer: RawPeer, revision: RevisionId, options: OpenOptions): Promise<Json> {
  if (isStateless(revision)) return discover(peer, revision)
  return revision === 's3' ? dialectHello(peer) : initialize(peer, revision, options)
}

/** A refusal for want of credentials says nothing about revisions. */
function letIn(answer: Answer): Answer {
  const guarded = guardedBy(answer.status)
  if (guarded !== undefined) throw guarded
  return answer
}

/** What a status says of credentials; undefined: nothing. */
export function guardedBy(status: number | undefined): Guarded | undefined {
  if (status !== 401 && status !== 403) return undefined
  return new Guarded(
    `The server requires credentials: it answered with HTTP status ${status}. Pass them: vivarium test --bearer-env NAME or --header 'Name: value'`,
  )
}

async function discover(peer: RawPeer, revision: RevisionId): Promise<Json> {
  const answer = letIn(await peer.request('server/discover', {}, { ms: helloMs }))
  const versions = isRecord(answer.result) ? answer.result['supportedVersions'] : undefined
  if (!isRecord(answer.result)) throw new NotSpoken(`server/discover was answered by ${shown(answer)}`)
  if (Array.isArray(versions) && !versions.includes(wireVersion(revision)))
    throw new NotSpoken(`supportedVersions is ${echo(versions)}`)
  return answer.result
}

async function initialize(peer: RawPeer, revision: RevisionId, options: OpenOptions): Promise<Json> {
  const params = { protocolVersion: revision, capabilities: capabilitiesOf(revision, options), clientInfo: kitInfo }
  const answer = letIn(await peer.request('initialize', params, { ms: helloMs }))
  const { result } = answer
  if (!isRecord(result)) throw new NotSpoken(`initialize was answered by ${shown(answer)}`)
  if (result['protocolVersion'] !== revision)
    throw new NotSpoken(`initialize with ${revision} was answered with ${echo(result['protocolVersion'] ?? null)}`)
  await peer.notify('notifications/initialized')
  return result
}

async function dialectHello(peer: RawPeer): Promise<Json> {
  const clientCapabilities = { supportsProgress: true, supportsCancellation: true }
  const params = { mcpVersion: wireVersion('s3'), clientCapabilities }
  const answer = letIn(await peer.request('initialize', params, { ms: helloMs }))
  const { result } = answer
  if (!isRecord(result) || !(isRecord(result['server']) || isRecord(result['serverCapabilities'])))
    throw new NotSpoken(`initialize with mcpVersion was answered by ${shown(answer)}`)
  await peer.notify('initialized')
  return result
}

function shown({ error, status, frame }: Answer): string {
  if (error !== undefined) return `error ${echo(error.code)} (${echo(error.message)})`
  return status === undefined ? clip(frame?.text ?? 'nothing') : `HTTP status ${status}`
}
