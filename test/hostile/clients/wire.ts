/** The wires under attack, and how a good request looks on each: what attacks then spoil. */

export type Frame = Readonly<Record<string, unknown>>
export type Id = string | number

export interface Era {
  readonly title: string
  readonly revision: '2024-11-05' | '2025-03-26' | '2025-11-25' | '2026-07-28'
  readonly carrier: 'http' | 'sse' | 'websocket' | 'stdio'
  /** Whether clients are named by a session id in a header. */
  readonly sessions: boolean
}

export const eras = {
  modern: { title: 'HTTP 2026-07-28', revision: '2026-07-28', carrier: 'http', sessions: false },
  sessions: { title: 'HTTP 2025-11-25 with sessions', revision: '2025-11-25', carrier: 'http', sessions: true },
  sessionless: { title: 'HTTP 2025-11-25 without sessions', revision: '2025-11-25', carrier: 'http', sessions: false },
  batches: { title: 'HTTP 2025-03-26', revision: '2025-03-26', carrier: 'http', sessions: true },
  pair: { title: 'HTTP+SSE 2024-11-05', revision: '2024-11-05', carrier: 'sse', sessions: false },
  websocket: { title: 'WebSocket 2025-11-25', revision: '2025-11-25', carrier: 'websocket', sessions: false },
  pipe: { title: 'stdio 2025-11-25', revision: '2025-11-25', carrier: 'stdio', sessions: false },
  modernPipe: { title: 'stdio 2026-07-28', revision: '2026-07-28', carrier: 'stdio', sessions: false },
} satisfies Record<string, Era>

export const isModern = (era: Era): boolean => era.revision === '2026-07-28'
export const hasBatches = (era: Era): boolean => era.revision === '2025-03-26'
export const isHttp = (era: Era): boolean => era.carrier === 'http'
/** Conversations last longer than one message: questions can be pushed, calls cancelled by name. */
export const lasts = (era: Era): boolean => era.sessions || !isHttp(era)

export const versionKey = 'io.modelcontextprotocol/protocolVersion'
export const capabilitiesKey = 'io.modelcontextprotocol/clientCapabilities'
export const infoKey = 'io.modelcontextprotocol/clientInfo'

export function meta(era: Era, more: Frame = {}): Frame {
  if (!isModern(era)) return more
  return { [versionKey]: era.revision, [capabilitiesKey]: {}, [infoKey]: { name: 'attacker', version: '1' }, ...more }
}

/** A good request. */
export function request(era: Era, method: string, params: Frame = {}, id: Id = 1): Frame {
  const given = params['_meta'] as Frame | undefined
  const _meta = meta(era, given)
  return { jsonrpc: '2.0', id, method, params: Object.keys(_meta).length === 0 ? params : { ...params, _meta } }
}

export function call(era: Era, tool: string, args: unknown = {}, id: Id = 1, more: Frame = {}): Frame {
  return request(era, 'tools/call', { name: tool, arguments: args, ...more }, id)
}

export function hello(era: Era, capabilities: Frame = {}, id: Id = 0): Frame {
  const clientInfo = { name: 'attacker', version: '1' }
  return {
    jsonrpc: '2.0',
    id,
    method: 'initialize',
    params: { protocolVersion: era.revision, capabilities, clientInfo },
  }
}

/** A request that any wire answers at once and cheaply. */
export function ping(era: Era, id: Id): Frame {
  return isModern(era) ? request(era, 'server/discover', {}, id) : request(era, 'ping', {}, id)
}

const nameMembers = new Map([
  ['tools/call', 'name'],
  ['prompts/get', 'name'],
  ['resources/read', 'uri'],
])

export interface Mirrored {
  readonly method?: string | undefined
  readonly name?: string | undefined
}

/** What the headers of the stateless wire repeat of a body. */
export function mirrored(body: unknown): Mirrored {
  const { method, params } = (body ?? {}) as { method?: unknown; params?: Frame }
  if (typeof method !== 'string') return {}
  const name = params?.[nameMembers.get(method) ?? '']
  return { method, name: typeof name === 'string' ? name : undefined }
}

/** The header lines of a good POST, without Host, length and connection. */
export function headLines(era: Era, session: string | undefined, { method, name }: Mirrored): string[] {
  const lines = ['Content-Type: application/json', 'Accept: application/json, text/event-stream']
  if (isModern(era)) {
    lines.push(`MCP-Protocol-Version: ${era.revision}`)
    if (method !== undefined) lines.push(`Mcp-Method: ${method}`)
    if (name !== undefined) lines.push(`Mcp-Name: ${name}`)
  } else {
    if (era.revision === '2025-11-25') lines.push(`MCP-Protocol-Version: ${era.revision}`)
    if (session !== undefined) lines.push(`Mcp-Session-Id: ${session}`)
  }
  return lines
}

export interface Posting {
  readonly path: string
  readonly lines: readonly string[]
  readonly body: string | Buffer
  readonly host?: string
  /** Replaces the line of the length; an empty text leaves it out. */
  readonly length?: string
  readonly keepAlive?: boolean
}

/** The bytes of a POST. */
export function posted({ path, lines, body, host = 'Host: 127.0.0.1', length, keepAlive = false }: Posting): Buffer {
  const bytes = typeof body === 'string' ? Buffer.from(body) : body
  const said = length ?? `Content-Length: ${bytes.length}`
  const all = [`POST ${path} HTTP/1.1`, host, ...lines, said, keepAlive ? '' : 'Connection: close'].filter(line => line !== '')
  return Buffer.concat([Buffer.from(`${all.join('\r\n')}\r\n\r\n`), bytes])
}
