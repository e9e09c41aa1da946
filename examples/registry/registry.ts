/** A registry for a team: the read half of the official API (`/v0.1/servers`) over a list of descriptions, newest version last. */
import type { RequestListener } from 'node:http'

/** A `server.json`, of which the registry itself needs three members. */
export interface ServerDetail {
  readonly name: string
  readonly version: string
  readonly description: string
  readonly [member: string]: unknown
}

interface Answer {
  readonly status: number
  readonly body: unknown
}

const official = 'io.modelcontextprotocol.registry/official'
const notFound: Answer = { status: 404, body: { error: 'Server not found' } }

/** `servers`: asked for each request, so that a file may change meanwhile. */
export function registry(servers: () => readonly ServerDetail[]): RequestListener {
  return (req, res) => {
    const { status, body } =
      req.method === 'GET' ? answer(servers(), req.url ?? '/') : { status: 405, body: { error: 'Read only' } }
    res.writeHead(status, { 'content-type': 'application/json', 'access-control-allow-origin': '*' })
    res.end(JSON.stringify(body))
  }
}

function answer(servers: readonly ServerDetail[], path: string): Answer {
  const { pathname, searchParams } = new URL(path, 'http://registry.invalid')
  const [version, noun, name, versions, which, ...rest] = pathname.slice(1).split('/').map(decode)
  if (version !== 'v0.1' || noun !== 'servers' || rest.length > 0) return notFound
  if (name === undefined) return list(servers, searchParams)
  const all = servers.filter(server => server.name === name).reverse()
  const [latest] = all
  if (versions !== 'versions' || latest === undefined) return notFound
  if (which === undefined)
    return { status: 200, body: { servers: all.map(one => entry(one, latest)), metadata: { count: all.length } } }
  const found = which === 'latest' ? latest : all.find(one => one.version === which)
  return found === undefined ? notFound : { status: 200, body: entry(found, latest) }
}

/** Pages by the position of the last entry. */
function list(servers: readonly ServerDetail[], query: URLSearchParams): Answer {
  const limit = Number(query.get('limit') ?? 30)
  const after = Number(query.get('cursor') ?? 0)
  if (!Number.isSafeInteger(limit) || limit < 1 || limit > 100 || !Number.isSafeInteger(after) || after < 0)
    return { status: 400, body: { error: 'limit must be from 1 to 100, and cursor must come from this registry' } }
  const latest = new Map(servers.map(server => [server.name, server]))
  const search = query.get('search')?.toLowerCase() ?? ''
  const version = query.get('version')
  const found = servers.filter(
    server =>
      server.name.toLowerCase().includes(search) &&
      (version === null || (version === 'latest' ? latest.get(server.name) === server : server.version === version)),
  )
  const page = found.slice(after, after + limit)
  const more = after + limit < found.length ? { nextCursor: String(after + limit) } : {}
  const body = { servers: page.map(one => entry(one, latest.get(one.name))), metadata: { count: page.length, ...more } }
  return { status: 200, body }
}

function entry(server: ServerDetail, latest: ServerDetail | undefined): unknown {
  return { server, _meta: { [official]: { status: 'active', isLatest: server === latest } } }
}

function decode(part: string): string {
  try {
    return decodeURIComponent(part)
  } catch {
    return ''
  }
}
