/** One request to a guarded server with whatever credentials, and what its refusal says. */
import type { Bench, Json, RevisionId } from '../scenario.ts'
import { isStateless, kitInfo, wireVersion } from '../wire/envelope.ts'
import type { HttpReply, RawPeer } from '../wire/raw-peer.ts'

export interface Knock {
  readonly token?: string
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly query?: string
  /** Default: what opens a conversation at this revision. */
  readonly message?: Json
}

/** Knows how to knock at the server that is judged. */
export async function door(bench: Bench): Promise<{ peer: RawPeer; knock(how?: Knock): Promise<HttpReply> }> {
  const peer = await bench.open({ hello: false, listen: false })
  const knock = ({
    token,
    method = 'POST',
    headers = {},
    query,
    message = opening(bench.revision),
  }: Knock = {}): Promise<HttpReply> => {
    const url = new URL(peer.http.url)
    if (query !== undefined) url.search = query
    const { authorization: _, ...standard } = lowered(peer.http.headers(message))
    return peer.http.call({
      method,
      url,
      headers: { ...standard, ...(token === undefined ? {} : { authorization: `Bearer ${token}` }), ...headers },
      ...(method === 'POST' ? { body: JSON.stringify(message) } : {}),
      until: () => true,
    })
  }
  return { peer, knock }
}

function lowered(headers: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]))
}

export function opening(revision: RevisionId): Json {
  if (!isStateless(revision)) {
    const params = { protocolVersion: wireVersion(revision), capabilities: {}, clientInfo: kitInfo }
    return { jsonrpc: '2.0', id: 1, method: 'initialize', params }
  }
  const meta = {
    'io.modelcontextprotocol/protocolVersion': wireVersion(revision),
    'io.modelcontextprotocol/clientCapabilities': {},
    'io.modelcontextprotocol/clientInfo': kitInfo,
  }
  return { jsonrpc: '2.0', id: 1, method: 'server/discover', params: { _meta: meta } }
}

export interface Challenge {
  readonly scheme: string
  /** Parameters by their lower-case names. */
  readonly parameters: ReadonlyMap<string, string>
}

/** The challenge of a refusal (RFC 9110 §11.6.1); undefined where there is none. */
export function challengeIn({ headers }: Pick<HttpReply, 'headers'>): Challenge | undefined {
  const said = headers['www-authenticate']
  const [, scheme, rest = ''] = /^\s*([\w-]+)\s*(.*)$/s.exec(said ?? '') ?? []
  if (scheme === undefined) return undefined
  const parameters = [...rest.matchAll(/([\w-]+)\s*=\s*(?:"((?:\\.|[^"\\])*)"|([^\s,]+))/g)].map(
    ([, name = '', quoted, bare]) => [name.toLowerCase(), quoted?.replace(/\\(.)/g, '$1') ?? bare ?? ''] as const,
  )
  return { scheme: scheme.toLowerCase(), parameters: new Map(parameters) }
}

/** Where metadata of a resource are, by its address (RFC 9728 §3.1): at its path, and at the root. */
export function metadataPlaces(resource: URL): readonly URL[] {
  const root = new URL('/.well-known/oauth-protected-resource', resource)
  return resource.pathname === '/' ? [root] : [new URL(`${root.pathname}${resource.pathname}`, resource), root]
}
